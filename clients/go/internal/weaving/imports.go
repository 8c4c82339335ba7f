package weaving

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
)

var majorVersion = regexp.MustCompile(`^v[0-9]+$|\.v[0-9]+$`)

// imported is how the file calls our package: by the name of an import that it has ("" for a dot), or of one
// that the edits add.
func (s *source) imported(taken map[string]bool) (pkg string, edits []edit, err error) {
	for _, spec := range s.Imports {
		if pathOf(spec) != importPath || spec.Name != nil && spec.Name.Name == "_" {
			continue
		}
		if spec.Name != nil && spec.Name.Name == "." {
			return "", nil, nil
		}
		return localName(spec), nil, nil
	}
	pkg = s.freeName(taken)
	added, err := s.addition(pkg)
	return pkg, []edit{added}, err
}

// freeName is a name for our package that means nothing else in the file or its package.
func (s *source) freeName(taken map[string]bool) string {
	used := map[string]bool{}
	ast.Inspect(s.File, func(node ast.Node) bool {
		if ident, ok := node.(*ast.Ident); ok {
			used[ident.Name] = true
		}
		return true
	})
	for _, spec := range s.Imports {
		used[localName(spec)] = true
	}
	name := path.Base(importPath)
	for i := 1; used[name] || taken[name]; i++ {
		name = fmt.Sprintf("kubescenario%d", i)
	}
	return name
}

// addition adds the import: at the end of the last group of imports, or after the last import, or after the
// package clause.
func (s *source) addition(pkg string) (edit, error) {
	quoted := strconv.Quote(importPath)
	if pkg != path.Base(importPath) {
		quoted = pkg + " " + quoted
	}
	last := s.Name.End()
	for _, decl := range s.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.IMPORT {
			continue
		}
		last = group.End()
		if at, ok := s.roomIn(group); ok {
			return edit{at: at, text: s.eol + "\t" + mark + s.eol + "\t" + quoted + s.eol}, nil
		}
	}
	at, ok := s.nextLine(s.offset(last))
	if !ok {
		return edit{}, s.errorAt(last, "there is other code on this line: run gofmt on it first")
	}
	return edit{at: at, text: s.eol + mark + s.eol + "import " + quoted + s.eol}, nil
}

// roomIn is the start of the line with the closing parenthesis of a group of imports that can take one more.
func (s *source) roomIn(group *ast.GenDecl) (at int, ok bool) {
	if !group.Rparen.IsValid() || len(group.Specs) == 0 {
		return 0, false
	}
	for _, spec := range group.Specs {
		if pathOf(spec.(*ast.ImportSpec)) == "C" {
			return 0, false
		}
	}
	closing := s.offset(group.Rparen)
	start, _ := s.lineAround(closing)
	_, ok = s.indentation(closing)
	return start, ok
}

// shadowed says whether a name may mean something else in the declaration around a loop than in the file.
func (s *source) shadowed(l loop, name string) bool {
	found := false
	ast.Inspect(l.within, func(node ast.Node) bool {
		for _, ident := range declares(node) {
			found = found || ident.Name == name
		}
		return !found
	})
	return found
}

// declares are the names that a node gives a meaning to.
func declares(node ast.Node) []*ast.Ident {
	var expressions []ast.Expr
	switch node := node.(type) {
	case *ast.Field:
		return node.Names
	case *ast.ValueSpec:
		return node.Names
	case *ast.TypeSpec:
		return []*ast.Ident{node.Name}
	case *ast.AssignStmt:
		if node.Tok == token.DEFINE {
			expressions = node.Lhs
		}
	case *ast.RangeStmt:
		if node.Tok == token.DEFINE {
			expressions = []ast.Expr{node.Key, node.Value}
		}
	}
	var names []*ast.Ident
	for _, expression := range expressions {
		if ident, ok := expression.(*ast.Ident); ok {
			names = append(names, ident)
		}
	}
	return names
}

// Declared are the names that a source declares for its package; none if it is not of this package.
func Declared(name string, text []byte, pkg string) []string {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if file == nil || err != nil || file.Name.Name != pkg {
		return nil // the compiler will say what is wrong with it
	}
	var names []string
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				for _, ident := range declares(spec) {
					names = append(names, ident.Name)
				}
			}
		}
	}
	return names
}

func pathOf(spec *ast.ImportSpec) string {
	unquoted, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
	return unquoted
}

// localName is how the file calls an import, as far as its path tells.
func localName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	whole := pathOf(spec)
	base := path.Base(whole)
	if version := majorVersion.FindString(base); version == base {
		return path.Base(path.Dir(whole))
	} else {
		return base[:len(base)-len(version)]
	}
}

// Package is the name of a source's package; "" if it is no Go.
func Package(name string, text []byte) string {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.PackageClauseOnly)
	if err != nil {
		return ""
	}
	return file.Name.Name
}

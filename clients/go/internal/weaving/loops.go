package weaving

import (
	"go/ast"
	"go/token"
)

// loop is a function with a directive above it.
type loop struct {
	directive directive
	body      *ast.BlockStmt
	within    ast.Node // the declaration that it is, or stands in
}

// loops are the functions that directives stand above, in the order of the file.
func (s *source) loops() ([]loop, error) {
	var found []loop
	var errs Errors
	for _, group := range s.Comments {
		directives, err := s.directives(group)
		errs.add(err)
		for i, d := range directives {
			if i > 0 {
				errs.add(s.errorAt(d.pos, "a function has one //kubescene:loop"))
				continue
			}
			one, err := s.below(group, d)
			errs.add(err)
			found = append(found, one)
		}
	}
	return found, errs.orNil()
}

// below is the function that a directive in this group is about: the one whose doc comment it is part of, or
// the function literal that begins on the line below.
func (s *source) below(group *ast.CommentGroup, d directive) (loop, error) {
	for _, decl := range s.Decls {
		if declared, ok := decl.(*ast.FuncDecl); ok && declared.Doc == group {
			if declared.Body == nil {
				return loop{}, s.errorAt(d.pos, "//kubescene:loop stands above a function without a body")
			}
			return loop{d, declared.Body, declared}, nil
		}
	}
	next := s.line(group.End()) + 1
	literals, within := s.literals(next)
	if len(literals) == 1 {
		return loop{d, literals[0].Body, within}, nil
	}
	if len(literals) > 1 {
		return loop{}, s.errorAt(d.pos, "several functions begin on the line below //kubescene:loop: put the one you mean on a line of its own")
	}
	return loop{}, s.errorAt(d.pos, "//kubescene:loop stands above %s: it belongs right above a function", s.describe(next))
}

// literals are the function literals that begin on a line, and the declaration that they stand in.
func (s *source) literals(line int) (found []*ast.FuncLit, within ast.Node) {
	for _, decl := range s.Decls {
		ast.Inspect(decl, func(node ast.Node) bool {
			if literal, ok := node.(*ast.FuncLit); ok && s.line(literal.Pos()) == line {
				found, within = append(found, literal), decl
			}
			return true
		})
	}
	return found, within
}

// describe says what begins on a line, for somebody who expected a function there.
func (s *source) describe(line int) string {
	what := "nothing"
	ast.Inspect(s.File, func(node ast.Node) bool {
		if node == nil || what != "nothing" || s.line(node.Pos()) > line || s.line(node.End()) < line {
			return node == s.File
		}
		if _, isFile := node.(*ast.File); !isFile && s.line(node.Pos()) == line {
			what = kind(node)
		}
		return true
	})
	return what
}

func kind(node ast.Node) string {
	switch node := node.(type) {
	case *ast.FuncDecl:
		return "a function, but not in its comment"
	case *ast.GenDecl:
		return "a declaration of " + map[token.Token]string{
			token.TYPE: "a type", token.VAR: "a variable", token.CONST: "a constant", token.IMPORT: "an import",
		}[node.Tok]
	case *ast.ForStmt, *ast.RangeStmt:
		return "a for statement (what is deferred runs when a function ends: make the body a function)"
	case *ast.Field:
		return "a field or method of a type"
	}
	return "something else"
}

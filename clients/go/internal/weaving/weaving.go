// Package weaving writes calls of CheckScenarioStepPhase into Go sources where a directive asks for them,
// and takes them out again.
//
// Everything is done by offsets into the text: what was not woven keeps its bytes. Each woven piece is
// two lines, of which the first is the mark //kubescene:generated; to weave anew is to unweave first. What
// cannot be undone exactly is refused.
package weaving

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
)

const (
	mark       = "//kubescene:generated"
	importPath = "kubescene.dev/clients/go/scenario"
	function   = "CheckScenarioStepPhase"
)

// Concerns says cheaply whether a source may hold directives or woven pieces.
func Concerns(source []byte) bool {
	return bytes.Contains(source, []byte("kubescene:"))
}

// Weave gives the source with the calls that its directives ask for, and no others. Taken are names that
// other files of the package declare: the import is not given one of those.
func Weave(name string, source []byte, taken map[string]bool) ([]byte, error) {
	bare, err := Unweave(name, source)
	if err != nil {
		return nil, err
	}
	file, err := parse(name, bare)
	if err != nil {
		return nil, err
	}
	edits, err := file.weave(taken)
	if err != nil {
		return nil, err
	}
	woven := apply(bare, edits)
	return woven, check(name, bare, woven)
}

// check makes sure that what was woven is Go, and can be undone to the byte.
func check(name string, bare, woven []byte) error {
	undone, err := Unweave(name, woven)
	if err == nil && !bytes.Equal(undone, bare) {
		return newError(token.Position{Filename: name, Line: 1, Column: 1}, "the calls could not be taken out again exactly: run gofmt on it first")
	}
	return err
}

// source is one parsed file, whose offsets are those of its text.
type source struct {
	*ast.File
	text []byte
	set  *token.FileSet
	eol  string
}

func parse(name string, text []byte) (*source, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err // a scanner.ErrorList: each with file, line and column
	}
	eol := "\n"
	if first := bytes.IndexByte(text, '\n'); first > 0 && text[first-1] == '\r' {
		eol = "\r\n"
	}
	return &source{file, text, set, eol}, nil
}

// weave is what has to be inserted: a call for each directive, and an import if one is needed.
func (s *source) weave(taken map[string]bool) ([]edit, error) {
	loops, err := s.loops()
	if err != nil || len(loops) == 0 {
		return nil, err
	}
	pkg, edits, err := s.imported(taken)
	var errs Errors
	errs.add(err)
	for _, loop := range loops {
		call, err := s.call(loop, pkg)
		errs.add(err)
		edits = append(edits, call)
	}
	return edits, errs.orNil()
}

// call is the deferred call as the first statement of a loop: deferred first, it runs last.
func (s *source) call(l loop, pkg string) (edit, error) {
	if pkg == "" && s.shadowed(l, function) || pkg != "" && s.shadowed(l, pkg) {
		return edit{}, s.errorAt(l.directive.pos, "%s means something else in this function: import %q under another name", orFunction(pkg), importPath)
	}
	start, indent, ok := s.inside(l.body)
	if !ok {
		return edit{}, s.errorAt(l.body.Lbrace, "the body of this function begins or ends on a line with other code: put it on lines of its own")
	}
	line := "defer " + qualified(pkg, l.directive.call())
	return edit{at: start, text: indent + mark + s.eol + indent + line + s.eol}, nil
}

// inside is the start of the first line inside of a block, and how far that is indented.
func (s *source) inside(block *ast.BlockStmt) (start int, indent string, ok bool) {
	opening, closing := s.offset(block.Lbrace), s.offset(block.Rbrace)
	start, ok = s.nextLine(opening + 1)
	if !ok || start > closing {
		return 0, "", false
	}
	indent, ok = s.indentation(closing)
	return start, indent + "\t", ok
}

func qualified(pkg, call string) string {
	if pkg == "" {
		return call
	}
	return pkg + "." + call
}

func orFunction(pkg string) string {
	if pkg == "" {
		return function
	}
	return pkg
}

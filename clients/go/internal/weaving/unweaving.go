package weaving

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
)

var (
	wovenCall   = regexp.MustCompile(`^defer (?:\w+\.)?` + function + `(?:Context)?\(.*\)$`)
	wovenImport = regexp.MustCompile(`^(?:import )?(?:(\w+) )?"` + regexp.QuoteMeta(importPath) + `"$`)
)

// Unweave gives the source without the woven calls and imports. Directives stay. An import that other code
// has come to use stays too, without its mark: it is no longer ours.
func Unweave(name string, source []byte) ([]byte, error) {
	file, err := parse(name, source)
	if err != nil {
		return nil, err
	}
	pieces, err := file.pieces()
	if err != nil {
		return nil, err
	}
	var edits []edit
	for _, p := range pieces {
		edits = append(edits, file.without(p, pieces))
	}
	return apply(source, edits), nil
}

// piece is a mark and the woven line below it, as offsets; of an import, the name that it gives our package.
type piece struct {
	mark, line, end int
	imports         string
}

// pieces are all that was woven into a file.
func (s *source) pieces() (found []piece, err error) {
	var errs Errors
	for _, comment := range s.marks() {
		var p piece
		p.mark, p.line = s.lineAround(s.offset(comment.Pos()))
		_, p.end = s.lineAround(p.line)
		below := strings.TrimSpace(string(s.text[p.line:p.end]))
		if match := wovenImport.FindStringSubmatch(below); match != nil {
			p.imports = match[1]
			if p.imports == "" {
				p.imports = path.Base(importPath)
			}
		} else if !wovenCall.MatchString(below) {
			errs.add(s.errorAt(comment.Pos(), "below %s stands something that was not generated: delete the mark, or both lines", mark))
		}
		found = append(found, p)
	}
	return found, errs.orNil()
}

// marks are the comments that say that the line below was woven.
func (s *source) marks() (found []*ast.Comment) {
	for _, group := range s.Comments {
		for _, comment := range group.List {
			if strings.TrimRight(comment.Text, " \t\r") == mark {
				found = append(found, comment)
			}
		}
	}
	return found
}

// without takes one piece out; with an import goes the empty line before it.
func (s *source) without(p piece, all []piece) edit {
	if p.imports == "" {
		return edit{at: p.mark, upto: p.end}
	}
	if s.usesBeside(p.imports, all) {
		return edit{at: p.mark, upto: p.line}
	}
	if p.mark > 0 {
		before, _ := s.lineAround(p.mark - 1)
		if strings.TrimSpace(string(s.text[before:p.mark])) == "" {
			return edit{at: before, upto: p.end}
		}
	}
	return edit{at: p.mark, upto: p.end}
}

// usesBeside says whether code that was not woven uses a package by this name.
func (s *source) usesBeside(name string, woven []piece) bool {
	found := false
	ast.Inspect(s.File, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			ident, ok := selector.X.(*ast.Ident)
			found = found || ok && ident.Name == name && !s.isWoven(ident, woven)
		}
		return !found
	})
	return found
}

func (s *source) isWoven(node ast.Node, woven []piece) bool {
	at := s.offset(node.Pos())
	for _, p := range woven {
		if p.line <= at && at < p.end {
			return true
		}
	}
	return false
}

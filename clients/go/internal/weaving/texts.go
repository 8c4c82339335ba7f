package weaving

import (
	"bytes"
	"go/token"
	"slices"
	"strings"
)

// edit replaces the bytes from at to upto by a text; an insertion has no upto.
type edit struct {
	at, upto int
	text     string
}

func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at - b.at })
	var made bytes.Buffer
	last := 0
	for _, e := range edits {
		made.Write(text[last:e.at])
		made.WriteString(e.text)
		last = max(e.at, e.upto)
	}
	made.Write(text[last:])
	return made.Bytes()
}

func (s *source) offset(pos token.Pos) int {
	return s.set.PositionFor(pos, false).Offset
}

func (s *source) line(pos token.Pos) int {
	return s.set.PositionFor(pos, false).Line
}

// lineAround is where the line of an offset begins, and where the next one does.
func (s *source) lineAround(offset int) (start, next int) {
	start = bytes.LastIndexByte(s.text[:offset], '\n') + 1
	end := bytes.IndexByte(s.text[offset:], '\n')
	if end < 0 {
		return start, len(s.text)
	}
	return start, offset + end + 1
}

// nextLine is where the line after an offset begins, if only white space and a // comment are between.
func (s *source) nextLine(offset int) (start int, ok bool) {
	_, start = s.lineAround(offset)
	rest := strings.TrimSpace(string(s.text[offset:start]))
	return start, (rest == "" || strings.HasPrefix(rest, "//")) && s.text[start-1] == '\n'
}

// indentation is the white space before an offset, if there is nothing else on its line before it.
func (s *source) indentation(offset int) (indent string, ok bool) {
	start, _ := s.lineAround(offset)
	indent = string(s.text[start:offset])
	return indent, strings.TrimLeft(indent, " \t") == ""
}

package weaving

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

const prefix = "//kubescene:"

var (
	spaced = regexp.MustCompile(`^//\s+kubescene:(loop|generated)\b`)
	option = regexp.MustCompile(`^([^\s=]*)=("(?:[^"\\]|\\.)*"|[^\s"]\S*|)(?:\s+|$)`)
)

// directive is a comment such as
//
//	//kubescene:loop name=my-operator config=c.simulator context=ctx
//
// Name is what the scenario calls the controller; config and context are Go expressions in the function
// below. A value with spaces is a quoted string of Go.
type directive struct {
	pos                   token.Pos
	name, config, context string
}

// call is the call that it asks for, without its package.
func (d directive) call() string {
	if d.context == "" {
		return fmt.Sprintf("%s(%q, %s)", function, d.name, d.config)
	}
	return fmt.Sprintf("%sContext(%s, %q, %s)", function, d.context, d.name, d.config)
}

// directives are those of a comment group; each mistake in one is an error.
func (s *source) directives(group *ast.CommentGroup) ([]directive, error) {
	var found []directive
	var errs Errors
	for _, comment := range group.List {
		text := strings.TrimRight(comment.Text, " \t\r")
		switch verb, rest, _ := strings.Cut(strings.TrimPrefix(text, prefix), " "); {
		case spaced.MatchString(text):
			errs.add(s.errorAt(comment.Pos(), "a directive has no space after the slashes: write //kubescene:"))
		case !strings.HasPrefix(text, prefix):
		case verb != "loop":
			errs.add(s.errorAt(comment.Pos(), "there is no directive //kubescene:%s: known is //kubescene:loop", verb))
		default:
			one, err := s.directive(comment, rest)
			errs.add(err)
			found = append(found, one)
		}
	}
	return found, errs.orNil()
}

func (s *source) directive(comment *ast.Comment, rest string) (directive, error) {
	d := directive{pos: comment.Pos()}
	start := comment.Pos() + token.Pos(len(prefix+"loop "))
	for at := start; rest != ""; {
		trimmed := strings.TrimLeft(rest, " \t")
		at += token.Pos(len(rest) - len(trimmed))
		match := option.FindStringSubmatch(trimmed)
		if match == nil {
			return d, s.errorAt(at, "%q is no option: write name=... config=... and, if you like, context=...", trimmed)
		}
		if err := d.set(match[1], match[2]); err != nil {
			return d, s.errorAt(at, "%s", err)
		}
		at, rest = at+token.Pos(len(match[0])), trimmed[len(match[0]):]
	}
	if d.name == "" || d.config == "" {
		return d, s.errorAt(d.pos, "the directive needs name=... and config=...")
	}
	return d, nil
}

func (d *directive) set(key, value string) error {
	target, ok := map[string]*string{"name": &d.name, "config": &d.config, "context": &d.context}[key]
	if !ok {
		return fmt.Errorf("there is no option %q: known are name, config, context", key)
	}
	if *target != "" {
		return fmt.Errorf("the option %q is given twice", key)
	}
	if strings.HasPrefix(value, `"`) {
		unquoted, err := strconv.Unquote(value)
		if err != nil {
			return fmt.Errorf("the value of %q is no string of Go: %s", key, value)
		}
		value = unquoted
	}
	if value == "" {
		return fmt.Errorf("the option %q has no value", key)
	}
	var err error
	if key != "name" {
		value, err = expression(key, value)
	}
	*target = value
	return err
}

// expression is one of Go, formatted.
func expression(key, value string) (string, error) {
	parsed, err := parser.ParseExpr(value)
	if err != nil || strings.ContainsAny(value, "\r\n") {
		return "", fmt.Errorf("the value of %q is no expression of Go on one line: %s", key, value)
	}
	var made bytes.Buffer
	err = format.Node(&made, token.NewFileSet(), parsed)
	return made.String(), err
}

package weaving

import (
	"errors"
	"fmt"
	"go/token"
	"strings"
)

// Error is a mistake at a place.
type Error struct {
	Position token.Position
	Message  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s", e.Position, e.Message)
}

func newError(at token.Position, message string, arguments ...any) error {
	return &Error{at, fmt.Sprintf(message, arguments...)}
}

// errorAt is placed where the file says, whatever a //line comment says.
func (s *source) errorAt(pos token.Pos, message string, arguments ...any) error {
	return newError(s.set.PositionFor(pos, false), message, arguments...)
}

// Errors are all mistakes of a file, one per line.
type Errors []error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

func (e *Errors) add(err error) {
	var many Errors
	if errors.As(err, &many) {
		*e = append(*e, many...)
	} else if err != nil {
		*e = append(*e, err)
	}
}

func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

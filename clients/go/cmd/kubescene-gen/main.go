// The command kubescene-gen lets the loops of a controller take part in a Scenario of Kubescene, in turns.
//
// Above the function that is one loop of the controller stands a directive:
//
//	//kubescene:loop name=my-operator config=c.simulator
//	func (c *Controller) processNextWorkItem(ctx context.Context) bool {
//
// and kubescene-gen makes this its first statement, and imports the package:
//
//	//kubescene:generated
//	defer scenario.CheckScenarioStepPhase("my-operator", c.simulator)
//
// Name is what the scenario calls the controller. Config is an expression of type *scenario.Config; with
// context=ctx, an expression of type context.Context, a parked controller stops with that context. A value
// with spaces is written in quotes. The function may be a method, or a function literal that begins on the
// line below the directive.
//
// Usage:
//
//	kubescene-gen [-check] [-remove] [file.go | directory | directory/... ]...
//
// Without a path it is the directory where it runs, as go generate has it. Running it again changes nothing;
// -remove takes out exactly what was put in. With -check nothing is written, and the exit code is 1 if
// something would be. A mistake in a directive is reported with file, line and column, exit code 2, and then
// no file is written at all.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kubescene.dev/clients/go/internal/weaving"
)

const (
	nothingToSay = 0
	wouldChange  = 1
	mistaken     = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("kubescene-gen", flag.ContinueOnError)
	flags.SetOutput(errs)
	check := flags.Bool("check", false, "write nothing; exit with 1 if something would change")
	remove := flags.Bool("remove", false, "take out what was generated")
	if flags.Parse(arguments) != nil {
		return mistaken
	}
	changes, failures := rewrite(flags.Args(), *remove)
	for _, err := range failures {
		fmt.Fprintln(errs, err)
	}
	if len(failures) > 0 {
		return mistaken
	}
	if *check {
		return report(changes, out)
	}
	return write(changes, out, errs)
}

// change is a file with its new text.
type change struct {
	file string
	text []byte
}

// rewrite works out all changes before any is made.
func rewrite(paths []string, remove bool) (changes []change, failures []error) {
	files, err := expand(paths)
	if err != nil {
		return nil, []error{err}
	}
	for _, file := range files {
		before, err := os.ReadFile(file)
		if err == nil && !weaving.Concerns(before) {
			continue
		}
		var after []byte
		if err == nil {
			after, err = rewritten(file, before, remove)
		}
		if err != nil {
			failures = append(failures, err)
		} else if !bytes.Equal(before, after) {
			changes = append(changes, change{file, after})
		}
	}
	return changes, failures
}

func rewritten(file string, text []byte, remove bool) ([]byte, error) {
	if remove {
		return weaving.Unweave(file, text)
	}
	taken, err := declared(file, text)
	if err != nil {
		return nil, err
	}
	return weaving.Weave(file, text, taken)
}

// declared are the names that the files of the same package declare.
func declared(file string, text []byte) (map[string]bool, error) {
	pkg := weaving.Package(file, text)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.go"))
	taken := map[string]bool{}
	for _, other := range files {
		text, err := os.ReadFile(other)
		if err != nil {
			return nil, err
		}
		for _, name := range weaving.Declared(other, text, pkg) {
			taken[name] = true
		}
	}
	return taken, err
}

func report(changes []change, out io.Writer) int {
	for _, c := range changes {
		fmt.Fprintf(out, "%s would change\n", c.file)
	}
	if len(changes) > 0 {
		return wouldChange
	}
	return nothingToSay
}

func write(changes []change, out, errs io.Writer) int {
	for _, c := range changes {
		if err := os.WriteFile(c.file, c.text, 0o644); err != nil { // an existing file keeps its mode
			fmt.Fprintln(errs, err)
			return mistaken
		}
		fmt.Fprintf(out, "%s changed\n", c.file)
	}
	return nothingToSay
}

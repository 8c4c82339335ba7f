package weaving

import (
	"bytes"
	"flag"
	"go/format"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/woven from what is")

// weave gives what is woven, having checked all that holds for every source.
func weave(t *testing.T, name, source string, taken ...string) string {
	t.Helper()
	names := map[string]bool{}
	for _, one := range taken {
		names[one] = true
	}
	woven, err := Weave(name, []byte(source), names)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Weave(name, woven, names)
	if err != nil || !bytes.Equal(again, woven) {
		t.Errorf("woven twice is not woven once: %v\n%s", err, again)
	}
	undone, err := Unweave(name, woven)
	if err != nil || string(undone) != source {
		t.Errorf("unwoven is not what it was: %v\n%q\n%q", err, undone, source)
	}
	if isFormatted(source) && !isFormatted(string(woven)) {
		t.Errorf("gofmt would change\n%s", woven)
	}
	return string(woven)
}

func isFormatted(source string) bool {
	formatted, err := format.Source([]byte(source))
	return err == nil && string(formatted) == source
}

func TestShapesOfControllers(t *testing.T) {
	files, _ := filepath.Glob("testdata/program/*.go")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			source, err := os.ReadFile(file)
			if err != nil || !isFormatted(string(source)) {
				t.Fatalf("%v, or not formatted", err)
			}
			woven := weave(t, file, string(source), "settings", "main")
			expected := filepath.Join("testdata/woven", filepath.Base(file)+".golden")
			if !Concerns(source) {
				if woven != string(source) {
					t.Error("changed without a directive")
				}
				return
			}
			if *update {
				if err := os.WriteFile(expected, []byte(woven), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(expected)
			if err != nil || woven != string(want) {
				t.Errorf("%v: woven is\n%s", err, woven)
			}
		})
	}
}

const (
	insertion = "\t//kubescene:generated\n\tdefer scenario.CheckScenarioStepPhase(\"x\", c)\n"
	above     = "//kubescene:loop name=x config=c\n"
	loopFunc  = above + "func loop() {\n\twork()\n}\n"
	wovenFunc = above + "func loop() {\n" + insertion + "\twork()\n}\n"
	wovenAt   = "//kubescene:generated\nimport \"kubescene.dev/clients/go/scenario\"\n"
)

func TestImports(t *testing.T) {
	renamed := func(to string) string { return strings.Replace(wovenFunc, "scenario.", to, 1) }
	for name, c := range map[string]struct{ head, woven, loop string }{
		"none":           {"package a\n", "package a\n\n" + wovenAt, wovenFunc},
		"a comment":      {"package a // of ours\n", "package a // of ours\n\n" + wovenAt, wovenFunc},
		"one":            {"package a\n\nimport \"fmt\"\n", "package a\n\nimport \"fmt\"\n\n" + wovenAt, wovenFunc},
		"two":            {"package a\n\nimport \"fmt\"\nimport \"os\" // for it\n", "package a\n\nimport \"fmt\"\nimport \"os\" // for it\n\n" + wovenAt, wovenFunc},
		"a group":        {"package a\n\nimport (\n\t\"fmt\"\n)\n", "package a\n\nimport (\n\t\"fmt\"\n\n\t//kubescene:generated\n\t\"kubescene.dev/clients/go/scenario\"\n)\n", wovenFunc},
		"a full group":   {"package a\n\nimport (\n\t\"fmt\" // prints\n\n\tz \"zoo\"\n\t// the end\n)\n", "package a\n\nimport (\n\t\"fmt\" // prints\n\n\tz \"zoo\"\n\t// the end\n\n\t//kubescene:generated\n\t\"kubescene.dev/clients/go/scenario\"\n)\n", wovenFunc},
		"an empty one":   {"package a\n\nimport ()\n", "package a\n\nimport ()\n\n" + wovenAt, wovenFunc},
		"an empty long":  {"package a\n\nimport (\n)\n", "package a\n\nimport (\n)\n\n" + wovenAt, wovenFunc},
		"cgo in a group": {"package a\n\nimport (\n\t\"C\"\n)\n", "package a\n\nimport (\n\t\"C\"\n)\n\n" + wovenAt, wovenFunc},
		"cgo":            {"package a\n\n// int f();\nimport \"C\"\n", "package a\n\n// int f();\nimport \"C\"\n\n" + wovenAt, wovenFunc},
		"ours":           {"package a\n\nimport \"kubescene.dev/clients/go/scenario\"\n", "", wovenFunc},
		"ours, grouped":  {"package a\n\nimport (\n\t\"fmt\"\n\t\"kubescene.dev/clients/go/scenario\"\n)\n", "", wovenFunc},
		"ours, aliased":  {"package a\n\nimport sc \"kubescene.dev/clients/go/scenario\"\n", "", renamed("sc.")},
		"ours, dot":      {"package a\n\nimport . \"kubescene.dev/clients/go/scenario\"\n", "", renamed("")},
		"ours, blank":    {"package a\n\nimport _ \"kubescene.dev/clients/go/scenario\"\n", "package a\n\nimport _ \"kubescene.dev/clients/go/scenario\"\n\n" + wovenAt, wovenFunc},
		"another":        {"package a\n\nimport \"example.com/scenario\"\n", "package a\n\nimport \"example.com/scenario\"\n\n//kubescene:generated\nimport kubescenario1 \"kubescene.dev/clients/go/scenario\"\n", renamed("kubescenario1.")},
		"another, v2":    {"package a\n\nimport \"example.com/scenario/v2\"\n", "package a\n\nimport \"example.com/scenario/v2\"\n\n//kubescene:generated\nimport kubescenario1 \"kubescene.dev/clients/go/scenario\"\n", renamed("kubescenario1.")},
		"another, .v2":   {"package a\n\nimport \"gopkg.in/scenario.v2\"\n", "package a\n\nimport \"gopkg.in/scenario.v2\"\n\n//kubescene:generated\nimport kubescenario1 \"kubescene.dev/clients/go/scenario\"\n", renamed("kubescenario1.")},
		"a variable":     {"package a\n\nvar scenario, kubescenario1 int\n", "package a\n\n//kubescene:generated\nimport kubescenario2 \"kubescene.dev/clients/go/scenario\"\n\nvar scenario, kubescenario1 int\n", renamed("kubescenario2.")},
	} {
		t.Run(name, func(t *testing.T) {
			if c.woven == "" {
				c.woven = c.head
			}
			if got, want := weave(t, "a.go", c.head+"\n"+loopFunc), c.woven+"\n"+c.loop; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestANameThatAnotherFileDeclaresIsNotTaken(t *testing.T) {
	taken := Declared("b.go", []byte("package a\n\nfunc scenario() {}\n\nfunc (t T) kubescenario1() {}\n"), "a")
	woven := weave(t, "a.go", "package a\n\n"+loopFunc, taken...)
	if !strings.Contains(woven, "import kubescenario1 ") {
		t.Error(woven)
	}
	if of := Declared("b.go", []byte("package b\n\nvar scenario int\n"), "a"); of != nil {
		t.Errorf("%v is of another package", of)
	}
}

func TestFunctions(t *testing.T) {
	for name, c := range map[string]struct{ source, woven string }{
		"empty body":       {"func loop() {\n}\n", "func loop() {\n" + insertion + "}\n"},
		"brace comment":    {"func loop() { // once\n\twork()\n}\n", "func loop() { // once\n" + insertion + "\twork()\n}\n"},
		"leading comment":  {"func loop() {\n\t// works\n\twork()\n}\n", "func loop() {\n" + insertion + "\t// works\n\twork()\n}\n"},
		"trailing comment": {"func loop() {\n\twork() // works\n}\n", "func loop() {\n" + insertion + "\twork() // works\n}\n"},
		"generic":          {"func loop[T any](\n\ta T,\n) (n int, err error) {\n\treturn\n}\n", "func loop[T any](\n\ta T,\n) (n int, err error) {\n" + insertion + "\treturn\n}\n"},
		"variable":         {"var loop = func() {\n\twork()\n}\n", "var loop = func() {\n" + insertion + "\twork()\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			woven := weave(t, "a.go", "package a\n\n"+above+c.source)
			if !strings.HasSuffix(woven, above+c.woven) {
				t.Errorf("got\n%s", woven)
			}
		})
	}
}

func TestSeveralLoopsShareOneImport(t *testing.T) {
	other := "\n// Other works too.\n//\n//kubescene:loop name=y config=f(a,b) context=ctx\nfunc other() {\n\twork()\n}\n"
	woven := weave(t, "a.go", "package a\n\n"+loopFunc+other)
	if strings.Count(woven, "import") != 1 || !strings.Contains(woven, "\tdefer scenario.CheckScenarioStepPhaseContext(ctx, \"y\", f(a, b))\n") {
		t.Error(woven)
	}
}

func TestLineEndingsAreKept(t *testing.T) {
	source := strings.ReplaceAll("package a\n\nimport (\n\t\"fmt\"\n)\n\n"+loopFunc, "\n", "\r\n")
	woven := weave(t, "a.go", source)
	if strings.Count(woven, "\n") != strings.Count(woven, "\r\n") || strings.Count(woven, "\n") != strings.Count(source, "\n")+5 {
		t.Errorf("%q", woven)
	}
}

func TestAChangedDirectiveChangesTheCall(t *testing.T) {
	woven := weave(t, "a.go", "package a\n\n"+loopFunc)
	changed, err := Weave("a.go", []byte(strings.Replace(woven, "name=x", "name=y", 1)), nil)
	if err != nil || string(changed) != strings.Replace(strings.Replace(woven, "name=x", "name=y", 1), `"x"`, `"y"`, 1) {
		t.Errorf("%v\n%s", err, changed)
	}
}

func TestACallWithoutADirectiveIsTakenOut(t *testing.T) {
	woven := weave(t, "a.go", "package a\n\n"+loopFunc)
	bare, err := Weave("a.go", []byte(strings.Replace(woven, above, "", 1)), nil)
	if err != nil || string(bare) != "package a\n\nfunc loop() {\n\twork()\n}\n" {
		t.Errorf("%v\n%s", err, bare)
	}
}

func TestAnImportThatOtherCodeUsesStays(t *testing.T) {
	woven := weave(t, "a.go", "package a\n\n"+loopFunc) + "\nvar config scenario.Config\n"
	bare, err := Unweave("a.go", []byte(woven))
	want := "package a\n\nimport \"kubescene.dev/clients/go/scenario\"\n\n" + loopFunc + "\nvar config scenario.Config\n"
	if err != nil || string(bare) != want {
		t.Errorf("%v\n%s", err, bare)
	}
}

func TestAnImportThatWasMovedIntoAGroupIsFound(t *testing.T) {
	merged := "package a\n\nimport (\n\t\"fmt\"\n\t//kubescene:generated\n\t\"kubescene.dev/clients/go/scenario\"\n\t\"zoo\"\n)\n"
	bare, err := Unweave("a.go", []byte(merged))
	if err != nil || string(bare) != "package a\n\nimport (\n\t\"fmt\"\n\t\"zoo\"\n)\n" {
		t.Errorf("%v\n%s", err, bare)
	}
}

func TestTextThatLooksLikeADirectiveIsLeftAlone(t *testing.T) {
	source := "package a\n\nconst help = `\n//kubescene:generated\n//kubescene:loop\n`\n\n// It reads:\n//\n//\t//kubescene:loop name=x\nfunc f() {}\n"
	if woven := weave(t, "a.go", source); woven != source {
		t.Error(woven)
	}
}

func TestMistakes(t *testing.T) {
	const body = "func loop() {\n\twork()\n}\n"
	for name, c := range map[string]struct{ source, want string }{
		"above a type":       {above + "type T struct{}\n", "a.go:3:1: //kubescene:loop stands above a declaration of a type: it belongs right above a function"},
		"above a variable":   {above + "var v = 1\n", "a.go:3:1: //kubescene:loop stands above a declaration of a variable: it belongs right above a function"},
		"above a constant":   {above + "const v = 1\n", "a.go:3:1: //kubescene:loop stands above a declaration of a constant: it belongs right above a function"},
		"above nothing":      {above + "\n" + body, "a.go:3:1: //kubescene:loop stands above nothing: it belongs right above a function"},
		"at the end":         {body + "\n" + above, "a.go:7:1: //kubescene:loop stands above nothing: it belongs right above a function"},
		"above a method":     {"type T interface {\n\t" + above + "\tLoop()\n}\n", "a.go:4:2: //kubescene:loop stands above a field or method of a type: it belongs right above a function"},
		"above a for":        {"func f() {\n\t" + above + "\tfor {\n\t}\n}\n", "a.go:4:2: //kubescene:loop stands above a for statement (what is deferred runs when a function ends: make the body a function): it belongs right above a function"},
		"above a call":       {"func f() {\n\t" + above + "\twork()\n}\n", "a.go:4:2: //kubescene:loop stands above something else: it belongs right above a function"},
		"two literals":       {above + "var a, b = func() {}, func() {}\n", "a.go:3:1: several functions begin on the line below //kubescene:loop: put the one you mean on a line of its own"},
		"no body":            {above + "func loop()\n", "a.go:3:1: //kubescene:loop stands above a function without a body"},
		"one line":           {above + "func loop() { work() }\n", "a.go:4:13: the body of this function begins or ends on a line with other code: put it on lines of its own"},
		"empty on one line":  {above + "func loop() {}\n", "a.go:4:13: the body of this function begins or ends on a line with other code: put it on lines of its own"},
		"a block comment":    {above + "func loop() { /* a\n\tb */ work()\n}\n", "a.go:4:13: the body of this function begins or ends on a line with other code: put it on lines of its own"},
		"twice":              {above + above + body, "a.go:4:1: a function has one //kubescene:loop"},
		"unknown directive":  {"//kubescene:lop name=x config=c\n" + body, "a.go:3:1: there is no directive //kubescene:lop: known is //kubescene:loop"},
		"a space":            {"// kubescene:loop name=x config=c\n" + body, "a.go:3:1: a directive has no space after the slashes: write //kubescene:"},
		"unknown option":     {"//kubescene:loop name=x config=c every=1s\n" + body, `a.go:3:34: there is no option "every": known are name, config, context`},
		"no option":          {"//kubescene:loop name=x  c\n" + body, `a.go:3:26: "c" is no option: write name=... config=... and, if you like, context=...`},
		"an option twice":    {"//kubescene:loop name=x config=c name=y\n" + body, `a.go:3:34: the option "name" is given twice`},
		"no config":          {"//kubescene:loop name=x\n" + body, "a.go:3:1: the directive needs name=... and config=..."},
		"no name":            {"//kubescene:loop config=c\n" + body, "a.go:3:1: the directive needs name=... and config=..."},
		"no value":           {"//kubescene:loop name= config=c\n" + body, `a.go:3:18: the option "name" has no value`},
		"an empty value":     {"//kubescene:loop name=\"\" config=c\n" + body, `a.go:3:18: the option "name" has no value`},
		"a bad string":       {"//kubescene:loop name=x config=\"\\q\"\n" + body, `a.go:3:25: the value of "config" is no string of Go: "\q"`},
		"an open string":     {"//kubescene:loop name=x config=\"c\n" + body, `a.go:3:25: "config=\"c" is no option: write name=... config=... and, if you like, context=...`},
		"a bad expression":   {"//kubescene:loop name=x config=a+\n" + body, `a.go:3:25: the value of "config" is no expression of Go on one line: a+`},
		"shadowed":           {"import \"kubescene.dev/clients/go/scenario\"\n\n" + above + "func loop(scenario int) {\n\twork()\n}\n", `a.go:5:1: scenario means something else in this function: import "kubescene.dev/clients/go/scenario" under another name`},
		"shadowed by a dot":  {"import . \"kubescene.dev/clients/go/scenario\"\n\n" + above + "func loop(CheckScenarioStepPhase int) {\n\twork()\n}\n", `a.go:5:1: CheckScenarioStepPhase means something else in this function: import "kubescene.dev/clients/go/scenario" under another name`},
		"a mark that is not": {"func loop() {\n\t//kubescene:generated\n\twork()\n}\n", "a.go:4:2: below //kubescene:generated stands something that was not generated: delete the mark, or both lines"},
		"no Go":              {above + "fun loop() {\n}\n", "a.go:4:1: expected declaration, found fun"},
		"two at once":        {"//kubescene:lop\n" + body + "\n//kubescene:loop\nfunc b() {\n}\n", "a.go:3:1: there is no directive //kubescene:lop: known is //kubescene:loop\na.go:8:1: the directive needs name=... and config=..."},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Weave("a.go", []byte("package a\n\n"+c.source), nil)
			if err == nil || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

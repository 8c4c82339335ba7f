package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const (
	source  = "package a\n\n//kubescene:loop name=x config=c\nfunc loop() {\n}\n"
	mistake = "package a\n\n//kubescene:loop name=x\nfunc loop() {\n}\n"
)

// tree makes files in a new directory and goes there.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// expect runs the command and compares its exit code and all that it prints.
func expect(t *testing.T, code int, printed string, arguments ...string) {
	t.Helper()
	var out bytes.Buffer
	if got := run(arguments, &out, &out); got != code || out.String() != printed {
		t.Errorf("kubescene-gen %s: %d, want %d\n%q\n%q", strings.Join(arguments, " "), got, code, out.String(), printed)
	}
}

func TestWriteCheckAndRemove(t *testing.T) {
	tree(t, map[string]string{"a.go": source, "b.go": "package a\n"})
	expect(t, 1, "a.go would change\n", "-check")
	if read(t, "a.go") != source {
		t.Fatal("-check has written")
	}
	expect(t, 0, "a.go changed\n")
	expect(t, 0, "")
	expect(t, 0, "", "-check")
	expect(t, 1, "a.go would change\n", "-check", "-remove")
	expect(t, 0, "a.go changed\n", "-remove")
	if read(t, "a.go") != source {
		t.Errorf("not what it was: %s", read(t, "a.go"))
	}
	if info, _ := os.Stat("a.go"); info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestPaths(t *testing.T) {
	files := map[string]string{"sub/c/go.mod": "module c\n"}
	for _, directory := range []string{".", "sub", "sub/deep", "sub/c", "vendor", "testdata", ".git", "_old"} {
		files[directory+"/a.go"] = source
	}
	tree(t, files)
	expect(t, 1, "a.go would change\n", "-check", ".")
	expect(t, 1, "sub/a.go would change\n", "-check", "./sub")
	expect(t, 1, "sub/a.go would change\n", "-check", "sub/a.go", "./sub", "sub/a.go")
	expect(t, 1, "a.go would change\nsub/a.go would change\nsub/deep/a.go would change\n", "-check", "./...")
	expect(t, 1, "a.go would change\nsub/a.go would change\nsub/deep/a.go would change\n", "-check", "...")
	expect(t, 1, "testdata/a.go would change\n", "-check", "testdata")
	expect(t, 2, "sub/c/go.mod is no Go file\n", "-check", "sub/c/go.mod")
	expect(t, 2, "stat nowhere: no such file or directory\n", "-check", "nowhere")
}

func TestAfterAMistakeNothingIsWritten(t *testing.T) {
	tree(t, map[string]string{"a.go": source, "b.go": mistake, "c.go": "package a\n\n//kubescene:loop\nfun loop()\n"})
	said := "b.go:3:1: the directive needs name=... and config=...\nc.go:4:1: expected declaration, found fun\n"
	expect(t, 2, said)
	expect(t, 2, said, "-check")
	if read(t, "a.go") != source {
		t.Error("a.go was written")
	}
}

func TestAnUnknownFlagIsAMistake(t *testing.T) {
	if code := run([]string{"-write"}, io.Discard, io.Discard); code != 2 {
		t.Error(code)
	}
}

func TestNamesOfThePackageAreNotTaken(t *testing.T) {
	tree(t, map[string]string{"a.go": source, "b.go": "package a\n\ntype scenario int\n"})
	expect(t, 0, "a.go changed\n")
	if !strings.Contains(read(t, "a.go"), "import kubescenario1 ") {
		t.Error(read(t, "a.go"))
	}
}

// TestTheGeneratedProgramParks compiles the shapes of controllers with what was generated for them, and runs
// them against a server: every loop ends with its report, after all else that the loop has deferred.
func TestTheGeneratedProgramParks(t *testing.T) {
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go tool is not on PATH")
	}
	module, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.CopyFS(".", os.DirFS(filepath.Join(module, "internal/weaving/testdata/program"))); err != nil {
		t.Fatal(err)
	}
	mod := "module example.com/program\n\ngo 1.24\n\nrequire kubescene.dev/clients/go v0.0.0\n\nreplace kubescene.dev/clients/go => " + module + "\n"
	if err := os.WriteFile("go.mod", []byte(mod), 0o644); err != nil {
		t.Fatal(err)
	}
	expect(t, 0, "reconciler.go changed\nreplicaset.go changed\nuntil.go changed\n")
	if out, err := exec.Command(goTool, "vet", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	log, server := recorder(t)
	if out, err := exec.Command(goTool, "run", ".", server).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := []string{
		"sync default/a", "done default/a", `{"name":"replicaset-controller"}`,
		"sync default/b", "done default/b", `{"name":"replicaset-controller"}`,
		`{"name":"replicaset-controller"}`, // the loop that found the queue empty
		"reconcile web", `{"name":"my-operator"}`,
		"reconcile missing", `{"name":"my-operator"}`,
		"tick 1", `{"name":"ticker"}`, "tick 2", `{"name":"ticker"}`,
	}
	if got := log(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// recorder is a server that lets everybody go on, and what it was told in order.
func recorder(t *testing.T) (log func() []string, address string) {
	var mutex sync.Mutex
	var lines []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		defer mutex.Unlock()
		lines = append(lines, r.URL.Query().Get("what")+string(body))
		fmt.Fprint(w, `{"go": true, "scenario": "", "phase": "", "step": {"major": 0, "minor": 0}}`)
	}))
	t.Cleanup(server.Close)
	return func() []string { mutex.Lock(); defer mutex.Unlock(); return lines }, server.URL
}

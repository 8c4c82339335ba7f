package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// expand gives the Go files of the paths: a file itself, those of a directory, with /... also of those below.
func expand(paths []string) (files []string, err error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	seen := map[string]bool{}
	for _, path := range paths {
		found, err := goFiles(path)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if !seen[file] {
				seen[file] = true
				files = append(files, file)
			}
		}
	}
	return files, nil
}

func goFiles(path string) (files []string, err error) {
	if root, deep := strings.CutSuffix(path, "..."); deep && (root == "" || os.IsPathSeparator(root[len(root)-1])) {
		return below(filepath.Clean(root))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return filepath.Glob(filepath.Join(path, "*.go"))
	case filepath.Ext(path) != ".go":
		return nil, fmt.Errorf("%s is no Go file", path)
	}
	return []string{filepath.Clean(path)}, nil
}

// below walks as the go tool does: not into vendor, testdata, names with . or _, and other modules.
func below(root string) (files []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && isApart(path):
			return filepath.SkipDir
		case !entry.IsDir() && filepath.Ext(path) == ".go":
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

func isApart(directory string) bool {
	name := filepath.Base(directory)
	if name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(directory, "go.mod"))
	return err == nil
}

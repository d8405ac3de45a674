package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
)

// duplicate copies a folder as it was at one moment, while a process that is no
// more may still write to it. A copy of files one by one is of no moment: a write
// journal moves what is live in its oldest file to a new one, and such a copy may
// miss both.
func duplicate(from fs.FS, to string) error {
	files, err := still(from)
	if err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// still reads a folder until it finds it twice the same. A process that lost its
// network soon has nothing more to write.
func still(folder fs.FS) (map[string][]byte, error) {
	const looks = 1000
	before, err := readFolder(folder)
	for range looks {
		if err != nil {
			return nil, err
		}
		var now map[string][]byte
		if now, err = readFolder(folder); err == nil && maps.EqualFunc(before, now, bytes.Equal) {
			return now, nil
		}
		before = now
	}
	return nil, fmt.Errorf("the files still change after %d looks", looks)
}

// readFolder reads all files of a folder, by their paths in it. One that goes
// meanwhile is left out.
func readFolder(folder fs.FS) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := fs.WalkDir(folder, ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files[path] = content
		return err
	})
	return files, err
}

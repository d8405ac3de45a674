package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"cartwheel.dev/geo-config/fault"
)

// File is an archive whose sum was found right.
type File struct {
	file    *os.File
	path    string
	summary Summary
}

// Open opens an archive and reads it whole once. Errors: Corrupt (the sum or a
// line is wrong, or the end is missing), NewerVersion, and those of the file.
func Open(path string) (*File, error) {
	const op fault.Op = "archive.Open"
	file, err := os.Open(path)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	f := &File{file: file, path: path}
	if err := f.verify(); err != nil {
		file.Close()
		return nil, fault.Wrap(fault.Corrupt, op, path, err)
	}
	return f, nil
}

// Close closes the file.
func (f *File) Close() error { return f.file.Close() }

// Summary says what the archive holds. Its sum identifies the archive.
func (f *File) Summary() Summary { return f.summary }

// verify reads the whole file.
func (f *File) verify() error {
	lines, sum := 0, sha256.New()
	var last end
	err := f.scan(func(text []byte) error {
		if last.SHA256 != "" {
			return fault.E(fault.Corrupt, "archive.Open", "", "lines follow the end")
		}
		if lines == 0 {
			return f.header(text, func() { lines++; sum.Write(text) })
		}
		if bytes.HasPrefix(text, []byte(`{"lines":`)) {
			return json.Unmarshal(text, &last)
		}
		l, err := parse(text)
		if err != nil {
			return err
		}
		if err := l.check(f.summary.Header); err != nil {
			return fmt.Errorf("line %d: %w", lines+1, err)
		}
		f.summary.count(l)
		lines++
		sum.Write(text)
		return nil
	})
	if err != nil {
		return err
	}
	f.summary.SHA256 = hex.EncodeToString(sum.Sum(nil))
	switch {
	case last.SHA256 == "":
		return fault.E(fault.Corrupt, "archive.Open", "", "the end is missing: the export did not finish")
	case last.Lines != lines || last.SHA256 != f.summary.SHA256:
		return fault.E(fault.Corrupt, "archive.Open", "", "the sum at the end is not that of the lines: the file is damaged")
	}
	return nil
}

// header reads the first line.
func (f *File) header(text []byte, good func()) error {
	h := &f.summary.Header
	if err := json.Unmarshal(text, h); err != nil || h.Format == 0 {
		return fault.E(fault.Invalid, "archive.Open", "", "this is no export of geo-config")
	}
	if h.Format > Format {
		return fault.Errorf(fault.NewerVersion, "archive.Open", "", "the export is of version %d and this program knows up to %d: install the newer program", h.Format, Format)
	}
	good()
	return nil
}

func parse(text []byte) (Line, error) {
	var l Line
	if err := json.Unmarshal(text, &l); err != nil {
		return l, fault.Wrap(fault.Corrupt, "archive.Open", "", err)
	}
	return l, nil
}

// scan calls fn with each line and its end.
func (f *File) scan(fn func(text []byte) error) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewScanner(f.file)
	lines.Buffer(nil, maxLineBytes)
	lines.Split(wholeLines)
	for lines.Scan() {
		if err := fn(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// wholeLines splits after each newline. What follows the last one is cut off by
// a crash, so it is an error.
func wholeLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, fault.E(fault.Corrupt, "archive.Open", "", "the last line has no end: the file was cut off")
	}
	return 0, nil, nil
}

// Each calls fn with every line after the first skip of them, in order.
func (f *File) Each(skip int, fn func(Line) error) error {
	n := -1 // the header
	err := f.scan(func(text []byte) error {
		if n++; n == 0 || n <= skip || n > f.Lines() {
			return nil
		}
		l, err := parse(text)
		if err != nil {
			return err
		}
		return fn(l)
	})
	return fault.Wrap(fault.IO, "archive.Each", f.path, err)
}

// Lines counts the lines between the first and the last.
func (f *File) Lines() int { return f.summary.Rows + f.summary.Records + f.summary.Keys }

// Package examples finds the shell examples of the documents and checks the
// commands in them without running any. Package acceptance runs them. It reads
// the pages and knows the grammars of the programs; it starts no process. Its
// functions keep no state, so any number of goroutines may call them.
//
// An example is a fenced block of the language sh, bash or console. A line of a
// console block that begins with a prompt ("$ ", or "tokyo$ " on a machine
// called tokyo) is a command, and the lines below it are what the command
// prints. A console block without a prompt is what the block above it prints.
// In such a print, "..." stands for any text.
//
// A mark is an HTML comment right above a block, so that no reader sees it:
//
//	<!-- not run: REASON -->    no test runs the block, for this reason
//	<!-- stays: TEXT -->        the command goes on; it is ready when it prints TEXT
//	<!-- file: HOST:NAME -->    the block is the content of a file
package examples

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Marks of a block.
const (
	NotRun = "not run"
	Stays  = "stays"
	File   = "file"
)

// Page is one document.
type Page struct {
	Name   string // its path from the root of the repository
	Blocks []Block
}

// Block is a fenced block of a page.
type Block struct {
	Page     string // the page's name
	Line     int    // of its first line of content, from 1
	Language string
	Lines    []string          // without the indentation of the fence
	Marks    map[string]string // by their words; the value is behind the colon
}

// Shell reports whether the block is an example that a shell runs.
func (b Block) Shell() bool {
	return b.Language == "sh" || b.Language == "bash" || b.Language == "console"
}

// Text is the block's content.
func (b Block) Text() string { return strings.Join(b.Lines, "\n") + "\n" }

// Pages reads every document below root: those at the top and all in docs.
func Pages(root string) ([]Page, error) {
	const op fault.Op = "examples.Pages"
	names, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		return nil, fault.FromOS(op, root, err)
	}
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		return nil, fault.FromOS(op, root, err)
	}
	slices.Sort(names)
	var out []Page
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fault.FromOS(op, name, err)
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return nil, fault.FromOS(op, name, err)
		}
		out = append(out, Page{Name: filepath.ToSlash(rel), Blocks: blocks(filepath.ToSlash(rel), string(text))})
	}
	return out, nil
}

// blocks takes the fenced blocks out of a page's text.
func blocks(page, text string) []Block {
	fence := regexp.MustCompile("^( *)```([a-z]*)$")
	mark := regexp.MustCompile(`^ *<!-- ([a-z ]+?)(?:: (.*?))? -->$`)
	var out []Block
	var open *Block
	var indent string
	marks := map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		if m := fence.FindStringSubmatch(line); m != nil {
			if open != nil {
				out = append(out, *open)
				open, marks = nil, map[string]string{}
				continue
			}
			indent = m[1]
			open = &Block{Page: page, Line: i + 2, Language: m[2], Marks: marks}
			continue
		}
		if open != nil {
			open.Lines = append(open.Lines, strings.TrimPrefix(line, indent))
		} else if m := mark.FindStringSubmatch(line); m != nil {
			marks[m[1]] = m[2]
		} else {
			marks = map[string]string{}
		}
	}
	return out
}

package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// A file is one Go file. Paths are relative to the tree's root.
type file struct {
	path      string
	lines     int
	syntax    *ast.File
	test      bool
	generated bool
}

// A room is one package: its code, and the tests beside it.
type room struct {
	dir   string
	name  string
	files []*file // all of them, sorted by path
	uses  *uses   // nil if Linux builds none of its files
}

// uses is what the type checker found in a package.
type uses struct {
	info  *types.Info
	built map[string]bool // the paths of the files that Linux builds
}

// A tree is what was read of a repository.
type tree struct {
	root  string
	set   *token.FileSet
	rooms []*room // sorted by dir
	docs  []string
}

// read parses every Go file below root.
// Folders named testdata below root are left out, as the go command does.
func read(root string) (*tree, error) {
	const op fault.Op = "house.read"
	root, err := filepath.Abs(root)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, fault.FromOS(op, root, err)
	}
	t := &tree{root: root, set: token.NewFileSet()}
	rooms := map[string]*room{}
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fault.FromOS(op, name, err)
		case d.IsDir() && name != root && skipped(d.Name()):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		return t.add(rooms, name)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		t.rooms = append(t.rooms, r)
	}
	sort.Slice(t.rooms, func(i, j int) bool { return t.rooms[i].dir < t.rooms[j].dir })
	return t, nil
}

// skipped are folders that hold nothing of the repository.
func skipped(name string) bool {
	switch name {
	case "testdata", "node_modules", "bin", "test-results", "cartwheel-demo", "cartwheel-testbed":
		return true
	}
	return strings.HasPrefix(name, ".")
}

func (t *tree) add(rooms map[string]*room, name string) error {
	const op fault.Op = "house.add"
	rel := t.rel(name)
	if strings.HasSuffix(rel, ".md") {
		t.docs = append(t.docs, rel)
	}
	if !strings.HasSuffix(rel, ".go") {
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fault.FromOS(op, rel, err)
	}
	syntax, err := parser.ParseFile(t.set, name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, rel, err)
	}
	dir := path.Dir(rel)
	r := rooms[dir]
	if r == nil {
		r = &room{dir: dir}
		rooms[dir] = r
	}
	f := &file{
		path: rel, syntax: syntax, lines: strings.Count(string(data), "\n"),
		test: strings.HasSuffix(rel, "_test.go"), generated: ast.IsGenerated(syntax),
	}
	if !f.test {
		r.name = syntax.Name.Name
	}
	r.files = append(r.files, f)
	return nil
}

func (t *tree) rel(name string) string {
	rel, err := filepath.Rel(t.root, name)
	if err != nil {
		return name
	}
	return filepath.ToSlash(rel)
}

// at is the place of a node for people: its file and line.
func (t *tree) at(pos token.Pos) (rel string, line int) {
	p := t.set.Position(pos)
	return t.rel(p.Filename), p.Line
}

// code returns the files that are neither tests nor generated.
func (r *room) code() []*file {
	var out []*file
	for _, f := range r.files {
		if !f.test && !f.generated {
			out = append(out, f)
		}
	}
	return out
}

package house

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// listed is what the go command says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// resolve checks the types of every package. Imports are read from the
// compiler's own output, so each package is checked alone.
func (t *tree) resolve() error {
	const op fault.Op = "house.resolve"
	packages, err := t.list()
	if err != nil {
		return err
	}
	exports, dirs := map[string]string{}, map[string]listed{}
	for _, p := range packages {
		exports[p.ImportPath], dirs[t.rel(p.Dir)] = p.Export, p
	}
	imports := importer.ForCompiler(t.set, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fault.E(fault.NotFound, op, name, "the package is not compiled")
		}
		return os.Open(exports[name])
	})
	for _, r := range t.rooms {
		p, ok := dirs[r.dir]
		if !ok || len(p.GoFiles) == 0 {
			continue
		}
		u := &uses{built: map[string]bool{}, info: &types.Info{
			Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		}}
		for _, name := range p.GoFiles {
			u.built[t.rel(filepath.Join(p.Dir, name))] = true
		}
		var syntax []*ast.File
		for _, f := range r.files {
			if u.built[f.path] {
				syntax = append(syntax, f.syntax)
			}
		}
		if _, err := (&types.Config{Importer: imports}).Check(p.ImportPath, t.set, syntax, u.info); err != nil {
			return fault.Wrap(fault.Invalid, op, r.dir, err)
		}
		r.uses = u
	}
	return nil
}

// list asks the go command which files Linux builds and where the compiled
// imports are. It compiles those that are not in its cache.
func (t *tree) list() ([]listed, error) {
	const op fault.Op = "house.list"
	args := []string{"list", "-e", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, r := range t.rooms {
		args = append(args, "./"+r.dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = t.root, append(os.Environ(), "GOOS=linux")
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		return nil, fault.E(fault.Invalid, op, "go list", strings.TrimSpace(told.String()))
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return nil, fault.Wrap(fault.Invalid, op, "go list", err)
		}
		packages = append(packages, p)
	}
	return packages, nil
}

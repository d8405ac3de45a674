package house

import (
	"fmt"
	"go/ast"
	"go/types"
	"regexp"
	"strconv"
	"strings"
)

// longTestName is the most letters that test-long does not count.
const longTestName = 50

// names measures how many packages share each name.
func (t *tree) names() []Figure {
	dirs := map[string][]string{}
	for _, r := range t.rooms {
		if r.name != "" && r.name != "main" {
			dirs[r.name] = append(dirs[r.name], r.dir)
		}
	}
	var out []Figure
	for name, places := range dirs {
		out = append(out, Figure{Measure: "name", Subject: name, Value: float64(len(places)), Where: places[0], Places: places})
	}
	return out
}

// vocabulary counts the names of plain numbers and texts that a package takes
// from geo-config.
func (t *tree) vocabulary(r *room) []Figure {
	if r.uses == nil {
		return nil
	}
	f := Figure{Measure: "vocabulary", Subject: r.dir, Where: r.dir}
	names := map[string]int{}
	for id, object := range r.uses.info.Uses {
		named, ok := object.(*types.TypeName)
		if !ok || named.Pkg() == nil || named.Pkg().Name() != "geoconfig" || r.name == "geoconfig" {
			continue
		}
		rel, _ := t.at(id.Pos())
		if _, plain := named.Type().Underlying().(*types.Basic); plain && !t.generated(r, rel) {
			f.Value++
			names[named.Name()]++
		}
	}
	for _, name := range often(names) {
		f.Places = append(f.Places, fmt.Sprintf("geoconfig.%s %d", name, names[name]))
	}
	if f.Value == 0 {
		return nil
	}
	return []Figure{f}
}

func (t *tree) generated(r *room, rel string) bool {
	for _, f := range r.files {
		if f.path == rel {
			return f.generated
		}
	}
	return false
}

// ops counts the op constants that do not name their function.
func (t *tree) ops(r *room) []Figure {
	f := Figure{Measure: "op", Subject: r.dir, Where: r.dir}
	for _, file := range r.code() {
		for _, d := range file.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			want := r.name + "." + fn.Name.Name
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if got, ok := opText(n); ok && got != want {
					rel, line := t.at(n.Pos())
					f.Value++
					f.Places = append(f.Places, fmt.Sprintf("%s:%d: %q in %s", rel, line, got, want))
				}
				return true
			})
		}
	}
	if f.Value == 0 {
		return nil
	}
	return []Figure{f}
}

// opText is the text of a constant of type fault.Op.
func opText(n ast.Node) (string, bool) {
	s, ok := n.(*ast.ValueSpec)
	if !ok || len(s.Values) != 1 {
		return "", false
	}
	kind, ok := s.Type.(*ast.SelectorExpr)
	if !ok || kind.Sel.Name != "Op" {
		return "", false
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return "", false
	}
	text, err := strconv.Unquote(literal.Value)
	return text, err == nil
}

var testForm = regexp.MustCompile(`^Test[A-Z0-9][A-Za-z0-9]*_[A-Z0-9][A-Za-z0-9]*$`)

// tests counts the tests of a package whose names are long or have no subject.
func (t *tree) tests(r *room) []Figure {
	long := Figure{Measure: "test-long", Subject: r.dir, Where: r.dir}
	form := Figure{Measure: "test-form", Subject: r.dir, Where: r.dir}
	all := 0
	for _, f := range r.files {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !f.test || !isTest(fn) {
				continue
			}
			all++
			_, line := t.at(fn.Pos())
			place := fmt.Sprintf("%s:%d: %s", f.path, line, fn.Name.Name)
			if len(fn.Name.Name) > longTestName {
				long.Value, long.Places = long.Value+1, append(long.Places, place)
			}
			if !testForm.MatchString(fn.Name.Name) {
				form.Value, form.Places = form.Value+1, append(form.Places, place)
			}
		}
	}
	var out []Figure
	for _, f := range []Figure{long, form} {
		if f.Value > 0 {
			f.Detail = "of " + counted(all, "test")
			out = append(out, f)
		}
	}
	return out
}

// isTest says whether the go command runs a function as a test.
func isTest(fn *ast.FuncDecl) bool {
	params := fn.Type.Params.List
	if fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || len(params) != 1 {
		return false
	}
	star, ok := params[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	kind, ok := star.X.(*ast.SelectorExpr)
	return ok && kind.Sel.Name == "T"
}

package house

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
)

// walks are the methods whose calls are followed: what the kernel asks most.
var walks = []struct{ dir, typeName, method string }{{"clients/cartwheel", "Client", "Lookup"}}

// walked measures the walks that begin in a package.
func (t *tree) walked(r *room) []Figure {
	var out []Figure
	for _, w := range walks {
		if w.dir != r.dir {
			continue
		}
		if way, pos := t.walkFrom(r, w.typeName, w.method); way.functions > 0 {
			rel, line := t.at(pos)
			out = append(out, Figure{
				Measure: "returns", Subject: r.dir + "." + w.typeName + "." + w.method, Value: float64(way.returns), Where: rel, Line: line,
				Detail: counted(way.functions, "function") + ", " + counted(len(way.files)-way.returns, "file"), Places: way.files,
			})
		}
	}
	return out
}

// A walk is the way of one method's calls through the files of its package.
type walk struct {
	functions int
	files     []string // each stay in a file, in order
	returns   int      // stays in a file that was visited before
}

// walkFrom follows the static calls from a method of a type, depth first.
func (t *tree) walkFrom(r *room, typeName, method string) (walk, token.Pos) {
	var w walk
	if r.uses == nil {
		return w, token.NoPos
	}
	bodies := map[types.Object]*ast.FuncDecl{}
	var start *ast.FuncDecl
	for _, f := range r.code() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || !r.uses.built[f.path] {
				continue
			}
			bodies[r.uses.info.Defs[fn.Name]] = fn
			if fn.Name.Name == method && receiver(fn) == typeName {
				start = fn
			}
		}
	}
	if start == nil {
		return w, token.NoPos
	}
	seen := map[*ast.FuncDecl]bool{}
	visited := map[string]bool{}
	var visit func(fn *ast.FuncDecl)
	visit = func(fn *ast.FuncDecl) {
		if fn == nil || seen[fn] {
			return
		}
		seen[fn] = true
		w.functions++
		rel, _ := t.at(fn.Pos())
		name := path.Base(rel)
		if len(w.files) == 0 || w.files[len(w.files)-1] != name {
			w.files = append(w.files, name)
			if visited[name] {
				w.returns++
			}
			visited[name] = true
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if called, ok := r.uses.info.Uses[calledName(call.Fun)].(*types.Func); ok {
					visit(bodies[called.Origin()])
				}
			}
			return true
		})
	}
	visit(start)
	return w, start.Pos()
}

// calledName is the identifier that a call names, or nil.
func calledName(e ast.Expr) *ast.Ident {
	switch e := e.(type) {
	case *ast.Ident:
		return e
	case *ast.SelectorExpr:
		return e.Sel
	case *ast.ParenExpr:
		return calledName(e.X)
	case *ast.IndexExpr:
		return calledName(e.X)
	case *ast.IndexListExpr:
		return calledName(e.X)
	}
	return nil
}

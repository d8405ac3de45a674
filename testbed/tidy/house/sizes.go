package house

import "go/ast"

// shortFile is the number of lines from which a file is not short.
const shortFile = 30

// sizes measures one file, its functions and its structs.
func (t *tree) sizes(r *room, f *file) []Figure {
	if f.test || f.generated {
		return nil
	}
	out := []Figure{{Measure: "file", Subject: f.path, Value: float64(f.lines), Where: f.path, Line: 1}}
	if f.lines < shortFile {
		out = append(out, Figure{Measure: "short", Subject: f.path, Value: float64(f.lines), Where: f.path, Line: 1})
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			_, first := t.at(n.Pos())
			_, last := t.at(n.End())
			name := n.Name.Name
			if on := receiver(n); on != "" {
				name = on + "." + name
			}
			out = append(out, Figure{Measure: "function", Subject: r.dir + "." + name, Value: float64(last - first + 1), Where: f.path, Line: first})
		case *ast.TypeSpec:
			if s, ok := n.Type.(*ast.StructType); ok {
				_, line := t.at(n.Pos())
				out = append(out, Figure{Measure: "fields", Subject: r.dir + "." + n.Name.Name, Value: float64(fields(s)), Where: f.path, Line: line})
			}
		}
		return true
	})
	return out
}

func fields(s *ast.StructType) int {
	n := 0
	for _, f := range s.Fields.List {
		n += max(len(f.Names), 1)
	}
	return n
}

// methods counts the methods of each type. A method that has one form for each
// system counts once.
func (t *tree) methods(r *room) []Figure {
	type counts struct {
		names  map[string]bool
		facade bool
		files  map[string]bool
		where  string
		line   int
	}
	all := map[string]*counts{}
	for _, f := range r.code() {
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || receiver(fn) == "" {
				continue
			}
			c := all[receiver(fn)]
			if c == nil {
				c = &counts{names: map[string]bool{}, files: map[string]bool{}, facade: true}
				c.where, c.line = t.at(fn.Pos())
				all[receiver(fn)] = c
			}
			c.names[fn.Name.Name], c.files[f.path] = true, true
			c.facade = c.facade && (fn.Body == nil || len(fn.Body.List) <= 1)
		}
	}
	t.declared(r, func(name string, rel string, line int) {
		if c := all[name]; c != nil {
			c.where, c.line = rel, line
		}
	})
	var out []Figure
	for name, c := range all {
		f := Figure{Measure: "methods", Subject: r.dir + "." + name, Value: float64(len(c.names)), Where: c.where, Line: c.line, Detail: "in " + counted(len(c.files), "file")}
		if c.facade {
			f.Measure = "facade"
		}
		out = append(out, f)
	}
	return out
}

// declared calls fn for each type that is declared at the top of a file.
func (t *tree) declared(r *room, fn func(name, rel string, line int)) {
	for _, f := range r.code() {
		for _, d := range f.syntax.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					rel, line := t.at(s.Pos())
					fn(s.Name.Name, rel, line)
				}
			}
		}
	}
}

// receiver is the name of the type that a method is declared on, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) != 1 {
		return ""
	}
	e := fn.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A source is one Go file of the project, parsed with its comments.
type source struct {
	rel  string
	set  *token.FileSet
	file *ast.File
}

// sources calls fn for every Go file that people write.
func sources(t *testing.T, fn func(s source)) {
	t.Helper()
	files(t, func(rel string) {
		if !goFile(rel) || strings.Contains(rel, "/testdata/") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join(root(t), rel), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", rel, err)
			return
		}
		fn(source{rel, set, f})
	})
}

// at is where a node stands, for people.
func (s source) at(n ast.Node) string {
	p := s.set.Position(n.Pos())
	return s.rel + ":" + strconv.Itoa(p.Line)
}

// imports reports whether the file imports a package.
func (s source) imports(path string) bool {
	for _, i := range s.file.Imports {
		if i.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}

// functions calls fn for every function, with its comment on one line.
func (s source) functions(fn func(d *ast.FuncDecl, doc string)) {
	for _, d := range s.file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			fn(f, strings.Join(strings.Fields(f.Doc.Text()), " "))
		}
	}
}

// receiver names the type of a method, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// TestLocked_IsInTheNameAndTheComment holds names and comments of functions
// that need a mutex held to each other. Where a package has no mutexes, Locked
// means something else.
func TestLocked_IsInTheNameAndTheComment(t *testing.T) {
	says := regexp.MustCompile(`\b(mutex|mu)\b[^.;]*\b(is|are) held|\bwith [^.;]*\b(mutex|mu)\b held|[Cc]allers? holds? [^;]*\b(mutex|mu)\b`)
	synced := map[string]bool{}
	sources(t, func(s source) {
		if s.imports("sync") {
			synced[filepath.Dir(s.rel)] = true
		}
	})
	sources(t, func(s source) {
		if !synced[filepath.Dir(s.rel)] {
			return
		}
		s.functions(func(d *ast.FuncDecl, doc string) {
			needs, named := says.MatchString(doc), strings.HasSuffix(d.Name.Name, "Locked")
			switch {
			case needs && !named:
				t.Errorf("%s: %s needs a mutex held: its name ends in Locked", s.at(d), d.Name.Name)
			case named && !needs:
				t.Errorf("%s: the comment of %s does not say which mutex is held", s.at(d), d.Name.Name)
			}
		})
	})
}

// TestOptions_AreCompletedByWithDefaults looks at the methods of options that
// take nothing. One that returns the options completes them, and has the name
// for it; none completes them in place. withSizes is a step of
// withDefaults.
func TestOptions_AreCompletedByWithDefaults(t *testing.T) {
	options := regexp.MustCompile(`(Options|Config|Limits|Times|Deps)$`)
	fine := regexp.MustCompile(`^(withDefaults|WithDefaults|withSizes|Clone)$`)
	sources(t, func(s source) {
		s.functions(func(d *ast.FuncDecl, _ string) {
			of := receiver(d)
			if !options.MatchString(of) || d.Type.Params.NumFields() > 0 {
				return
			}
			results := d.Type.Results.NumFields()
			first := ""
			if results > 0 {
				if id, ok := d.Type.Results.List[0].Type.(*ast.Ident); ok {
					first = id.Name
				}
			}
			if first == of && !fine.MatchString(d.Name.Name) {
				t.Errorf("%s: %s completes %s: call it withDefaults", s.at(d), d.Name.Name, of)
			}
			if _, pointer := d.Recv.List[0].Type.(*ast.StarExpr); pointer && (results == 0 || first == "error") && assigns(d) {
				t.Errorf("%s: %s changes %s in place: let withDefaults return a copy", s.at(d), d.Name.Name, of)
			}
		})
	})
}

// assigns reports whether a method assigns to a field of its receiver.
func assigns(d *ast.FuncDecl) bool {
	if len(d.Recv.List[0].Names) == 0 || d.Body == nil {
		return false
	}
	name, found := d.Recv.List[0].Names[0].Name, false
	ast.Inspect(d.Body, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for _, to := range a.Lhs {
			if sel, ok := to.(*ast.SelectorExpr); ok {
				if id, ok := sel.X.(*ast.Ident); ok && id.Name == name {
					found = true
				}
			}
		}
		return true
	})
	return found
}

// TestFields_OfLoggersAndClocksHaveOneName holds the names of what is handed
// in: Logger, Clock for the time since the machine was switched on, Wall for
// the time of day. Private fields may call a clock as they like, and a function
// that answers when something was is no clock.
func TestFields_OfLoggersAndClocksHaveOneName(t *testing.T) {
	names := map[string]string{
		"*slog.Logger": "Logger", "func() time.Duration": "Clock", "boottime.Func": "Clock", "func() time.Time": "Wall",
	}
	clocks := regexp.MustCompile(`^(Now|Boot|Time|BootTime|Clock|Wall|WallClock|WallTime)$`)
	sources(t, func(s source) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			st, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range st.Fields.List {
				want := names[types.ExprString(f.Type)]
				for _, name := range f.Names {
					wrong := clocks.MatchString(name.Name)
					if want == "Logger" {
						wrong = name.Name != "logger"
					}
					if want != "" && name.Name != want && wrong {
						t.Errorf("%s: a field of type %s is named %s, not %s", s.at(name), types.ExprString(f.Type), want, name.Name)
					}
				}
			}
			return true
		})
	})
}

// TestBounds_OfQueuesHaveNames wants a named constant, whose comment says what
// happens at the bound, for the room of every channel that is a queue. A few
// places are for goroutines that are counted nearby.
func TestBounds_OfQueuesHaveNames(t *testing.T) {
	const few = 8
	sources(t, func(s source) {
		if strings.HasSuffix(s.rel, "_test.go") {
			return
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) != 2 {
				return true
			}
			if f, ok := c.Fun.(*ast.Ident); !ok || f.Name != "make" {
				return true
			}
			if _, ok := c.Args[0].(*ast.ChanType); !ok {
				return true
			}
			if room, ok := c.Args[1].(*ast.BasicLit); ok {
				if n, err := strconv.Atoi(room.Value); err != nil || n > few {
					t.Errorf("%s: a queue has room for %s: name that number, and say what happens when it is reached", s.at(c), room.Value)
				}
			}
			return true
		})
	})
}

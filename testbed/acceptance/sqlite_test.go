package acceptance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestSQLite_WorksFromTwoMounts(t *testing.T) {
	d := startPrograms(t, "sqlite3")
	dir := d.mkdir("db")
	const each = 150
	for _, mode := range []string{"delete", "truncate", "persist"} {
		t.Run(mode, func(t *testing.T) {
			name := mode + ".db"
			d.shell(dir[0], "sqlite3 "+name+" 'create table counter(n int); insert into counter values(0); create table log(site text, i int, unique(site, i));'")
			var g errgroup.Group
			for i, path := range dir[:2] {
				g.Go(func() error {
					var script strings.Builder
					fmt.Fprintf(&script, ".bail on\n.timeout 120000\npragma journal_mode=%s;\npragma synchronous=full;\n", mode)
					for n := range each {
						fmt.Fprintf(&script, "begin immediate; update counter set n = n + 1; insert into log values('%s', %d); commit;\n", d.Sites[i].Name, n)
					}
					out, err := try("sh", "-c", "sqlite3 '"+filepath.Join(path, name)+"' <<'END'\n"+script.String()+"END")
					if err != nil {
						return fmt.Errorf("at %s: %w: %s", d.Sites[i].Name, err, tail([]byte(out), 1000))
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
			for i, path := range dir {
				got := strings.TrimSpace(d.run("sqlite3", filepath.Join(path, name), "select n, (select count(*) from log) from counter; pragma integrity_check;"))
				if want := fmt.Sprintf("%d|%d\nok", 2*each, 2*each); got != want {
					t.Errorf("at %s: got %q, want %q", d.Sites[i].Name, got, want)
				}
			}
		})
	}
}

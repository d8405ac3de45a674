package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"cartwheel.dev/geo-config/cockroach/database"
	"cartwheel.dev/geo-config/storetest/postgrestest"
)

// TestScripts_OnADatabase runs the transcripts in testdata/database, each on a
// PostgreSQL of its own, whose URL is in CARTWHEEL_DATABASE and in the file url.
// A word of ours: `database STATEMENT...` runs a statement on it.
func TestScripts_OnADatabase(t *testing.T) {
	files, err := filepath.Glob("testdata/database/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v (%v), want transcripts", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { runOnDatabase(t, file) })
	}
}

func runOnDatabase(t *testing.T, file string) {
	url := postgrestest.Start(t)
	testscript.Run(t, testscript.Params{
		Files: []string{file},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv(database.Variable, url)
			return os.WriteFile(filepath.Join(e.WorkDir, "url"), []byte(url+"\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits,
			"database": func(ts *testscript.TestScript, _ bool, args []string) {
				ctx := context.Background()
				conn, err := pgx.Connect(ctx, url)
				ts.Check(err)
				defer conn.Close(ctx)
				_, err = conn.Exec(ctx, strings.Join(args, " "))
				ts.Check(err)
			},
		},
	})
}

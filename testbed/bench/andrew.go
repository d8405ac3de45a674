package bench

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// The Andrew tree, as BeeFS used it: 21 folders, 515 files, 9 MB. Ours is made
// of C files that compile, so that the last phase is real work.
const (
	andrewDirs  = 21
	andrewFiles = 515
	andrewBytes = 9_000_000
	compiled    = 40 // of the files, in the compile phase
)

type andrewFile struct {
	path string
	data []byte
}

func andrewTree() ([]string, []andrewFile) {
	var dirs []string
	for d := range andrewDirs {
		dirs = append(dirs, fmt.Sprintf("part%02d", d))
	}
	var files []andrewFile
	for i := range andrewFiles {
		var b bytes.Buffer
		fmt.Fprintf(&b, "static int values_%d[] = {\n", i)
		for n := 0; b.Len() < andrewBytes/andrewFiles-120; n++ {
			fmt.Fprintf(&b, "\t%d, /* step %d of part %d */\n", n*i, n, i)
		}
		fmt.Fprintf(&b, "};\nint part_%d(int n) { return values_%d[n]; }\n", i, i)
		files = append(files, andrewFile{filepath.Join(dirs[i%andrewDirs], fmt.Sprintf("part%03d.c", i)), b.Bytes()})
	}
	return dirs, files
}

// andrew: the five phases (mkdir, copy, stat, grep, compile), by 1 to 20
// clients at once, each on a tree of its own. The unit is milliseconds a client.
func andrew(ctx context.Context, p place) error {
	dirs, files := andrewTree()
	phases := []struct {
		name string
		run  func(root string) error
	}{
		{"mkdir", func(root string) error {
			for _, d := range dirs {
				if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
					return err
				}
			}
			return nil
		}},
		{"copy", func(root string) error {
			for _, f := range files {
				if err := writeFile(filepath.Join(root, f.path), f.data); err != nil {
					return err
				}
			}
			return nil
		}},
		{"stat", walk(func(path string) error { _, err := os.Lstat(path); return err })},
		{"grep", walk(func(path string) error {
			data, err := os.ReadFile(path)
			if err == nil && bytes.Contains(data, []byte("no such words")) {
				return fmt.Errorf("%s: found what is not there", path)
			}
			return err
		})},
		{"compile", func(root string) error { return compile(ctx, root, files) }},
	}
	for _, clients := range p.opt.AndrewClients {
		for _, phase := range phases {
			if err := ctx.Err(); err != nil {
				return err
			}
			g, _ := errgroup.WithContext(ctx)
			took, err := timed(func() error {
				for c := range clients {
					g.Go(func() error { return phase.run(filepath.Join(p.dir, fmt.Sprintf("c%d-%d", clients, c))) })
				}
				return g.Wait()
			})
			if err != nil {
				return err
			}
			p.out(fmt.Sprintf("andrew %s, %d clients", phase.name, clients), "ms", took*1000)
		}
	}
	return nil
}

func walk(fn func(path string) error) func(root string) error {
	return func(root string) error {
		return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return fn(path)
		})
	}
}

func compile(ctx context.Context, root string, files []andrewFile) error {
	for _, f := range files[:compiled] {
		path := filepath.Join(root, f.path)
		out, err := exec.CommandContext(ctx, "cc", "-c", "-O1", path, "-o", path[:len(path)-2]+".o").CombinedOutput()
		if err != nil {
			return fmt.Errorf("cc %s: %w: %s", f.path, err, out)
		}
	}
	return nil
}

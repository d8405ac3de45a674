package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

// TestRun_RefusesAFolderOfOthers gives folders that another user may have
// filled. A demo.json names paths to be unmounted, and keys go into the folder.
func TestRun_RefusesAFolderOfOthers(t *testing.T) {
	stranger := func(path string) error { return os.Lchown(path, 12345, 12345) }
	for _, test := range []struct {
		name string
		root bool // only root can set it up
		set  func(dir string) error
		say  string
	}{
		{"another user's folder", true, func(dir string) error { return errors.Join(os.Mkdir(dir, 0o755), stranger(dir)) }, "another user"},
		{"another user's link to a folder", false, func(dir string) error { return os.Symlink(t.TempDir(), dir) }, "no directory"},
		{"a folder that others write to", false, func(dir string) error { return errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, 0o777)) }, "chmod go-w"},
		{"another user's state", true, func(dir string) error {
			state := filepath.Join(dir, ".state")
			return errors.Join(os.MkdirAll(state, 0o700), stranger(state))
		}, "another user"},
		{"a folder in one where all may move it", false, func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) }, "sticky"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && os.Geteuid() != 0 {
				t.Skip("needs root to make another user's files")
			}
			dir := filepath.Join(t.TempDir(), "cartwheel-demo")
			if err := test.set(dir); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := Run(ctx, Options{Dir: dir, Sites: []string{"one"}, Out: io.Discard, Cartwheeld: "/nonexistent", Cartwheel: "/nonexistent"})
			if !fault.Is(err, fault.Permission) || !strings.Contains(err.Error(), test.say) || !strings.Contains(err.Error(), filepath.Dir(dir)) {
				t.Errorf("got %v, want the folder and %q", err, test.say)
			}
		})
	}
}

func TestSave_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"contact.json", "demo.json"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Symlink(victim, path+".new"), os.Symlink(victim, path)); err != nil {
			t.Fatal(err)
		}
	}
	file := contact.File{Cluster: "c", Nodes: []string{"/ip4/127.0.0.1/tcp/1/p2p/x"}}
	if err := errors.Join(file.Save(filepath.Join(dir, "contact.json")), writeJSON(filepath.Join(dir, "demo.json"), State{PID: 1})); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(victim); err != nil || string(data) != "precious" {
		t.Errorf("a link was followed: the file has %q, %v", data, err)
	}
	if got, err := contact.Load(filepath.Join(dir, "contact.json")); err != nil || got.Cluster != ids.Cluster("c") {
		t.Errorf("the contact file: %+v, %v", got, err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "demo.json")); err != nil || info.Mode() != 0o644 {
		t.Errorf("demo.json: %v, %v", info, err)
	}
}

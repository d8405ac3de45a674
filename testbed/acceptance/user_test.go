package acceptance

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"golang.org/x/crypto/ssh"
)

// nobody is a user without any rights.
const nobody = 65534

// lent copies a command to where anybody may run it.
func lent(t *testing.T, name, dir string) string {
	t.Helper()
	from, err := os.Open(binary(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(to, from)
	}
	if err == nil {
		err = to.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return to.Name()
}

func TestDemo_NeedsNoRoot(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	dir, err := os.MkdirTemp("", "user")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cartwheelHere := lent(t, "cartwheel", dir)
	lent(t, "cartwheeld", dir)
	t.Setenv("HOME", dir)
	d := startDemoAs(t, cartwheelHere, &syscall.Credential{Uid: nobody, Gid: nobody}, filepath.Join(dir, "demo"), "--no-mounts")
	file, err := contact.Load(d.Contact)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	who := mount.Caller{UID: nobody, GID: nobody}
	if _, err := c.Mkdir(ctx, who, mount.Root, "mine", 0o755); err != nil {
		t.Errorf("the user cannot make a directory in the tree: %v", err)
	}
	other := mount.Caller{UID: nobody - 1, GID: nobody - 1}
	if _, err := c.Mkdir(ctx, other, mount.Root, "theirs", 0o755); err == nil {
		t.Error("so can another user")
	}
}

func TestUser_ActsByAnSSHKey(t *testing.T) {
	d := startDemo(t, "--no-mounts")
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	private, err := ssh.MarshalPrivateKey(key, "ann@desk")
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(file, pem.EncodeToMemory(private), 0o600); err != nil {
		t.Fatal(err)
	}
	own := d.contactWith("ann.json", "user_key", file)
	refused(t, 7, []string{"no user of this cluster has this key"}, binary(t, "cartwheel"), "slice", "ls", "--contact", own)
	admin := filepath.Join(d.dir, "admin.json")
	line := string(ssh.MarshalAuthorizedKey(public))
	d.run(binary(t, "cartwheel"), "user", "add", "ann", "--key", line, "--uid", "1000", "--gid", "1000", "--admin", admin)
	if said := d.run(binary(t, "cartwheel"), "slice", "ls", "--contact", own); !strings.Contains(said, "tokyo") {
		t.Errorf("slice ls says\n%s", said)
	}
}

//go:build linux

package cartwheel_test

import (
	"fmt"
	"os"
	"testing"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/trace"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/server/servertest"
)

// nameless is an open file without a name.
type nameless struct {
	node   mount.Inode
	handle mount.Handle
}

// TestForsake_ClosesWaitForNoNode closes many nameless files at once, with
// unsent writes, while all operations are lost. No close waits for a node, and
// what was written is not sent.
func TestForsake_ClosesWaitForNoNode(t *testing.T) {
	many := 200
	if os.Getenv("CARTWHEEL_WHOLE") == "1" {
		many = 10_000
	}
	c := servertest.Start(t, servertest.Options{Sites: []string{"a"}})
	cl := opened(t, c, cartwheel.Options{Site: "a", DirtyBytes: 1 << 30})
	ctx := withTimeout(t)
	data := noise(16 << 10)
	var files []nameless
	for i := range many {
		flags := mount.OpenWrite | mount.OpenExclusive
		var e mount.Entry
		var o mount.Opened
		var err error
		if i%2 == 0 {
			e, o, err = cl.CreateNameless(ctx, nobody, mount.Root, 0o600, flags)
		} else {
			name := fmt.Sprintf("file%d", i)
			if e, o, err = cl.Create(ctx, nobody, mount.Root, name, 0o600, flags); err == nil {
				err = cl.Unlink(ctx, nobody, mount.Root, name)
			}
		}
		if err == nil {
			_, err = cl.Write(ctx, nobody, e.Node, o.Handle, 0, data, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, nameless{e.Node, o.Handle})
	}
	puts := cl.Count(method.Put, method.Operate)
	for i, f := range files {
		err := soon(t, fmt.Sprintf("the close of file %d", i), func() error {
			err := cl.Flush(ctx, nobody, f.node, f.handle, 1)
			cl.Release(f.node, f.handle, 1, false)
			return err
		})
		if err != nil {
			t.Fatalf("closing file %d: %v", i, err)
		}
	}
	cl.Lose()
	by, _ := trips(cl, func() {
		servertest.Await(ctx, t, "letting go of the files", func() error {
			if left := len(cl.Unsaved()); left > 0 {
				return fmt.Errorf("%d are left", left)
			}
			return nil
		})
	})
	if x := by[trace.WriteBehind.String()]; x.Calls+uint64(puts.Load()) != 0 {
		t.Errorf("%d calls were made to save files that nobody can reach", x.Calls)
	}
	if err := cl.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
}

// TestForsake_SendsAFileThatAnotherHasOpen closes a removed file with unsent
// writes while another mount has it open. That one reads them.
func TestForsake_SendsAFileThatAnotherHasOpen(t *testing.T) {
	c := servertest.Start(t, servertest.Options{})
	writer, reader := clientOf(t, c, "a"), clientOf(t, c, "b")
	put(t, writer, mount.Root, "shared", "before", mount.OpenExclusive)
	w, wh := openIn(t, writer, "shared")
	ctx := withTimeout(t)
	e, err := reader.Lookup(ctx, nobody, mount.Root, "shared")
	if err != nil {
		t.Fatal(err)
	}
	o, err := reader.Open(ctx, nobody, e.Node, mount.OpenRead|mount.OpenDirect) // it reads what is current
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Unlink(ctx, nobody, mount.Root, "shared"); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(ctx, nobody, w, wh, 0, []byte("behind"), 0); err != nil {
		t.Fatal(err)
	}
	if err := writer.Flush(ctx, nobody, w, wh, 1); err != nil {
		t.Fatal(err)
	}
	writer.Release(w, wh, 1, false)
	got := make([]byte, 6)
	servertest.Await(ctx, t, "the other mount to read what was written", func() error {
		n, err := reader.Read(ctx, nobody, e.Node, o.Handle, 0, got)
		if err == nil && string(got[:n]) != "behind" {
			err = fmt.Errorf("it reads %q", got[:n])
		}
		return err
	})
	reader.Release(e.Node, o.Handle, 1, false)
}

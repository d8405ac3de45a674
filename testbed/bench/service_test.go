package bench

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/wire"
)

// serviceOf opens the chunk service of a cluster in this process.
func serviceOf(ctx context.Context, t *testing.T, c *servertest.Cluster) *service {
	t.Helper()
	key := filepath.Join(t.TempDir(), "user.key")
	encoded, err := c.Users["root"].Marshal()
	if err == nil {
		err = os.WriteFile(key, encoded, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := contact.File{Cluster: servertest.ClusterID, UserKey: key}
	for _, n := range c.Nodes {
		file.Nodes = append(file.Nodes, n.Address()+"/p2p/"+string(n.ID()))
	}
	client, err := cartwheel.Open(ctx, cartwheel.Options{Contact: file, Site: "a", Name: t.Name(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{client: client, chunks: client.Chunks()}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	e, o, err := client.Create(ctx, mount.Caller{}, mount.Root, "service", 0o644, mount.OpenWrite)
	if err != nil {
		t.Fatal(err)
	}
	client.Release(e.Node, o.Handle, 1, false)
	s.object = ids.Object(e.Attr.Ino)
	return s
}

func TestService_HoldsWhatWasWrittenOnEveryNode(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	c := servertest.Start(t, servertest.Options{})
	s := serviceOf(ctx, t, c)
	const n = 5<<20 + 12345
	p := place{opt: Options{Seed: 7}}
	if err := s.write(ctx, p, n); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	read := 0
	if err := s.read(ctx, func(body []byte) { mu.Lock(); read += len(body); mu.Unlock() }); err != nil || read != n {
		t.Fatalf("%d bytes were read back, %v, want %d", read, err, n)
	}
	var want bytes.Buffer
	if err := large(ctx, p.random(n), n, func(piece []byte) error { want.Write(piece); return nil }); err != nil {
		t.Fatal(err)
	}
	direct := c.Connect("root")
	for i, node := range c.Nodes {
		var got bytes.Buffer
		for _, part := range s.batches {
			for j, a := range part.addresses {
				body, err := direct.Call(ctx, node.ID(), wire.Chunk, method.Get, &pb.GetRequest{Slice: uint32(s.object.Slice()), Addresses: a[:]}, nil, &pb.GetResponse{})
				if err != nil || len(body.Bytes()) != part.lengths[j] {
					t.Fatalf("node %d: %d bytes of %d, %v", i, len(body.Bytes()), part.lengths[j], err)
				}
				got.Write(body.Bytes())
				body.Release()
			}
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("node %d does not hold the bytes that a file would", i)
		}
	}
	if err := s.write(ctx, p, n); !fault.Is(err, fault.Exists) {
		t.Errorf("the same bytes once more: got %v, want that they are there already", err)
	}
}

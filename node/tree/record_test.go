package tree

import (
	"bytes"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"pgregory.net/rapid"
)

func drawBytes(t *rapid.T, limit int, what string) []byte {
	return rapid.SliceOfN(rapid.Byte(), 0, limit).Draw(t, what)
}

func drawInode(t *rapid.T) *Inode {
	some := func(what string) bool { return rapid.Bool().Draw(t, what) }
	n := &Inode{
		Object: 9, Mode: rapid.Uint32().Draw(t, "mode"), UID: rapid.Uint32().Draw(t, "uid"), GID: rapid.Uint32().Draw(t, "gid"),
		Nlink: rapid.Uint32().Draw(t, "nlink"), Atime: rapid.Int64().Draw(t, "atime"), Mtime: rapid.Int64().Draw(t, "mtime"),
		Ctime: rapid.Int64().Draw(t, "ctime"), Btime: rapid.Int64().Draw(t, "btime"), Version: rapid.Uint64().Draw(t, "version"),
		Change: rapid.Uint64().Draw(t, "change"), Beside: some("beside"), Sealed: some("sealed"), Side: SideVersions{rapid.Uint64().Draw(t, "side version"), rapid.Uint64().Draw(t, "began")},
		Target: drawBytes(t, 20, "target"), ACL: drawBytes(t, 20, "acl"), DefaultACL: drawBytes(t, 20, "default"),
	}
	if some("more") {
		n.Rdev, n.Size, n.Stored = rapid.Uint32().Draw(t, "rdev"), rapid.Uint64().Draw(t, "size"), rapid.Uint64().Draw(t, "stored")
		n.Parent, n.Xattrs = ids.Object(rapid.Uint64().Draw(t, "parent")), rapid.Uint32().Draw(t, "xattrs")
		n.Root, n.Height = chunk.Sum(n.Target), rapid.Uint8().Draw(t, "height")
		n.Cues = &pb.Cues{Site: rapid.String().Draw(t, "site"), KeepTogether: some("together"), WriteOnce: some("once"),
			RepSites: rapid.Uint32().Draw(t, "sites"), RepLevel: rapid.Uint32().Draw(t, "level"), CoherenceNs: rapid.Int64().Draw(t, "coherence")}
	}
	return n
}

// TestRecord_ReadsBackWhatWasWritten checks that a record comes back as it was,
// that every prefix of it is refused, and that noise is refused or read, never a
// crash.
func TestRecord_ReadsBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := drawInode(t)
		data := AppendInode(nil, n)
		got, err := DecodeInode(n.Object, data)
		if err != nil {
			t.Fatal(err)
		}
		if again := AppendInode(nil, got); !bytes.Equal(again, data) || got.Mtime != n.Mtime || got.Sealed != n.Sealed || got.Side.Merged != n.Side.Merged || got.Side.Began != n.Side.Began || got.Parent != n.Parent || got.Root != n.Root || !bytes.Equal(got.ACL, n.ACL) {
			t.Fatalf("got %+v, want %+v", got, n)
		}
		if _, err := DecodeInode(n.Object, data[:rapid.IntRange(0, len(data)-1).Draw(t, "cut")]); !fault.Is(err, fault.Corrupt) {
			t.Fatalf("a prefix of a record: %v", err)
		}
		noise := drawBytes(t, 80, "noise")
		_, _ = DecodeInode(1, append([]byte{inodeVersion}, noise...))
		_, _, _ = DecodeData(append([]byte{dataVersion}, noise...))
		_, _, _ = firstEntry(append([]byte{entryVersion}, noise...))
		_, _ = ReadFacts(newMemory(), noise)
		_ = newFacts().learn(noise)
		r := reader{data: noise}
		r.record()
		r.locks()
		if _, err := DecodeInode(1, append([]byte{inodeVersion + 1}, noise...)); !fault.Is(err, fault.NewerVersion) {
			t.Fatalf("a newer record: %v", err)
		}
	})
}

func TestDecodeData_ReadsBackWhatWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var mutations []Mutation
		for range rapid.IntRange(0, 5).Draw(t, "mutations") {
			m := Mutation{Key: append([]byte{keyInode}, drawBytes(t, 10, "key")...), Time: hlc.Time(rapid.Uint64Range(0, 2).Draw(t, "time"))}
			if rapid.Bool().Draw(t, "set") {
				m.Value = append([]byte{}, drawBytes(t, 10, "value")...)
			}
			mutations = append(mutations, m)
		}
		body := drawBytes(t, 30, "body")
		inline := []Chunk{{Address: chunk.Sum(body), Data: body}}
		data := AppendData(nil, mutations, inline)
		got, chunks, err := DecodeData(data)
		if err != nil || len(got) != len(mutations) || len(chunks) != 1 || !bytes.Equal(chunks[0].Data, body) || chunks[0].Address != inline[0].Address {
			t.Fatalf("got %v, %v, %v", got, chunks, err)
		}
		for i, m := range mutations {
			if g := got[i]; !bytes.Equal(g.Key, m.Key) || !bytes.Equal(g.Value, m.Value) || (g.Value == nil) != (m.Value == nil) || g.Time != m.Time {
				t.Fatalf("got %v, want %v", g, m)
			}
		}
		if _, _, err := DecodeData(data[:len(data)-1]); err == nil {
			t.Fatal("a prefix of an entry's data is read")
		}
	})
}

package side

import (
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/store/sidecar"
	"cartwheel.dev/node/tree"
)

// kept is the side logs of a node on its disk: a Pebble with a log of its own, which
// is there only once something was kept. A key is that of a log and a key of its
// slice's state.
type kept struct{ p *pebble.DB }

// logID is a side log: of a slice, by the node that writes it.
type logID struct {
	slice ids.Slice
	owner ids.Node
}

// key is what the log's keys begin with: the slice in three bytes, how long the
// owner's name is in one, and that.
func (id logID) key() []byte {
	return append([]byte{byte(id.slice >> 16), byte(id.slice >> 8), byte(id.slice), byte(len(id.owner))}, id.owner...)
}

// splitKey takes a key apart.
func splitKey(key []byte) (id logID, rest []byte, ok bool) {
	if len(key) < 4 || len(key) < 4+int(key[3]) {
		return id, nil, false
	}
	id.slice = ids.Slice(key[0])<<16 | ids.Slice(key[1])<<8 | ids.Slice(key[2])
	id.owner = ids.Node(key[4 : 4+key[3]])
	return id, key[4+key[3]:], true
}

// openKept opens what is kept, or makes it.
func openKept(files vfs.FS, dir string) (*kept, error) {
	p, err := sidecar.Open(files, dir)
	if err != nil {
		return nil, err
	}
	return &kept{p}, nil
}

// put keeps changes of a log. They are on the disk when it returns.
func (k *kept) put(id logID, changes []tree.SideChange) error {
	b := k.p.NewBatch()
	for i := range changes {
		c := &changes[i]
		if err := b.Set(append(id.key(), c.Key...), tree.AppendSideChange(nil, c), nil); err != nil {
			return fault.Wrap(fault.IO, "side.put", "", errors.Join(err, b.Close()))
		}
	}
	return fault.Wrap(fault.IO, "side.put", "", b.Commit(pebble.Sync))
}

// forget forgets changes of a log. They may come back with a crash.
func (k *kept) forget(id logID, changes []tree.SideChange) error {
	b := k.p.NewBatch()
	for i := range changes {
		if err := b.Delete(append(id.key(), changes[i].Key...), nil); err != nil {
			return fault.Wrap(fault.IO, "side.forget", "", errors.Join(err, b.Close()))
		}
	}
	return fault.Wrap(fault.IO, "side.forget", "", b.Commit(pebble.NoSync))
}

// drop forgets a log.
func (k *kept) drop(id logID) error {
	from := id.key()
	to := append([]byte(nil), from...)
	for i := len(to) - 1; i >= 0; i-- {
		if to[i]++; to[i] != 0 {
			break
		}
	}
	return fault.Wrap(fault.IO, "side.drop", "", k.p.DeleteRange(from, to, pebble.Sync))
}

// load reads everything.
func (k *kept) load() (map[logID][]tree.SideChange, error) {
	const op fault.Op = "side.load"
	out := map[logID][]tree.SideChange{}
	it, err := k.p.NewIter(nil)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		id, key, whole := splitKey(append([]byte(nil), it.Key()...))
		value, err := it.ValueAndErr()
		if err == nil && !whole {
			err = fault.E(fault.Corrupt, op, "", "a key of a side log is malformed")
		}
		var c tree.SideChange
		if err == nil {
			c, err = tree.DecodeSideChange(key, append([]byte(nil), value...))
		}
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, "", errors.Join(err, it.Close()))
		}
		out[id] = append(out[id], c)
	}
	return out, fault.Wrap(fault.IO, op, "", it.Close())
}

func (k *kept) close() error { return fault.Wrap(fault.IO, "side.close", "", k.p.Close()) }

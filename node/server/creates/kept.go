package creates

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/sidecar"
)

// kept is the creates of a node on its disk: a Pebble with a log of its own, which is
// there only once something was kept. A key is the slice in three bytes, the client in
// eight and the number in eight, all big-endian. A value is the length of an encoded
// OperateRequest as a varint, the request, and the operation's body.
type kept struct{ p *pebble.DB }

const keyBytes = 3 + 8 + 8

func (i id) key() []byte {
	k := append(make([]byte, 0, keyBytes), byte(i.slice>>16), byte(i.slice>>8), byte(i.slice))
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(k, i.client), i.number)
}

// openKept opens what is kept, or makes it.
func openKept(files vfs.FS, dir string) (*kept, error) {
	p, err := sidecar.Open(files, dir)
	if err != nil {
		return nil, err
	}
	return &kept{p}, nil
}

// put keeps a create. It is on the disk when put returns.
func (k *kept) put(key id, c *create) error {
	const op fault.Op = "creates.put"
	req, err := proto.Marshal(c.req)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, "", err)
	}
	value := binary.AppendUvarint(make([]byte, 0, len(req)+len(c.body)+binary.MaxVarintLen32), uint64(len(req)))
	value = append(append(value, req...), c.body...)
	return fault.Wrap(fault.IO, op, "", k.p.Set(key.key(), value, pebble.Sync))
}

// drop forgets creates. After a crash they may be there again.
func (k *kept) drop(list []id) error {
	b := k.p.NewBatch()
	for _, key := range list {
		if err := b.Delete(key.key(), nil); err != nil {
			return fault.Wrap(fault.IO, "creates.drop", "", errors.Join(err, b.Close()))
		}
	}
	return fault.Wrap(fault.IO, "creates.drop", "", b.Commit(pebble.NoSync))
}

// load reads everything.
func (k *kept) load() (map[id]*create, error) {
	const op fault.Op = "creates.load"
	it, err := k.p.NewIter(nil)
	if err != nil {
		return nil, fault.Wrap(fault.IO, op, "", err)
	}
	out := map[id]*create{}
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err == nil {
			err = decode(out, it.Key(), value)
		}
		if err != nil {
			return nil, fault.Wrap(fault.IO, op, "", errors.Join(err, it.Close()))
		}
	}
	return out, fault.Wrap(fault.IO, op, "", it.Close())
}

// decode reads one create into a map. It copies the bytes.
func decode(out map[id]*create, key, value []byte) error {
	n, used := binary.Uvarint(value)
	if len(key) != keyBytes || used <= 0 || n > uint64(len(value)-used) {
		return fault.E(fault.Corrupt, "creates.decode", "", "a create that was kept is malformed")
	}
	req := &pb.OperateRequest{}
	if err := proto.Unmarshal(value[used:used+int(n)], req); err != nil {
		return fault.Wrap(fault.Corrupt, "creates.decode", "", err)
	}
	slice := ids.Slice(key[0])<<16 | ids.Slice(key[1])<<8 | ids.Slice(key[2])
	out[id{slice, binary.BigEndian.Uint64(key[3:]), binary.BigEndian.Uint64(key[11:])}] =
		&create{req: req, body: append([]byte(nil), value[used+int(n):]...)}
	return nil
}

func (k *kept) close() error { return fault.Wrap(fault.IO, "creates.close", "", k.p.Close()) }

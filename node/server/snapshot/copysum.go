package snapshot

import (
	"encoding/binary"

	"github.com/zeebo/blake3"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// sumBytes is about how many bytes are summed up at a time.
const sumBytes = 16 << 20

// copySum sums up a slice's state, so that a copy of it can be compared: the
// serial that it stands for, the clients' table, and all rows in their order but
// those that the ledger keeps for itself.
type copySum struct {
	h   *blake3.Hasher
	row []byte
}

func newCopySum(at replica.Snapshot) *copySum {
	c := &copySum{h: blake3.New()}
	head := binary.LittleEndian.AppendUint64(nil, uint64(at.Serial))
	head = binary.LittleEndian.AppendUint64(head, uint64(at.Epoch))
	head = binary.LittleEndian.AppendUint64(head, uint64(at.Time))
	head = binary.AppendUvarint(head, uint64(len(at.Clients)))
	_, _ = c.h.Write(append(head, at.Clients...)) // a hash takes everything
	return c
}

// appendRow encodes a row as it is sent.
func appendRow(b []byte, r *meta.Row) []byte {
	b = append(b, r.Area)
	b = append(binary.AppendUvarint(b, uint64(len(r.Key))), r.Key...)
	return append(binary.AppendUvarint(b, uint64(len(r.Value))), r.Value...)
}

func (c *copySum) add(r *meta.Row) {
	if r.Plain() && replog.Own(r.Key) {
		return
	}
	c.row = appendRow(c.row[:0], r)
	_, _ = c.h.Write(c.row) // a hash takes everything
}

func (c *copySum) bytes() []byte { return c.h.Sum(nil) }

// sumOf sums up a slice as it lies in the metadata.
func sumOf(frozen *meta.Frozen, slice ids.Slice, at replica.Snapshot) ([]byte, error) {
	c := newCopySum(at)
	for behind := (meta.Row{}); ; {
		rows, err := frozen.Rows(slice, behind, sumBytes)
		if err != nil || len(rows) == 0 {
			return c.bytes(), err
		}
		for i := range rows {
			c.add(&rows[i])
		}
		behind = rows[len(rows)-1]
	}
}

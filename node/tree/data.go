package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
)

const dataVersion = 1

// Flags of a mutation.
const (
	mutationDeletes = 1
	mutationTimed   = 2
)

// AppendData encodes what an entry carries: mutations and chunks.
func AppendData(dst []byte, mutations []Mutation, inline []Chunk) []byte {
	dst = append(dst, dataVersion)
	dst = binary.AppendUvarint(dst, uint64(len(mutations)))
	for i := range mutations {
		m := &mutations[i]
		var f byte
		if m.Value == nil {
			f |= mutationDeletes
		}
		if m.Time != 0 {
			f |= mutationTimed
		}
		dst = appendBytes(append(dst, f), m.Key)
		if m.Value != nil {
			dst = appendBytes(dst, m.Value)
		}
		if m.Time != 0 {
			dst = binary.BigEndian.AppendUint64(dst, uint64(m.Time))
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(inline)))
	for i := range inline {
		dst = appendBytes(append(dst, inline[i].Address[:]...), inline[i].Data)
	}
	return dst
}

// DataSize bounds what AppendData will write, to allocate once.
func DataSize(mutations []Mutation, inline []Chunk) int {
	size := 16
	for i := range mutations {
		size += mutationSize(&mutations[i])
	}
	for i := range inline {
		size += inlineSize(&inline[i])
	}
	return size
}

func mutationSize(m *Mutation) int { return len(m.Key) + len(m.Value) + 20 }

func inlineSize(c *Chunk) int { return chunk.AddressSize + 5 + len(c.Data) }

// DecodeData reads what AppendData wrote; keys, values and chunks share memory
// with data.
func DecodeData(data []byte) ([]Mutation, []Chunk, error) {
	const op fault.Op = "tree.DecodeData"
	r := reader{data: data}
	if v := r.byte(); v != dataVersion {
		return nil, nil, newer(op, "", v, dataVersion)
	}
	mutations := make([]Mutation, r.count(2))
	for i := range mutations {
		m := &mutations[i]
		f := r.byte()
		m.Key = r.bytes()
		if f&mutationDeletes == 0 {
			m.Value = r.bytes()
		}
		if f&mutationTimed != 0 {
			m.Time = hlc.Time(r.uint64())
		}
		if len(m.Key) == 0 {
			r.bad = true
		}
	}
	inline := make([]Chunk, r.count(chunk.AddressSize+1))
	for i := range inline {
		inline[i] = Chunk{Address: chunk.Address(r.take(chunk.AddressSize)), Data: r.bytes()}
	}
	if !r.done() {
		return nil, nil, fault.E(fault.Corrupt, op, "", "an entry's data is malformed")
	}
	return mutations, inline, nil
}

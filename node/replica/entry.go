package replica

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// Entry is one operation in a slice's order. It is immutable once proposed.
type Entry struct {
	Slice  ids.Slice
	Serial ids.Serial
	Epoch  ids.Epoch // of the active that ordered it
	Time   hlc.Time  // above that of every earlier entry of the slice
	// Client numbers the registration, Number the operation, Lowest the
	// client's lowest operation still outstanding: results below are dropped.
	// Client 0 is internal. Number 0 registers the client.
	Client uint64
	Number uint64
	Lowest uint64
	Result []byte // remembered for retries
	Data   []byte // opaque to the core
	Chunks []byte // 32-byte addresses that a member holds before it acknowledges
	Level  uint32 // sync level asked for; 0 is all
}

// AddressSize is the size of one address in Entry.Chunks.
const AddressSize = 32

// MaxEntryBytes bounds one encoded entry.
const MaxEntryBytes = 4 << 20

// Noop reports whether the entry only commits its epoch: it changes nothing.
func (e *Entry) Noop() bool { return e.Client == 0 && len(e.Data) == 0 }

// Registers reports whether the entry registers its client.
func (e *Entry) Registers() bool { return e.Client != 0 && e.Number == 0 }

func (e *Entry) cost() int { return len(e.Result) + len(e.Data) + len(e.Chunks) + entryOverhead }

// entryOverhead is what an entry weighs in memory besides its bytes.
const entryOverhead = 192

// AppendEntry appends the encoding of e (docs/formats/replica.md) to b.
func AppendEntry(b []byte, e *Entry) []byte {
	b = appendBytes(e.appendHead(b), e.Data)
	return appendBytes(b, e.Chunks)
}

// appendHead appends what stands before an entry's data.
func (e *Entry) appendHead(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.Slice))
	b = binary.AppendUvarint(b, uint64(e.Serial))
	b = binary.AppendUvarint(b, uint64(e.Epoch))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Time))
	b = binary.LittleEndian.AppendUint64(b, e.Client)
	b = binary.AppendUvarint(b, e.Number)
	b = binary.AppendUvarint(b, e.Lowest)
	b = binary.AppendUvarint(b, uint64(e.Level))
	return appendBytes(b, e.Result)
}

// DecodeEntry reads one entry from the front of b and returns what follows it.
// The entry shares b's memory.
func DecodeEntry(b []byte) (*Entry, []byte, error) {
	e := new(Entry)
	rest, err := decodeEntry(b, e)
	return e, rest, err
}

func decodeEntry(b []byte, e *Entry) ([]byte, error) {
	r := reader{b: b}
	e.Slice = ids.Slice(r.uvarint(uint64(ids.MaxSlice)))
	e.Serial = ids.Serial(r.number())
	e.Epoch = ids.Epoch(r.number())
	e.Time = hlc.Time(r.uint64())
	e.Client = r.uint64()
	e.Number = r.number()
	e.Lowest = r.number()
	e.Level = uint32(r.uvarint(1 << 16))
	e.Result = r.bytes(MaxEntryBytes)
	e.Data = r.bytes(MaxEntryBytes)
	e.Chunks = r.bytes(MaxEntryBytes)
	if len(e.Chunks)%AddressSize != 0 || e.Serial == 0 || e.Slice == 0 {
		r.bad = true
	}
	if r.bad {
		return nil, fault.E(fault.Corrupt, "replica.DecodeEntry", "", "not an entry")
	}
	return r.b, nil
}

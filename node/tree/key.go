package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
)

// The first byte of a key says what it holds. Upper half: the versioned part,
// which snapshots and undelete read; the rest is only ever current.
const (
	keyInode   = 'i' // object -> record
	keyContent = 'c' // object -> bytes of a small file
	keyXattr   = 'x' // object, name -> value
	keyEntry   = 'e' // directory, name -> children by creating operation

	keyState  = 's' // the slice's counters
	keyRange  = 'n' // node -> range of object numbers
	keyRefs   = 'r' // address -> references of current versions
	keyDead   = 'd' // time, serial, index -> manifest that lost its file
	keyHold   = 'h' // object, client: has it open though it has no name
	keyHeld   = 'H' // client, object: the same, by client
	keyLock   = 'l' // object [, name] -> intent that holds it
	keyIntent = 't' // intent -> coordinator's record
	keyPart   = 'p' // intent -> participant's record
	keyNoname = 'u' // object made for another slice's directory -> directory, time
	keyNamed  = 'k' // object of another slice named here -> directory, time
	keyFence  = 'f' // object of another slice never to be named here -> time
	keyUsed   = 'g' // block of given numbers -> which objects are gone

	// keyForget is never kept: what is written to it says which versions go.
	keyForget = 'z'

	keyConflict = 'm' // time, index -> what a merge kept beside what won
	keyWhole    = 'w' // -> the time from which on no version is forgotten
	keyKept     = 'y' // -> the times before that as of which nothing is forgotten
)

// Versioned reports whether a key is kept with its history.
func Versioned(key []byte) bool {
	switch key[0] {
	case keyInode, keyContent, keyXattr, keyEntry:
		return true
	}
	return false
}

func objectKey(kind byte, o ids.Object) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 9), kind), uint64(o))
}

// RecordKey is the key of an object's record.
func RecordKey(o ids.Object) []byte { return objectKey(keyInode, o) }

func nameKey(kind byte, o ids.Object, name []byte) []byte {
	k := append(make([]byte, 0, 9+len(name)), kind)
	return append(binary.BigEndian.AppendUint64(k, uint64(o)), name...)
}

func pairKey(kind byte, a, b uint64) []byte {
	k := append(make([]byte, 0, 17), kind)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(k, a), b)
}

func refsKey(a *chunk.Address) []byte {
	return append(append(make([]byte, 0, 33), keyRefs), a[:]...)
}

func rangeKey(n ids.Node) []byte { return append([]byte{keyRange}, n...) }

func intentKey(kind byte, i Intent) []byte { return objectKey(kind, ids.Object(i)) }

// objectOf takes the object out of a key that begins with one.
func objectOf(key []byte) ids.Object {
	if len(key) < 9 {
		return 0
	}
	return ids.Object(binary.BigEndian.Uint64(key[1:]))
}

// endOf returns the first key behind all that begin with prefix.
func endOf(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// NamesEntry reports whether a key is that of a directory's name.
func NamesEntry(key []byte) bool { return key[0] == keyEntry }

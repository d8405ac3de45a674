package meta

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"cartwheel.dev/geo-config/fault"
)

// Versions calls fn for the versions of a key, newest first, until it returns false. A nil
// value says that the key was gone from that time on. The value is valid only in fn.
func (v View) Versions(key []byte, fn func(ts uint64, value []byte) bool) error {
	const op fault.Op = "meta.Versions"
	snap := v.db.p.NewSnapshot()
	defer snap.Close()
	raw, closer, err := snap.Get(appendKey(nil, areaCurrent, v.slice, key))
	switch {
	case err == nil && len(raw) < 8:
		closer.Close()
		return fault.E(fault.Corrupt, op, "", "a value without a time")
	case err == nil:
		ts := binary.BigEndian.Uint64(raw)
		goOn := ts > v.at || fn(ts, raw[8:])
		closer.Close()
		if !goOn {
			return nil
		}
	case !errors.Is(err, pebble.ErrNotFound):
		return fault.Wrap(fault.IO, op, "", err)
	}
	lower := appendHistoryKey(nil, v.slice, key)
	end := bytes.Clone(lower)
	end[len(end)-1]++
	it, err := snap.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: end})
	if err != nil {
		return fault.Wrap(fault.IO, op, "", err)
	}
	defer it.Close()
	for ok := it.SeekGE(appendTime(bytes.Clone(lower), v.at)); ok; ok = it.Next() {
		_, ts, good := splitHistoryKey(it.Key(), nil)
		old := it.Value()
		if !good || len(old) == 0 {
			return fault.E(fault.Corrupt, op, "", "a damaged version")
		}
		value := old[1:]
		if old[0] == flagGone {
			value = nil
		} else if value == nil {
			value = []byte{}
		}
		if !fn(ts, value) {
			break
		}
	}
	return fault.Wrap(fault.IO, op, "", it.Error())
}

package tree

import (
	"encoding/binary"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/hlc"
)

// asOf is a slice as of a time.
type asOf struct {
	now, then View
	at        hlc.Time
}

// AsOf returns a slice as of a time: versioned keys from then, which shows their versions
// of that time, and the others from now, which shows what is current. The time must be
// closed: no entry that is yet to be applied has a time at or before it. Of the locks
// only those count whose intent may have that time or an earlier one: it is as if the
// key was not readable yet (Busy). An intent's time is at or after the times at which its
// locks were taken, so that one with a later lock changes nothing that the view shows.
func AsOf(now, then View, at hlc.Time) View { return asOf{now, then, at} }

func (v asOf) Get(key []byte) ([]byte, bool, error) {
	if Versioned(key) {
		return v.then.Get(key)
	}
	value, ok, err := v.now.Get(key)
	if err != nil || !ok || key[0] != keyLock {
		return value, ok, err
	}
	if counts, err := v.counts(value); err != nil || !counts {
		return nil, false, err
	}
	return value, true, nil
}

// Scan implements View. The locks of a directory are few.
func (v asOf) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	if Versioned(from) {
		return v.then.Scan(from, to, fn)
	}
	var bad error
	err := v.now.Scan(from, to, func(key, value []byte) bool {
		if key[0] == keyLock {
			var counts bool
			if counts, bad = v.counts(value); bad != nil || !counts {
				return bad == nil
			}
		}
		return fn(key, value)
	})
	if err == nil {
		err = bad
	}
	return err
}

// counts reports whether the intent that a lock names may have a time at or before the
// view's. One whose record is gone has just ended: the reader looks again.
func (v asOf) counts(lock []byte) (bool, error) {
	if len(lock) != 8 {
		return true, nil // the reader finds that it is malformed
	}
	record, ok, err := v.now.Get(intentKey(keyPart, Intent(binary.BigEndian.Uint64(lock))))
	if err != nil || !ok {
		return true, err
	}
	r := reader{data: record}
	prepared := hlc.Time(r.uint64())
	if r.bad {
		return true, fault.E(fault.Corrupt, "tree.AsOf", "", "a participant's record is malformed")
	}
	return prepared <= v.at, nil
}

// WholeSince returns the time from which on a slice has all its versions: the horizon of
// the last collection, or the time at which the slice was formatted. It is one of the
// slice's rows, so that all members agree on it, and a copy of the state has it. ok is
// false in slices of earlier programs in which nothing was collected since.
func WholeSince(v View) (since hlc.Time, ok bool, err error) {
	value, ok, err := v.Get([]byte{keyWhole})
	if err != nil || !ok {
		return 0, false, fault.Wrap(fault.IO, "tree.WholeSince", "", err)
	}
	if len(value) != 8 {
		return 0, false, fault.E(fault.Corrupt, "tree.WholeSince", "", "the time from which on versions are kept is malformed")
	}
	return hlc.Time(binary.BigEndian.Uint64(value)), true, nil
}

func wholeSince(at hlc.Time) Mutation {
	return Mutation{Key: []byte{keyWhole}, Value: binary.BigEndian.AppendUint64(nil, uint64(at))}
}

// raiseWhole notes that versions before a horizon may be gone.
func (t *collection) raiseWhole(horizon hlc.Time) error {
	since, _, err := WholeSince(t.view)
	if err == nil && since < horizon {
		m := wholeSince(horizon)
		t.put(m.Key, m.Value)
	}
	return err
}

package replica

import (
	"bytes"
	"encoding/binary"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

// clients is the table that makes operations run once: the registrations of a
// slice with the results of their last operations. It is part of the slice's
// state: it changes only with committed entries, in their order, so that it is
// equal on all members at one serial.
type clients struct {
	byID map[uint64]*client
	// oldest and newest end a list in the order of last use.
	oldest, newest *client
	bytes          int // that all results cost
	limits         *Limits
}

// jump is by how much more the time went on from one entry to the next than a
// registration may age by one entry: half of its life. An active whose clock is
// far ahead would end all registrations otherwise, and an operation could be run
// again that was sent before. Where a slice has no entries for long, its
// registrations last longer.
func (l *Limits) jump(before, at hlc.Time) hlc.Time {
	if most := hlc.Time(l.ClientLife / 2); at > before && at-before > most {
		return at - before - most
	}
	return 0
}

// outlasts reports whether a registration that an operation used is there still,
// when the operation is so old. Journal time may run ahead of the clock that tells
// the age, so only half of the shortest life counts.
func (l *Limits) outlasts(age time.Duration) bool { return age < min(l.ClientIdle, l.ClientLife)/2 }

type client struct {
	id         uint64
	lowest     uint64
	last       hlc.Time // when it was used last, later by the jumps since then
	results    []result // ascending numbers
	bytes      int      // that they cost
	prev, next *client
}

type result struct {
	number uint64
	serial ids.Serial
	epoch  ids.Epoch
	time   hlc.Time
	bytes  []byte
}

// cost is what a result counts for in the limits by bytes.
func (r *result) cost() int { return 64 + len(r.bytes) }

func (t *clients) init(l *Limits) {
	*t = clients{byID: map[uint64]*client{}, limits: l}
}

// find returns a registration that has not expired at a time.
func (t *clients) find(id uint64, at hlc.Time) *client {
	c := t.byID[id]
	if c == nil || t.expired(c, at) {
		return nil
	}
	return c
}

func (t *clients) expired(c *client, at hlc.Time) bool {
	return uint64(c.last)+uint64(t.limits.ClientLife) < uint64(at)
}

func (c *client) result(number uint64) *result {
	for i := len(c.results) - 1; i >= 0 && c.results[i].number >= number; i-- {
		if c.results[i].number == number {
			return &c.results[i]
		}
	}
	return nil
}

// full reports whether no more clients can register at a time.
func (t *clients) full(at hlc.Time) bool {
	return len(t.byID) >= t.limits.Clients && (t.oldest == nil || uint64(t.oldest.last)+uint64(t.limits.ClientIdle) >= uint64(at))
}

// crowded reports whether the results of a client cost as much as they may, from
// a number on.
func (c *client) crowded(from uint64, most int) bool {
	if c.bytes < most {
		return false
	}
	cost := 0
	for i := len(c.results) - 1; i >= 0 && c.results[i].number >= from; i-- {
		cost += c.results[i].cost()
	}
	return cost >= most
}

func (t *clients) drop(c *client) {
	delete(t.byID, c.id)
	t.unlink(c)
	t.bytes -= c.bytes
}

// shrink forgets results where all together cost more than the limit: those of
// the clients least recently used, until a quarter of the room is free. What such
// a client ordered up to the last of them never runs again. The newest keeps its
// own, which Propose bounds.
func (t *clients) shrink() {
	if t.bytes <= t.limits.ResultBytes {
		return
	}
	for c := t.oldest; c != t.newest && t.bytes > t.limits.ResultBytes*3/4; c = c.next {
		if k := len(c.results); k > 0 {
			t.bytes -= c.bytes
			c.lowest, c.results, c.bytes = c.results[k-1].number+1, nil, 0
		}
	}
}

// apply brings the table past a committed entry that follows another one of the
// time before.
func (t *clients) apply(e *Entry, before hlc.Time) {
	if jump := t.limits.jump(before, e.Time); jump > 0 {
		for _, c := range t.byID {
			c.last += jump
		}
	}
	for t.oldest != nil && t.expired(t.oldest, e.Time) {
		t.drop(t.oldest)
	}
	if e.Client == 0 {
		return
	}
	c := t.byID[e.Client]
	if c == nil {
		if !e.Registers() {
			return
		}
		if len(t.byID) >= t.limits.Clients && !t.full(e.Time) {
			t.drop(t.oldest)
		}
		c = &client{id: e.Client, lowest: 1}
		t.byID[e.Client] = c
	} else {
		t.unlink(c)
	}
	c.last = e.Time
	t.link(c)
	if !e.Registers() {
		t.bytes -= c.bytes
		c.record(e)
		t.bytes += c.bytes
		t.shrink()
	}
}

func (c *client) record(e *Entry) {
	c.lowest = max(c.lowest, e.Lowest)
	drop := 0
	for drop < len(c.results) && c.results[drop].number < c.lowest {
		c.bytes -= c.results[drop].cost()
		drop++
	}
	if drop > 0 {
		n := copy(c.results, c.results[drop:])
		clear(c.results[n:])
		c.results = c.results[:n]
	}
	if e.Number < c.lowest {
		return
	}
	i := len(c.results)
	for i > 0 && c.results[i-1].number > e.Number {
		i--
	}
	c.results = append(c.results, result{})
	copy(c.results[i+1:], c.results[i:])
	c.results[i] = result{e.Number, e.Serial, e.Epoch, e.Time, bytes.Clone(e.Result)} // not the frame that it came in
	c.bytes += c.results[i].cost()
}

// answered reports whether any operation of a client was run.
func (t *clients) answered() bool {
	for _, c := range t.byID {
		if len(c.results) > 0 || c.lowest > 1 {
			return true
		}
	}
	return false
}

func (t *clients) link(c *client) {
	c.prev, c.next = t.newest, nil
	if t.newest != nil {
		t.newest.next = c
	} else {
		t.oldest = c
	}
	t.newest = c
}

func (t *clients) unlink(c *client) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		t.oldest = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		t.newest = c.prev
	}
}

// encode appends the table, oldest client first.
func (t *clients) encode(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(t.byID)))
	for c := t.oldest; c != nil; c = c.next {
		b = binary.LittleEndian.AppendUint64(b, c.id)
		b = binary.AppendUvarint(b, c.lowest)
		b = binary.LittleEndian.AppendUint64(b, uint64(c.last))
		b = binary.AppendUvarint(b, uint64(len(c.results)))
		for _, r := range c.results {
			b = binary.AppendUvarint(b, r.number)
			b = binary.AppendUvarint(b, uint64(r.serial))
			b = binary.AppendUvarint(b, uint64(r.epoch))
			b = binary.LittleEndian.AppendUint64(b, uint64(r.time))
			b = appendBytes(b, r.bytes)
		}
	}
	return b
}

// decode replaces the table by one that encode made; nil makes it empty.
func (t *clients) decode(b []byte) error {
	t.init(t.limits)
	if len(b) == 0 {
		return nil
	}
	r := reader{b: b}
	for n := r.number(); n > 0 && !r.bad; n-- {
		c := &client{id: r.uint64(), lowest: r.number(), last: hlc.Time(r.uint64())}
		for k := r.uvarint(1 << 20); k > 0 && !r.bad; k-- {
			v := result{number: r.number()}
			v.serial, v.epoch = ids.Serial(r.number()), ids.Epoch(r.number())
			v.time, v.bytes = hlc.Time(r.uint64()), r.bytes(MaxEntryBytes)
			c.results = append(c.results, v)
			c.bytes += v.cost()
		}
		t.bytes += c.bytes
		if t.byID[c.id] != nil {
			r.fail()
			break
		}
		t.byID[c.id] = c
		t.link(c)
	}
	if r.bad || len(r.b) > 0 {
		return fault.E(fault.Corrupt, "replica.Restore", "", "not a table of clients")
	}
	return nil
}

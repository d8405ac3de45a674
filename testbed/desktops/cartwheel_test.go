package desktops

import (
	"testing"

	"cartwheel.dev/geo-config/ids"
)

func cartwheelOf(t *testing.T, p Policy, copies int) *cartwheel {
	t.Helper()
	o := small()
	o.Full, o.Copies = 0, copies
	w, err := newCartwheel(o, p)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// act does something and checks every byte after it.
func (w *cartwheel) act(t *testing.T, e Event, want outcome) {
	t.Helper()
	got, err := w.do(e)
	if err == nil {
		err = w.check()
	}
	if err != nil || got != want {
		t.Errorf("%+v: got %d, %v; want %d", e, got, err, want)
	}
}

// TestCartwheel_WritesLocalWhereEachDesktopIsASite makes files at the user's desk and
// elsewhere: each is in a slice that is active on the writer's machine.
func TestCartwheel_WritesLocalWhereEachDesktopIsASite(t *testing.T) {
	for _, copies := range []int{1, 2, 3} {
		w := cartwheelOf(t, CartwheelSites, copies)
		for m := range w.disks {
			f := File(m)
			w.act(t, Event{Kind: Create, User: 2, Machine: m, File: f, Bytes: 10}, done)
			w.act(t, Event{Kind: Read, User: 5, Machine: m, File: f}, primary)
			s := w.slices[w.files[f].slice-1]
			if len(s.members) != copies || s.members[0] != m {
				t.Errorf("%d copies: what is made at %d lies at %v", copies, m, s.members)
			}
			for _, other := range s.members[1:] {
				w.act(t, Event{Kind: Read, Machine: other, File: f}, secondary)
			}
		}
		// The root's slice has three copies whatever the directories ask for.
		want := len(w.disks)
		if copies != 3 {
			want++
		}
		if got := w.counts(); got.Elsewhere != 0 || got.Slices != want {
			t.Errorf("%d copies: got %+v, want %d slices and all files at their writers", copies, got, want)
		}
	}
}

// TestCartwheel_KeepsAnOfficeInOneSlice shows what ships: a directory's slice that is
// active anywhere at the site is good enough, so that all files go to the root's.
func TestCartwheel_KeepsAnOfficeInOneSlice(t *testing.T) {
	w := cartwheelOf(t, CartcartwheelOffice, 3)
	for m := range w.disks {
		w.act(t, Event{Kind: Create, User: m, Machine: m, File: File(m), Bytes: 10}, done)
		if s := w.files[m].slice; s != ids.RootSlice {
			t.Errorf("what is made at %d is in slice %d", m, s)
		}
	}
	if got := w.counts(); got.Slices != 1 || got.Elsewhere != len(w.disks)-1 {
		t.Errorf("got %+v, want one slice, at the machine of one writer", got)
	}
}

func TestCartwheel_RefusesWhereAMemberIsFull(t *testing.T) {
	w := cartwheelOf(t, CartwheelSites, 3)
	w.act(t, Event{Kind: Create, User: 1, Machine: 1, File: 0, Bytes: 10}, done)
	full := w.slices[w.files[0].slice-1].members[2]
	w.disks[full].other += w.disks[full].free() - 5
	w.act(t, Event{Kind: Append, User: 1, Machine: 1, File: 0, Bytes: 6}, refused)
	w.act(t, Event{Kind: Create, User: 1, Machine: 1, File: 1, Bytes: 6}, refused)
	w.act(t, Event{Kind: Read, User: 1, Machine: 1, File: 1}, missing)
	w.act(t, Event{Kind: Replace, User: 1, Machine: 1, File: 1, Bytes: 1}, missing)
	w.act(t, Event{Kind: Replace, User: 1, Machine: 1, File: 0, Bytes: 6}, refused)
	w.act(t, Event{Kind: Read, User: 1, Machine: 1, File: 0}, primary) // the old one is there
	w.act(t, Event{Kind: Append, User: 1, Machine: 1, File: 0, Bytes: 5}, done)
	w.act(t, Event{Kind: Delete, User: 1, Machine: 1, File: 0}, done)
	w.act(t, Event{Kind: Create, User: 1, Machine: 1, File: 1, Bytes: 6}, done)
	if w.disks[full].used != 6 {
		t.Errorf("the full disk has %d bytes of files, want 6", w.disks[full].used)
	}
}

// TestCartwheel_AsksAgainWhereThereIsANewSlice has the answer of a node change.
func TestCartwheel_AsksAgainWhereThereIsANewSlice(t *testing.T) {
	w := cartwheelOf(t, CartwheelSites, 3)
	before, err := w.choose(1, w.home[0])
	if err != nil {
		t.Fatal(err)
	}
	row, _ := w.configured.Slice(before)
	row.ID = ids.Slice(len(w.configured.rows) + 1)
	w.learn(row)
	after, err := w.choose(1, w.home[0])
	if err != nil || after != row.ID { // the newest of equal policy counts
		t.Errorf("slice %d was chosen before, and %d, %v after there was slice %d", before, after, err, row.ID)
	}
}

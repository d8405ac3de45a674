package acceptance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// live has acts happen until the time is over. Each kind has its turn; what it is
// done to is drawn.
func (d *day) live(length time.Duration) {
	d.t.Helper()
	acts := []struct {
		name string
		do   func()
	}{
		{"snapshot", d.snapshot}, {"kill", d.kill}, {"hand over", d.handOver}, {"scrub", d.scrub},
		{"look", d.look}, {"drain", d.drain}, {"policy", d.policy}, {"geo-config away", d.away},
		{"restore", d.restore}, {"audit", d.audit},
	}
	began := time.Now()
	for turn := 0; time.Since(began) < length && !d.t.Failed(); turn++ {
		act := acts[turn%len(acts)]
		at := time.Now()
		act.do()
		d.acts[act.name]++
		d.t.Logf("%v: %s took %v", time.Since(began).Round(time.Millisecond), act.name, time.Since(at).Round(time.Millisecond))
	}
}

func (d *day) drawn() string { return daySites[d.chance.IntN(len(daySites))] }

// pause lets time pass, of a few leases at most.
func (d *day) pause() { <-time.After(time.Duration(d.chance.IntN(4000)) * time.Millisecond) }

// kill kills a node, and starts it again: at times after others took its place.
func (d *day) kill() {
	d.t.Helper()
	d.whole()
	name := d.drawn()
	d.fail(name)
	d.pause()
	d.heal(name)
}

// away kills geo-config for a while. Nobody takes over meanwhile.
func (d *day) away() {
	d.t.Helper()
	d.fail("geo-config")
	d.pause()
	d.heal("geo-config")
}

func (d *day) admin(words ...string) string {
	d.t.Helper()
	return d.cartwheel(append(words, "--admin", filepath.Join(d.dir, "admin.json"))...)
}

// drain has a node left, and takes it back. The other nodes have room for three copies.
func (d *day) drain() {
	d.t.Helper()
	d.admin("policy", "set", "all", "--level", "3")
	d.whole()
	name := d.drawn()
	d.admin("site", "drain", name, "--wait")
	d.admin("site", "undrain", name)
}

// scrub has all nodes read everything; lost or different data fail it.
func (d *day) scrub() {
	d.t.Helper()
	d.cartwheel("scrub", "--wait", "--rate", "512")
}

// handOver hands some slices over, to sites that have them.
func (d *day) handOver() {
	d.t.Helper()
	d.whole()
	all := d.slices()
	for range min(4, len(all)) {
		s := all[d.chance.IntN(len(all))]
		to := s.Members[d.chance.IntN(len(s.Members))].Site
		if to != s.Active.Site {
			_, err := try(binary(d.t, "cartwheel"), "slice", "hand-over", fmt.Sprint(s.ID), to, "--contact", d.Contact)
			if err != nil { // it may have moved, or have no whole copy there, meanwhile
				d.t.Logf("slice %d was not handed over to %s", s.ID, to)
			}
		}
	}
}

// policy gives a slice two copies or three, or four.
func (d *day) policy() {
	d.t.Helper()
	all := d.slices()
	s := all[d.chance.IntN(len(all))]
	d.admin("policy", "set", fmt.Sprint(s.ID), "--level", fmt.Sprint(2+d.chance.IntN(3)))
	d.whole()
}

// daySnapshots bounds how many are kept at once.
const daySnapshots = 3

// snapshot makes one at a moment at which everything is known.
func (d *day) snapshot() {
	d.t.Helper()
	if len(d.kept) >= daySnapshots {
		d.forget(d.oldest())
	}
	name := fmt.Sprintf("day%03d", d.acts["snapshot"])
	d.rest(func() {
		d.cartwheel("snapshot", "create", name)
		d.kept[name] = d.trees()
	})
}

func (d *day) oldest() string { return slices.Sorted(maps.Keys(d.kept))[0] }

func (d *day) forget(name string) {
	d.t.Helper()
	d.cartwheel("snapshot", "delete", name)
	delete(d.kept, name)
}

// look compares the oldest snapshot at some mount with what it should show.
func (d *day) look() {
	d.t.Helper()
	name := d.oldest()
	d.compare(filepath.Join(d.mount(d.drawn()), ".Snapshot="+name), d.kept[name])
}

// restore copies a worker's directory back from a snapshot, beside the current one.
func (d *day) restore() {
	d.t.Helper()
	name, mount := d.oldest(), d.mount(d.drawn())
	i := d.chance.IntN(len(d.workers))
	to := filepath.Join(mount, "restored")
	d.cartwheel("snapshot", "restore", name, filepath.Join(mount, d.workers[i].name), "--to", to)
	if err := d.kept[name][i].differs(to); err != nil {
		d.t.Errorf("restored from %s: %v", name, err)
	}
	if err := os.RemoveAll(to); err != nil {
		d.t.Error(err)
	}
}

// audit compares the current tree at one mount.
func (d *day) audit() {
	d.t.Helper()
	d.rest(func() { d.compare(d.mount(d.drawn()), d.trees()) })
	if s := d.status(); strings.Contains(s.Sentence, "lost") {
		d.t.Error(s.Sentence)
	}
}

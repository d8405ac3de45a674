package tree

import (
	"maps"
	"slices"
	"testing"
)

// TestMerges_MovedFilesKeepWhatTheyHave moves files at the side and gives their names to
// others. Merged in any order, none is lost; in that of the waves each has its name.
func TestMerges_MovedFilesKeepWhatTheyHave(t *testing.T) {
	for _, x := range []struct {
		name string
		side func(a actor)
		want map[string]string
		// around says that the files wait for each other in a circle, in which more than
		// two leave one with a name beside its own.
		around bool
	}{
		{"another one is made", func(a actor) { a.rename("a", "z"); a.write("a", "new") },
			map[string]string{"a": "new", "b": "in b", "c": "in c", "z": "in a"}, false},
		{"an empty one is made", func(a actor) { a.rename("a", "z"); a.do(createOp(rootID, "a", TypeRegular|0o644), nil) },
			map[string]string{"a": "", "b": "in b", "c": "in c", "z": "in a"}, false},
		{"a directory is made", func(a actor) { a.rename("a", "z"); a.mkdir("a"); a.write("a/f", "below") },
			map[string]string{"a": "/", "a/f": "below", "b": "in b", "c": "in c", "z": "in a"}, false},
		{"each moves on", func(a actor) { a.rename("c", "d"); a.rename("b", "c"); a.rename("a", "b"); a.write("a", "new") },
			map[string]string{"a": "new", "b": "in a", "c": "in b", "d": "in c"}, false},
		{"the last is removed", func(a actor) { a.rename("b", "c"); a.rename("a", "b"); a.write("a", "new") },
			map[string]string{"a": "new", "b": "in a", "c": "in b"}, false},
		{"two change places", func(a actor) { a.rename("a", "z"); a.rename("b", "a"); a.rename("z", "b") },
			map[string]string{"a": "in b", "b": "in a", "c": "in c"}, false},
		{"three change places", func(a actor) { a.rename("a", "z"); a.rename("b", "a"); a.rename("c", "b"); a.rename("z", "c") },
			map[string]string{"a": "in b", "b": "in c", "c": "in a"}, true},
	} {
		for order := range uint64(12) {
			d := newDesk(t)
			p := partedFrom(d)
			active, _ := p.actors()
			for _, name := range []string{"a", "b", "c"} {
				active.write(name, "in "+name)
			}
			p = partedFrom(d)
			_, side := p.actors()
			x.side(side)
			if order < 6 {
				for range order { // other ones for each wave
					p.rng.Uint64()
				}
				p.merge()
			} else {
				p.mergeShuffled(order)
			}
			got := p.here()
			if order < 6 && !x.around && !maps.Equal(got, x.want) {
				t.Errorf("%s: there are %v, want %v", x.name, got, x.want)
			}
			for name, text := range x.want {
				if !slices.Contains(slices.Collect(maps.Values(got)), text) {
					t.Errorf("%s: %s with %q is lost: there are %v", x.name, name, text, got)
				}
			}
		}
	}
}

// mergeShuffled merges all waves at once, in an order that the seed draws, until nothing
// is left: what the side told of it may come late.
func (p *parted) mergeShuffled(seed uint64) {
	p.t.Helper()
	for range seed {
		p.rng.Uint64()
	}
	for round := 0; ; round++ {
		waves, err := p.side.Merges()
		if err != nil || round == 4 {
			p.t.Fatalf("after %d rounds there is %v, %v", round, waves, err)
		}
		list := slices.Concat(waves...)
		if len(list) == 0 {
			return
		}
		p.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		for _, o := range list {
			p.mergeOne(o)
		}
	}
}

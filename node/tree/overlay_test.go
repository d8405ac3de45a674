package tree

import (
	"bytes"
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/ids"
	"pgregory.net/rapid"
)

// TestOverlay_EqualsTheAppliedState compares an overlay with the state that
// results when all its operations are applied, through every order of adding,
// applying and cutting.
func TestOverlay_EqualsTheAppliedState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := newMemory()
		o := NewOverlay(base)
		type op struct {
			serial    ids.Serial
			mutations []Mutation
		}
		var ops []op
		serial := ids.Serial(0)
		key := func() []byte {
			return nameKey(keyEntry, ids.Object(rapid.IntRange(1, 2).Draw(t, "object")), []byte(fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "name"))))
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				serial++
				x := op{serial: serial}
				for range rapid.IntRange(1, 3).Draw(t, "mutations") {
					m := Mutation{Key: key()}
					if rapid.Bool().Draw(t, "set") {
						m.Value = fmt.Append(nil, serial)
					}
					x.mutations = append(x.mutations, m)
				}
				ops = append(ops, x)
				o.Add(serial, x.mutations)
			case 4:
				n := rapid.IntRange(0, len(ops)).Draw(t, "applied")
				for _, x := range ops[:n] {
					if err := base.apply(x.mutations, 0); err != nil {
						t.Fatal(err)
					}
					o.Applied(x.serial)
				}
				ops = ops[n:]
			case 5:
				n := rapid.IntRange(0, len(ops)).Draw(t, "kept")
				if n < len(ops) {
					o.Cut(ops[n].serial)
				}
				ops = ops[:n]
			}
			whole := newMemory()
			for k, v := range base.values {
				_ = whole.apply([]Mutation{{Key: []byte(k), Value: v}}, 0) // equal times are in order
			}
			for _, x := range ops {
				_ = whole.apply(x.mutations, 0)
			}
			compareViews(t, o, whole)
			if o.Len() != len(ops) || (len(ops) == 0 && len(o.items)+len(o.near) != 0) {
				t.Fatalf("%d operations, %d items; want %d operations", o.Len(), len(o.items), len(ops))
			}
		}
	})
}

func compareViews(t *rapid.T, got, want View) {
	list := func(v View, from, to []byte) (out []string) {
		if err := v.Scan(from, to, func(k, value []byte) bool { out = append(out, fmt.Sprintf("%q=%q", k, value)); return len(out) < 7 }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for object := ids.Object(1); object <= 2; object++ {
		prefix := objectKey(keyEntry, object)
		for _, r := range [][2][]byte{{prefix, endOf(prefix)}, {{keyEntry}, {keyEntry + 1}}, {append(prefix[:9:9], '2'), endOf(prefix)}} {
			if g, w := fmt.Sprint(list(got, r[0], r[1])), fmt.Sprint(list(want, r[0], r[1])); g != w {
				t.Fatalf("scan: got %s, want %s", g, w)
			}
		}
		for name := range 5 {
			k := nameKey(keyEntry, object, []byte(fmt.Sprint(name)))
			g, gok, _ := got.Get(k)
			w, wok, _ := want.Get(k)
			if gok != wok || !bytes.Equal(g, w) {
				t.Fatalf("get %q: got %q %v, want %q %v", k, g, gok, w, wok)
			}
		}
	}
}

package historytest

import "testing"

// at makes an event of a history, in milliseconds.
func at(call, ret int64, e event) *event {
	e.call, e.ret = call, ret
	if ret == never {
		e.result = unknown
	} else if e.result == unknown {
		e.result = done
	}
	return &e
}

// together is a batch of operations.
func together(list ...event) event {
	e := event{object: namesObject, what: batch}
	for i := range list {
		e.parts = append(e.parts, &list[i])
	}
	return e
}

func TestModels_TellGoodHistoriesFromBad(t *testing.T) {
	w := func(v string) event { return event{object: "r0[0]", what: write, value: v} }
	r := func(v string) event { return event{object: "r0[0]", what: read, value: v} }
	put := func(v string) event { return event{object: logName, what: add, value: v} }
	got := func(v string) event { return event{object: logName, what: read, value: v} }
	name := func(what what, cell, to int, ino uint64, result outcome) event {
		return event{object: namesObject, what: what, at: cell, to: to, ino: ino, result: result}
	}
	for _, c := range []struct {
		name string
		bad  bool
		h    []*event
	}{
		{"a read after a write", false, []*event{at(1, 2, w("1")), at(3, 4, r("1"))}},
		{"a read of what was overwritten", true, []*event{at(1, 2, w("1")), at(3, 4, w("2")), at(5, 6, r("1"))}},
		{"reads beside a write go back", true, []*event{at(1, 9, w("1")), at(2, 3, r("1")), at(4, 5, r("0"))}},
		{"a write of unknown outcome comes late", false, []*event{at(1, never, w("1")), at(2, 3, r("0")), at(4, 5, r("1"))}},
		{"appends in either order", false, []*event{at(1, 9, put("a")), at(2, 8, put("b")), at(10, 11, got("ba"))}},
		{"an append comes twice", true, []*event{at(1, 2, put("a")), at(3, 4, got("aa"))}},
		{"an append is lost", true, []*event{at(1, 2, put("a")), at(3, 4, put("b")), at(5, 6, got("b"))}},
		{"an append is read before it began", true, []*event{at(1, 2, got("a")), at(3, 4, put("a"))}},
		{"an append of unknown outcome is read", false, []*event{at(1, never, put("a")), at(2, 3, got("")), at(4, 5, got("a"))}},
		{"an append that was read is gone", true, []*event{at(1, never, put("a")), at(2, 3, got("a")), at(4, 5, got(""))}},
		{"appends in the wrong order", true, []*event{at(1, 2, put("a")), at(3, 4, put("b")), at(5, 6, got("ba"))}},
		{"two reads show two orders", true, []*event{at(1, 9, put("a")), at(1, 9, put("b")), at(2, 8, got("ab")), at(2, 8, got("ba"))}},
		{"an acknowledged append is not read", true, []*event{at(1, 2, put("a")), at(3, 4, got(""))}},
		{"an append is not read yet", false, []*event{at(1, 5, put("a")), at(3, 4, got("")), at(6, 7, put("b"))}},
		{"what nobody appended is read", true, []*event{at(1, 2, put("a")), at(3, 4, got("ax"))}},
		{"a record is read in part", true, []*event{at(1, 2, put("ab")), at(3, 4, got("a")), at(3, 4, got("ab"))}},
		{"a name is made twice", true, []*event{at(1, 2, name(create, 0, 0, 7, done)), at(3, 4, name(create, 0, 0, 8, done))}},
		{"a moved name is in neither place", true, []*event{at(1, 2, name(create, 0, 0, 7, done)), at(3, 9, name(rename, 0, 4, 0, done)),
			at(4, 5, name(lookup, 0, 0, 0, done)), at(6, 7, name(lookup, 4, 0, 0, done))}},
		{"a moved name is in one place", false, []*event{at(1, 2, name(create, 0, 0, 7, done)), at(3, 9, name(rename, 0, 4, 0, done)),
			at(4, 5, name(lookup, 4, 0, 7, done)), at(6, 7, name(lookup, 0, 0, 0, done))}},
		{"two names of one object stay", true, []*event{at(1, 2, name(create, 0, 0, 7, done)), at(3, 4, name(link, 1, 0, 7, done)),
			at(5, 6, name(rename, 0, 1, 0, done)), at(7, 8, name(lookup, 0, 0, 0, done))}},
		{"a creation of unknown outcome is seen", false, []*event{at(1, never, name(create, 0, 0, 0, unknown)), at(3, 4, name(lookup, 0, 0, 7, done))}},
		{"a creation of unknown outcome is seen where it was moved to", false, []*event{at(1, never, name(create, 0, 0, 0, unknown)),
			at(3, 4, name(rename, 0, 4, 0, done)), at(5, 6, name(lookup, 4, 0, 7, done)), at(7, 8, name(lookup, 0, 0, 0, done))}},
		{"a creation of unknown outcome is seen twice", true, []*event{at(1, never, name(create, 0, 0, 0, unknown)),
			at(3, 4, name(lookup, 0, 0, 7, done)), at(5, 6, name(unlink, 0, 0, 0, done)), at(7, 8, name(lookup, 0, 0, 7, done))}},
		{"a creation of unknown outcome is seen in two places", true, []*event{at(1, never, name(create, 0, 0, 0, unknown)), at(1, never, name(create, 4, 0, 0, unknown)),
			at(3, 4, name(lookup, 0, 0, 7, done)), at(5, 6, name(lookup, 4, 0, 7, done))}},
		{"a creation of unknown outcome takes a name that is seen later", false, []*event{at(1, never, name(create, 0, 0, 0, unknown)),
			at(3, 4, name(create, 0, 0, 0, exists)), at(5, 6, name(unlink, 0, 0, 0, done)), at(7, 8, name(unlink, 0, 0, 0, missing))}},
		{"a batch is done at once", false, []*event{at(1, 9, together(name(create, 0, 0, 7, done), name(rename, 0, 4, 0, done), name(unlink, 0, 0, 0, missing))),
			at(2, 3, name(lookup, 0, 0, 0, done)), at(4, 5, name(lookup, 4, 0, 7, done))}},
		{"a batch is seen in part", true, []*event{at(1, 9, together(name(create, 0, 0, 7, done), name(create, 1, 0, 8, done))),
			at(2, 3, name(lookup, 0, 0, 7, done)), at(4, 5, name(lookup, 1, 0, 0, done))}},
		{"a batch goes on behind one that did not happen", true, []*event{at(1, 2, together(name(create, 0, 0, 7, exists), name(create, 1, 0, 8, done)))}},
		{"a batch of unknown outcome went so far", false, []*event{at(1, never, together(name(create, 0, 0, 7, unknown), name(create, 1, 0, 8, unknown))),
			at(2, 3, name(lookup, 0, 0, 7, done)), at(4, 5, name(lookup, 1, 0, 0, done))}},
		{"what nobody made is seen", true, []*event{at(3, 4, name(lookup, 0, 0, 7, done))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			wrong, open := check(c.h)
			if len(open) > 0 || (len(wrong) > 0) != c.bad {
				t.Errorf("got %q, undecided %q; want bad: %v", wrong, open, c.bad)
			}
		})
	}
}

func TestDurable_AppendThatOneClientMissesIsLost(t *testing.T) {
	record := event{object: logName, what: add, value: "a\n"}
	whole, none := event{object: logName, what: read, value: "a\n"}, event{object: logName, what: read, client: 1}
	if wrong := durable([]*event{at(1, 2, record), at(3, 4, whole)}); len(wrong) > 0 {
		t.Errorf("got %q, want nothing", wrong)
	}
	if wrong := durable([]*event{at(1, 2, record), at(3, 4, whole), at(3, 4, none)}); len(wrong) != 1 {
		t.Errorf("got %q, want one loss", wrong)
	}
}

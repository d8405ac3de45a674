package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// record returns a valid new record.
func record(kind, name string) geoconfig.Record {
	return geoconfig.Record{Kind: kind, Name: name, Form: 1, Body: json.RawMessage(`{"a":1}`), ExpiresNS: 7}
}

func records(list ...geoconfig.Record) geoconfig.Batch { return geoconfig.Batch{Records: list} }

func named(kind, name string) geoconfig.Query {
	return geoconfig.Query{RecordKeys: []geoconfig.RecordKey{{Kind: kind, Name: name}}}
}

func testRecords(f *fixture) {
	f.seed()
	r := record("session", "ab12")
	rev := f.apply(records(r, record("session", "ab13")))
	f.refuse(fault.Conflict, "records/session/ab12", records(r))
	r.Revision = rev
	got := f.read(named("session", "ab12"))
	if len(got.Records) != 1 || !reflect.DeepEqual(got.Records[0], r) {
		f.Errorf("got records %+v, want %+v", got.Records, r)
	}
	if got := f.read(named("account", "ab12")); len(got.Records) != 0 {
		f.Errorf("another kind has %+v", got.Records)
	}
	r.Body = json.RawMessage(`[2]`)
	later := f.apply(records(r))
	f.refuse(fault.Conflict, "records/session/ab12", records(r))
	r.Revision = later
	if got := f.read(named("session", "ab12")); !reflect.DeepEqual(got.Records[0], r) {
		f.Errorf("got record %+v, want %+v", got.Records[0], r)
	}
	gone := geoconfig.Batch{Remove: []geoconfig.Removal{{Key: r.Key(), Revision: later}}}
	f.apply(gone)
	gone.Key = ""
	f.refuse(fault.Conflict, "records/session/ab12", gone)
	f.refuse(fault.Conflict, "records/session/ab12", records(r))
	r.Revision = 0
	f.apply(records(r))
	if got := f.read(geoconfig.Query{Records: 10, RecordKind: "session"}); len(got.Records) != 2 || got.MoreRecords {
		f.Errorf("at the end: %+v", got)
	}
}

func testRecordPages(f *fixture) {
	f.seed()
	var b geoconfig.Batch
	// Bytes order them: capitals before small letters, all before the next kind.
	for _, name := range []string{"b", "B", "a.b", "a-b", "a", "zz"} {
		b.Records = append(b.Records, record("plan", name))
	}
	b.Records = append(b.Records, record("plan-2", "a"), record("plan2", "a"), record("pla", "n"))
	f.apply(b)
	var got []string
	q := geoconfig.Query{Records: 2, RecordKind: "plan"}
	for range 10 {
		rows := f.read(q)
		for _, r := range rows.Records {
			got = append(got, r.Name)
			q.RecordsAfter = r.Name
		}
		if !rows.MoreRecords {
			break
		}
	}
	if want := []string{"B", "a", "a-b", "a.b", "b", "zz"}; !reflect.DeepEqual(got, want) {
		f.Errorf("the pages hold %v, want %v", got, want)
	}
	q = geoconfig.Query{Records: 1, RecordKind: "plan", RecordKeys: []geoconfig.RecordKey{{Kind: "plan", Name: "B"}, {Kind: "pla", Name: "n"}, {Kind: "plan", Name: "none"}}}
	if rows := f.read(q); len(rows.Records) != 2 || rows.Records[0].Kind != "pla" || !rows.MoreRecords {
		f.Errorf("a page and names together give %+v", rows.Records)
	}
}

func testRecordValidation(f *fixture) {
	f.seed()
	for what, change := range map[string]func(*geoconfig.Record){
		"no kind":                func(r *geoconfig.Record) { r.Kind = "" },
		"a kind with a slash":    func(r *geoconfig.Record) { r.Kind = "a/b" },
		"a kind in capitals":     func(r *geoconfig.Record) { r.Kind = "Plan" },
		"no name":                func(r *geoconfig.Record) { r.Name = "" },
		"a name with a slash":    func(r *geoconfig.Record) { r.Name = "a/b" },
		"a name with a zero":     func(r *geoconfig.Record) { r.Name = "a\x00" },
		"a long name":            func(r *geoconfig.Record) { r.Name = strings.Repeat("x", 129) },
		"no form":                func(r *geoconfig.Record) { r.Form = 0 },
		"no body":                func(r *geoconfig.Record) { r.Body = nil },
		"a body that is null":    func(r *geoconfig.Record) { r.Body = json.RawMessage("null") },
		"a body that is no JSON": func(r *geoconfig.Record) { r.Body = json.RawMessage("{") },
		"an end before 1970":     func(r *geoconfig.Record) { r.ExpiresNS = -1 },
	} {
		r := record("plan", "a")
		change(&r)
		_, err := f.s.Apply(f.ctx, geoconfig.Batch{Key: f.key(), Records: []geoconfig.Record{r}})
		if !fault.Is(err, fault.Invalid) {
			f.Errorf("%s: got %v, want invalid", what, err)
		}
	}
	r := record("plan", "a")
	r.Body = json.RawMessage(`"` + strings.Repeat("x", geoconfig.MaxRecordBytes) + `"`)
	f.refuse(fault.TooLarge, "records/plan/a", records(r))
	_, err := f.s.Read(f.ctx, geoconfig.Query{Records: geoconfig.MaxRecordPage + 1, RecordKind: "plan"})
	f.fails(fault.TooLarge, "", err)
	_, err = f.s.Read(f.ctx, geoconfig.Query{Records: 1})
	f.fails(fault.Invalid, "", err)
}

func testRecordsAreNotFollowed(f *fixture) {
	rev := f.seed()
	r := record("session", "a")
	at := f.apply(records(r))
	rows := f.follow(rev, 0)
	if rows.Revision != at || len(rows.Records)+len(rows.Sites)+len(rows.Removed) != 0 {
		f.Errorf("a batch of records gives followers %+v", rows)
	}
	f.apply(geoconfig.Batch{Remove: []geoconfig.Removal{{Key: r.Key(), Revision: at}}})
	if rows := f.follow(at, 0); len(rows.Removed) != 0 {
		f.Errorf("the removal gives followers %+v", rows)
	}
	if rows := f.follow(0, 0); len(rows.Records) != 0 || len(rows.Sites) != len(siteNames) {
		f.Errorf("following from 0 gives %+v", rows)
	}
}

func testRecordBound(f *fixture) {
	f.seed()
	for n := 0; n < geoconfig.MaxRecords; n += geoconfig.MaxBatchRows {
		var b geoconfig.Batch
		for i := range geoconfig.MaxBatchRows {
			b.Records = append(b.Records, record("plan", fmt.Sprintf("n%05d", n+i)))
		}
		f.apply(b)
	}
	f.refuse(fault.TooLarge, "records/plan", records(record("plan", "more")))
	f.apply(records(record("session", "another-kind")))
	first := f.read(named("plan", "n00000")).Records[0]
	swapped := records(record("plan", "more"))
	swapped.Remove = []geoconfig.Removal{{Key: first.Key(), Revision: first.Revision}}
	f.apply(swapped)
	f.refuse(fault.TooLarge, "records/plan", records(record("plan", "and-more")))
}

package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/node/api/problem"
	"cartwheel.dev/node/api/view"
)

// recorded is when the records of record begin.
var recorded = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// record appends audit records, one each minute.
func (f *fleet) record(n int, of func(i int) geoconfig.AuditRecord) {
	f.t.Helper()
	for from := 0; from < n; from += geoconfig.MaxBatchRows {
		b := geoconfig.Batch{Key: fmt.Sprint("records", from)}
		for i := from; i < min(n, from+geoconfig.MaxBatchRows); i++ {
			r := of(i)
			if r.AtNS == 0 {
				r.AtNS = minute(i).UnixNano()
			}
			b.Audit = append(b.Audit, r)
		}
		f.apply(b)
	}
}

func minute(i int) time.Time { return recorded.Add(time.Duration(i) * time.Minute) }

// plain is a record that no search of these tests looks for.
func plain(i int) geoconfig.AuditRecord {
	return geoconfig.AuditRecord{Who: "bob", Action: "slice.policy", Subject: fmt.Sprintf("slices/%d", i), Detail: "level 3"}
}

// activity asks once.
func (f *fleet) activity(q url.Values) view.ActivityList {
	f.t.Helper()
	return get[view.ActivityList](f, "/activity?"+q.Encode())
}

// follow asks until no cursor is left. It returns the subjects, and how often it asked.
func (f *fleet) follow(q url.Values) (subjects []string, asked int) {
	f.t.Helper()
	for {
		page := f.activity(q)
		asked++
		for _, a := range page.Items {
			subjects = append(subjects, a.Subject)
		}
		if page.Next == "" {
			return subjects, asked
		}
		q.Set("cursor", page.Next)
	}
}

func TestActivity_FindsWhatIsFarBack(t *testing.T) {
	f := newFleet(t, 1)
	f.record(12_000, func(i int) geoconfig.AuditRecord {
		if i == 7 {
			return geoconfig.AuditRecord{Who: "eve", Action: "site.add", Subject: "sites/lima", Detail: "By the Sea"}
		}
		return plain(i)
	})
	for _, q := range []url.Values{{"who": {"eve"}}, {"action": {"site."}}, {"subject": {"sites/lima"}}, {"subject": {"sites"}}, {"subject": {"lima"}}, {"q": {"the sea"}}, {"who": {"eve"}, "action": {"site.add"}, "q": {"EVE"}}} {
		first := f.activity(q)
		if len(first.Items) != 0 || first.Next == "" || first.SearchedToAt == nil || !first.SearchedToAt.Equal(minute(2000)) {
			t.Errorf("%v: got %d items, next %q, searched to %v; want a bounded search with nothing yet", q, len(first.Items), first.Next, first.SearchedToAt)
		}
		if got, asked := f.follow(q); !slices.Equal(got, []string{"sites/lima"}) || asked != 2 {
			t.Errorf("%v: got %v by %d requests, want the one by 2", q, got, asked)
		}
	}
	if got, _ := f.follow(url.Values{"who": {"ev"}}); len(got) != 0 {
		t.Errorf("half a name: got %v", got)
	}
}

func TestActivity_GoesOnWithoutLossOrRepetition(t *testing.T) {
	f := newFleet(t, 1)
	var want []string
	f.record(3000, func(i int) geoconfig.AuditRecord {
		r := plain(i)
		if i%13 == 0 || i%1000 > 990 {
			r.Who, want = "ann", append(want, r.Subject)
		}
		return r
	})
	want = append([]string{"cluster/cluster"}, want...) // ann founded the cluster
	slices.Reverse(want)
	for _, limit := range []string{"1", "7", "500"} {
		if got, _ := f.follow(url.Values{"who": {"ann"}, "limit": {limit}}); !slices.Equal(got, want) {
			t.Errorf("in pages of %s: got %d records, want %d, the newest first", limit, len(got), len(want))
		}
	}
	if got, asked := f.follow(url.Values{"limit": {"500"}}); len(got) != 3001 || asked != 7 {
		t.Errorf("without filters: got %d records by %d requests, want 3001 by 7", len(got), asked)
	}
}

func TestActivity_HasARangeOfTime(t *testing.T) {
	f := newFleet(t, 1)
	f.record(60, plain)
	at := func(i int) string { return minute(i).Format(time.RFC3339Nano) }
	just := minute(12).Add(time.Nanosecond).Format(time.RFC3339Nano)
	for _, c := range []struct {
		name        string
		q           url.Values
		first, last int // by the minute; the cluster's founding is long before
	}{
		{"from is within, to is not", url.Values{"from": {at(10)}, "to": {at(12)}}, 10, 11},
		{"a nanosecond more", url.Values{"from": {at(10)}, "to": {just}}, 10, 12},
		{"a nanosecond later", url.Values{"from": {just}, "to": {at(15)}}, 13, 14},
		{"no end", url.Values{"from": {at(58)}}, 58, 59},
		{"another zone", url.Values{"from": {"2026-01-01T02:10:00+02:00"}, "to": {at(11)}}, 10, 10},
	} {
		got, _ := f.follow(c.q)
		var want []string
		for i := c.last; i >= c.first; i-- {
			want = append(want, fmt.Sprintf("slices/%d", i))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
	if got, _ := f.follow(url.Values{"to": {at(0)}}); !slices.Equal(got, []string{"cluster/cluster"}) {
		t.Errorf("before all: got %v", got)
	}
}

func TestActivity_GoesStraightToATimeLongAgo(t *testing.T) {
	f := newFleet(t, 1)
	f.record(30_000, func(i int) geoconfig.AuditRecord {
		r := plain(i)
		if i == 150 { // its writer's clock is half an hour behind
			r.AtNS = minute(120).UnixNano()
		}
		return r
	})
	q := url.Values{"from": {minute(119).Format(time.RFC3339)}, "to": {minute(122).Format(time.RFC3339)}}
	got, asked := f.follow(q)
	if want := []string{"slices/150", "slices/121", "slices/120", "slices/119"}; !slices.Equal(got, want) || asked != 1 {
		t.Errorf("got %v by %d requests, want %v by one", got, asked, want)
	}
	recent := f.activity(url.Values{"from": {minute(29_998).Format(time.RFC3339)}})
	if len(recent.Items) != 2 || recent.Next != "" {
		t.Errorf("the newest: got %d and next %q, want 2 and no search through all the rest", len(recent.Items), recent.Next)
	}
}

func TestActivity_AllowsForClocksThatDiffer(t *testing.T) {
	f := newFleet(t, 1)
	at := func(i int) time.Time { return minute(i + i%2*50) } // every other writer is 50 minutes ahead
	f.record(10_000, func(i int) geoconfig.AuditRecord {
		r := plain(i)
		r.AtNS = at(i).UnixNano()
		return r
	})
	for begin := 100; begin < 9900; begin += 157 {
		from, to := minute(begin), minute(begin+10)
		var want []string
		for i := begin + 10; i >= begin-60; i-- {
			if !at(i).Before(from) && at(i).Before(to) {
				want = append(want, fmt.Sprintf("slices/%d", i))
			}
		}
		if got, _ := f.follow(url.Values{"from": {from.Format(time.RFC3339)}, "to": {to.Format(time.RFC3339)}}); !slices.Equal(got, want) {
			t.Errorf("from minute %d: got %v, want %v", begin, got, want)
		}
	}
}

func TestActivity_RefusesBadValues(t *testing.T) {
	f := newFleet(t, 1)
	for q, subject := range map[string]string{
		"from=yesterday": "query.from",
		"to=2026-01-01":  "query.to",
		"cursor=abc":     "query.cursor",
		"limit=0":        "query.limit",
		"from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z": "from",
		"from=2026-01-02T00:00:00Z&to=2026-01-02T00:00:00Z": "from",
	} {
		w := f.request(http.MethodGet, "/api/v1/activity?"+q, "viewer", nil)
		var p problem.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		named := p.Subject == subject || len(p.Fields) == 1 && p.Fields[0].Location == subject
		if w.Code/100 != 4 || !named || p.Remedy == "" {
			t.Errorf("%s: got %d, %+v; want a refusal that names %s and a remedy", q, w.Code, p, subject)
		}
	}
}

func TestActivity_SearchesItsCacheWithoutTheStore(t *testing.T) {
	f := newFleet(t, 1)
	f.record(700, plain)
	f.activity(url.Values{"who": {"bob"}})
	f.store.away.Store(true)
	a := f.activity(url.Values{"subject": {"slices/699"}})
	if len(a.Items) != 1 || a.Next == "" || a.Freshness.GeoConfig.Reachable {
		t.Errorf("got %d items, next %q, reachable %v; want the newest, a way on, and a word on the store", len(a.Items), a.Next, a.Freshness.GeoConfig.Reachable)
	}
	if w := f.request(http.MethodGet, "/api/v1/activity?cursor="+a.Next, "viewer", nil); w.Code != http.StatusBadGateway {
		t.Errorf("further back: got %d, %s", w.Code, w.Body)
	}
}

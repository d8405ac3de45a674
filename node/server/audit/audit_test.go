package audit_test

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/audit"
)

const ms = time.Millisecond

func TestFind_ReportsWhatContradictsTheRoster(t *testing.T) {
	limits := audit.DefaultLimits()
	found := []status.Finding{{Kind: status.SitesTogether, Other: "b"}, {Kind: status.SiteApart, Other: "a2"}}
	for _, test := range []struct {
		name   string
		sight  audit.Sight
		before []status.Finding
		want   string
	}{
		{"another site under a millisecond away", audit.Sight{Node: "b", Site: "y", Least: 400 * time.Microsecond, Samples: 5}, nil, "sites_together b"},
		{"another site 22 ms away", audit.Sight{Node: "b", Site: "y", Least: 22 * ms, Samples: 100}, nil, ""},
		{"too few samples to judge", audit.Sight{Node: "b", Site: "y", Least: 400 * time.Microsecond, Samples: 4}, nil, ""},
		{"samples too old to judge", audit.Sight{Node: "b", Site: "y", Least: 400 * time.Microsecond, Samples: 50, Age: time.Hour}, nil, ""},
		{"at the limit", audit.Sight{Node: "b", Site: "y", Least: 1100 * time.Microsecond, Samples: 50}, nil, ""},
		{"at the limit, found before", audit.Sight{Node: "b", Site: "y", Least: 1100 * time.Microsecond, Samples: 50}, found, "sites_together b"},
		{"well over, found before", audit.Sight{Node: "b", Site: "y", Least: 2 * ms, Samples: 50}, found, ""},
		{"the same site, near", audit.Sight{Node: "a2", Site: "x", Least: 300 * time.Microsecond, Samples: 50}, nil, ""},
		{"the same site, across a sea", audit.Sight{Node: "a2", Site: "x", Least: 70 * ms, Samples: 50}, nil, "site_apart a2"},
		{"the same site, nearly near, found before", audit.Sight{Node: "a2", Site: "x", Least: 9 * ms, Samples: 50}, found, "site_apart a2"},
		{"itself", audit.Sight{Node: "a", Site: "x", Least: time.Microsecond, Samples: 50}, nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range audit.Find("a", "x", []audit.Sight{test.sight}, limits, test.before) {
				got = append(got, string(f.Kind)+" "+string(f.Other))
				if f.LeastNS != test.sight.Least || f.Samples != test.sight.Samples || f.Node != "a" || f.Site != "x" || f.OtherSite != test.sight.Site {
					t.Errorf("the evidence is %+v, not that of %+v", f, test.sight)
				}
			}
			if s := strings.Join(got, ", "); s != test.want {
				t.Errorf("got %q, want %q", s, test.want)
			}
		})
	}
}

func TestChanges_SaysWhatIsNewAndWhatIsOver(t *testing.T) {
	b, c := status.Finding{Kind: status.SitesTogether, Other: "b", Samples: 5}, status.Finding{Kind: status.SitesTogether, Other: "c"}
	later := b
	later.Samples = 50
	begun, over := audit.Changes([]status.Finding{b}, []status.Finding{later, c})
	if len(begun) != 1 || begun[0] != c || len(over) != 0 {
		t.Errorf("got %v begun and %v over, want c begun", begun, over)
	}
	begun, over = audit.Changes([]status.Finding{later, c}, []status.Finding{c})
	if len(begun) != 0 || len(over) != 1 || over[0] != later {
		t.Errorf("got %v begun and %v over, want b over", begun, over)
	}
}

package command

import (
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
	"cartwheel.dev/node/server/servertest"
)

func TestNet_ShowsWhatIsMeasuredAndPredicted(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	var v netView
	a.await("all six ways to be measured and predicted", func() bool {
		a.json(&v, "net", "matrix")
		for _, l := range v.Links {
			if l.Measured == nil || l.Predicted == nil || l.Difference == nil || l.AgeS == nil || l.Path != "direct" && l.Path != "local" {
				return false
			}
		}
		return len(v.Links) == 6
	})
	var nodes []netNode
	a.json(&nodes, "net", "coords")
	if len(nodes) != 3 || nodes[0].Coordinate == nil || nodes[0].Site != "boston" {
		t.Errorf("got %+v, want three nodes with coordinates, by site", nodes)
	}
	a.json(&v, "net", "probe", "tokyo", string(c.Nodes[1].ID()), "--count", "3")
	if len(v.Nodes) != 2 || len(v.Links) != 2 || len(v.Links[0].Probes) != 3 || v.Links[0].Probes[0] <= 0 {
		t.Errorf("got %+v, want three measurements each way between two nodes", v)
	}
	if code, _, said := a.run("net", "matrix", "atlantis"); code != fault.ExitNotFound {
		t.Errorf("exit code %d, %s; want %d", code, said, fault.ExitNotFound)
	}
	c.Nodes[2].Kill()
	code, out, said := a.run("net", "matrix")
	if code != 0 || !strings.Contains(out, "paris "+short(c.Nodes[2].ID())+" does not answer") || !strings.Contains(out, "Difference, ms:") {
		t.Errorf("exit code %d, want the node that does not answer named: %s%s", code, out, said)
	}
	code, out, _ = a.run("net", "probe")
	if code != 0 || !strings.Contains(out, "could not measure paris") {
		t.Errorf("exit code %d, want the way that could not be measured named: %s", code, out)
	}
}

func TestStatus_WarnsOfSitesThatAreOnePlace(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"tokyo", "boston", "paris"}})
	a := askerOf(t, c, "root")
	var v statusView
	a.await("the audit of all three nodes", func() bool {
		a.json(&v, "status")
		return len(v.Warnings) == 1 && len(v.Warnings[0].Evidence) == 6
	})
	w := v.Warnings[0]
	if !v.Healthy || w.Kind != status.SitesTogether || len(w.Sites) != 3 || w.Evidence[0].Samples < 5 || w.Evidence[0].LeastNS <= 0 {
		t.Errorf("got %+v, want a healthy cluster and the evidence", v)
	}
	_, out, _ := a.run("status")
	if n := strings.Count(out, "Warning: the sites boston, paris and tokyo are one failure domain"); n != 1 || !strings.Contains(out, "samples") {
		t.Errorf("got %q, want one line with the evidence", out)
	}
}

func TestWarnings_JoinWhatBelongsTogether(t *testing.T) {
	near := func(a, b string, rtt time.Duration) status.Finding {
		return status.Finding{Kind: status.SitesTogether, Node: ids.Node("n" + a), Site: ids.Site(a),
			Other: ids.Node("n" + b), OtherSite: ids.Site(b), LeastNS: rtt, Samples: 9}
	}
	apart := status.Finding{Kind: status.SiteApart, Node: "n1", Site: "a", Other: "n2", OtherSite: "a", LeastNS: 40 * time.Millisecond, Samples: 7}
	got := warnings([]status.Finding{near("a", "b", 300*time.Microsecond), near("x", "y", time.Microsecond), near("c", "b", 200*time.Microsecond), apart}, false)
	var texts []string
	for _, w := range got {
		texts = append(texts, w.Text)
	}
	if len(got) != 3 || len(got[0].Sites) != 3 || got[0].Evidence[0].Site != "c" || !strings.Contains(texts[0], "a, b and c") ||
		!strings.Contains(texts[1], "x and y") || !strings.Contains(texts[2], "site a are not at one place") || !strings.Contains(texts[2], "40.00 ms") {
		t.Errorf("got %q, want a, b and c as one, x and y as another, and a apart", texts)
	}
}

// TestWarnings_DemoIsOnePlace asks for the warnings of a demo, whose contact
// file says that it is one. They do not say that its sites stand together, and
// still say what is wrong.
func TestWarnings_DemoIsOnePlace(t *testing.T) {
	found := []status.Finding{
		{Kind: status.SitesTogether, Site: "a", OtherSite: "b", Samples: 5},
		{Kind: status.SiteApart, Site: "c", OtherSite: "c", Samples: 5},
	}
	if got := warnings(found, false); len(got) != 2 {
		t.Errorf("%d warnings of a cluster, want 2", len(got))
	}
	if got := warnings(found, true); len(got) != 1 || got[0].Kind != status.SiteApart {
		t.Errorf("the warnings of a demo are %+v, want that of the site that is apart", got)
	}
}

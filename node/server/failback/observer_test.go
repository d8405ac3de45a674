package failback

import (
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/ids"
)

func TestReturns_FromWhenTheHomeWasOut(t *testing.T) {
	const now = time.Hour
	row := func(active ids.Node, home geoconfig.MemberState) geoconfig.SliceRow {
		return geoconfig.SliceRow{ID: 7, Active: active, Policy: geoconfig.Policy{Home: "a"},
			Members: []geoconfig.Member{{Node: "a1", State: home}, {Node: "b1", State: geoconfig.Normal}}}
	}
	nobody := row("b1", geoconfig.Failed)
	nobody.Members = nobody.Members[1:]
	type rows = []geoconfig.SliceRow
	for name, tt := range map[string]struct {
		rows rows
		age  time.Duration // of the last
		want bool
	}{
		"led at home":                     {rows: rows{row("a1", geoconfig.Normal)}},
		"an operator handed it over":      {rows: rows{row("a1", geoconfig.Normal), row("b1", geoconfig.Normal)}},
		"its home is out":                 {rows: rows{row("b1", geoconfig.Failed)}, age: time.Hour, want: true},
		"its home catches up":             {rows: rows{row("b1", geoconfig.Failed), row("b1", geoconfig.Recovering)}, age: time.Hour, want: true},
		"its home is normal again":        {rows: rows{row("b1", geoconfig.Recovering), row("b1", geoconfig.Normal)}, age: Pause - 1, want: true},
		"but it does not come":            {rows: rows{row("b1", geoconfig.Recovering), row("b1", geoconfig.Normal)}, age: Pause},
		"it came":                         {rows: rows{row("b1", geoconfig.Recovering), row("b1", geoconfig.Normal), row("a1", geoconfig.Normal)}},
		"nobody is left at home":          {rows: rows{row("b1", geoconfig.Failed), nobody}},
		"came, then handed to the others": {rows: rows{row("b1", geoconfig.Recovering), row("a1", geoconfig.Normal), row("b1", geoconfig.Normal)}},
	} {
		t.Run(name, func(t *testing.T) {
			var o Observer
			for _, r := range tt.rows {
				o.Note(r, now, func(n ids.Node) ids.Site { return ids.Site(n[:1]) })
			}
			if got := o.Returns(7, now+tt.age); got != tt.want {
				t.Errorf("on its way home: %v, want %v", got, tt.want)
			}
			if o.Returns(8, now) {
				t.Error("and so is a slice that nobody heard of")
			}
		})
	}
}

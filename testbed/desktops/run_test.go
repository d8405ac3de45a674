package desktops

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func run(t *testing.T, o Options, policies ...Policy) Result {
	t.Helper()
	r, err := Run(t.Context(), o, policies)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRun_IsDeterminedByItsOptions(t *testing.T) {
	o := small()
	first := run(t, o, Policies()...)
	if again := run(t, o, Policies()...); !reflect.DeepEqual(first, again) {
		t.Errorf("got %+v, and then %+v", first, again)
	}
	for i, p := range Policies() {
		if alone := run(t, o, p); !reflect.DeepEqual(alone.Outcomes[0], first.Outcomes[i]) {
			t.Errorf("%s: got %+v beside others, and %+v alone", p, first.Outcomes[i], alone.Outcomes[0])
		}
	}
	o.Seed++
	if other := run(t, o, Policies()...); reflect.DeepEqual(first.Outcomes, other.Outcomes) {
		t.Error("another seed gave the same")
	}
}

// TestRun_CountsEveryRead holds the outcomes against the trace.
func TestRun_CountsEveryRead(t *testing.T) {
	o := small()
	r := run(t, o, Policies()...)
	f, weeks := r.Facts, make([]int, o.weeks())
	for _, e := range events(o) {
		if e.Kind == Read {
			weeks[e.At/week]++
		}
	}
	for _, x := range r.Outcomes {
		var all Reads
		for i, w := range x.Weeks {
			all = Reads{all.Primary + w.Primary, all.Secondary + w.Secondary, all.Remote + w.Remote, all.Missing + w.Missing}
			if got := w.Served() + w.Missing; got != weeks[i] || got == 0 {
				t.Errorf("%s: got %d reads in week %d, want %d", x.Policy, got, i, weeks[i])
			}
		}
		if all != x.All || len(x.Weeks) != len(weeks) {
			t.Errorf("%s: got %+v in %d weeks, and %+v in all", x.Policy, all, len(x.Weeks), x.All)
		}
		if want := f.ByKind["create"] + f.ByKind["replace"] + f.ByKind["append"]; x.Writes != want {
			t.Errorf("%s: got %d writes, want %d", x.Policy, x.Writes, want)
		}
	}
}

// TestRun_AtTheEnds has users who never move, and disks with room: all that they
// read of their own is at their desks.
func TestRun_AtTheEnds(t *testing.T) {
	o := small()
	o.Full, o.Move, o.Habits.Shared = 0, 0, 0
	for _, x := range run(t, o, BeeRandom, BeeLRU, CartwheelSites).Outcomes {
		if x.All.Local() != 1 || x.Moved+x.Evicted+x.Elsewhere+x.Refused != 0 {
			t.Errorf("%s: got %+v, want all reads local and all disks with room", x.Policy, x)
		}
	}
	o.Habits.Shared = 1
	for _, x := range run(t, o, BeeLRU, CartwheelSites).Outcomes {
		if x.All.Local() != 0 {
			t.Errorf("%s: %g of the reads of others' files are local", x.Policy, x.All.Local())
		}
	}
}

func TestRun_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, small(), Policies()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), small(), []Policy{"wishes"}); !fault.Is(err, fault.Usage) {
		t.Errorf("a policy that there is not: got %v", err)
	}
}

func TestValidate_NamesWhatIsImpossible(t *testing.T) {
	if err := Defaults().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Options){
		"desktops": func(o *Options) { o.Desktops = 1 }, "full": func(o *Options) { o.Full = 50 }, "fill": func(o *Options) { o.Fill = 1 },
		"disk-gb": func(o *Options) { o.DiskBytes = 0 }, "copies": func(o *Options) { o.Copies = 4 }, "months": func(o *Options) { o.Months = 0 },
		"coherence": func(o *Options) { o.Coherence = -time.Second }, "moves": func(o *Options) { o.Move = 1.5 },
		"locality": func(o *Options) { o.Habits.Locality = -1 }, "opens": func(o *Options) { o.Habits.Opens = 0 }, "login-days": func(o *Options) { o.Habits.LoginDays = 0 },
		"files": func(o *Options) { o.Habits.Files = 0 },
	} {
		o := Defaults()
		change(&o)
		if err := o.Validate(); !fault.Is(err, fault.Usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want an error that names it", name, err)
		}
	}
	o := Defaults()
	o.DiskBytes, o.Habits.Files = 1e8, 90_000
	if err := o.Validate(); !fault.Is(err, fault.Usage) {
		t.Errorf("files that fill all disks: got %v", err)
	}
}

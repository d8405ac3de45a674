package link

import (
	"math"
	"slices"
	"testing"
)

const ms = 1_000_000 // in ns

// two is two sites with the same path both ways.
func two(p Params) *State {
	return &State{Sides: make([]Side, 2), Pairs: []Params{{}, p, p, {}}}
}

// fat is a path with room for everything.
func fat() Params { return Params{Delay: 10 * ms, Queue: 1 << 40} }

// got is what came out, by the caller's number.
type got struct {
	ref uint32
	at  int64
}

// drain pops all that is due by until, in order, and fails if time goes back.
func drain(t *testing.T, l *Net, until int64) (out []got, dropped map[Fate]int) {
	t.Helper()
	dropped = map[Fate]int{}
	last := int64(math.MinInt64)
	for {
		o, ok := l.Pop(until)
		if !ok {
			return out, dropped
		}
		if o.At < last || o.At > until {
			t.Fatalf("due at %d after %d, asked until %d", o.At, last, until)
		}
		last = o.At
		if o.Fate == Arrived {
			out = append(out, got{o.Ref, o.At})
		} else {
			dropped[o.Fate]++
		}
	}
}

func send(l *Net, at int64, from, to, bytes int, ref uint32) int {
	return l.Admit(at, Packet{From: from, To: to, Bytes: bytes, Segments: 1, Ref: ref})
}

func want(t *testing.T, out []got, wanted ...got) {
	t.Helper()
	if !slices.Equal(out, wanted) {
		t.Fatalf("got %v, want %v", out, wanted)
	}
}

func TestDelay_PacketArrivesAfterIt(t *testing.T) {
	l := New(1, two(fat()))
	send(l, 5*ms, 0, 1, 1500, 7)
	if at, ok := l.Next(); !ok || at != 15*ms {
		t.Errorf("next is %d %v, want 15 ms", at, ok)
	}
	if out, _ := drain(t, l, 15*ms-1); len(out) > 0 {
		t.Errorf("%v left early", out)
	}
	out, _ := drain(t, l, 15*ms)
	want(t, out, got{7, 15 * ms})
	if _, ok := l.Next(); ok || l.Holds() != 0 {
		t.Error("something is held")
	}
}

func TestRate_SpacesPackets(t *testing.T) {
	p := fat()
	p.Rate = 12_000_000 // 1500 bytes a millisecond
	l := New(1, two(p))
	for i := range uint32(3) {
		send(l, 0, 0, 1, 1500, i)
	}
	send(l, 50*ms, 0, 1, 1500, 3) // the link is idle by then
	out, _ := drain(t, l, 1000*ms)
	want(t, out, got{0, 11 * ms}, got{1, 12 * ms}, got{2, 13 * ms}, got{3, 61 * ms})
}

func TestQueue_TakesItsBytesAndNoMore(t *testing.T) {
	p := fat()
	p.Rate, p.Queue = 12_000_000, 4500
	l := New(1, two(p))
	taken := 0
	for i := range uint32(10) {
		taken += send(l, 0, 0, 1, 1500, i)
	}
	if taken != 3 || l.Counts()[1].Fates[QueueFull] != 7 {
		t.Errorf("%d taken, %+v", taken, l.Counts()[1])
	}
	if send(l, ms, 0, 1, 1500, 11) != 1 || send(l, ms, 0, 1, 1500, 12) != 0 {
		t.Error("after one was sent there is room for one")
	}
}

func TestUplink_IsSharedByAllPaths(t *testing.T) {
	s := &State{Sides: make([]Side, 3), Pairs: make([]Params, 9)}
	for i := range s.Pairs {
		s.Pairs[i] = fat()
	}
	s.Sides[0].Up, s.Sides[0].UpQueue = 12_000_000, 1<<20
	l := New(1, s)
	send(l, 0, 0, 1, 1500, 0)
	send(l, 0, 0, 2, 1500, 1)
	send(l, 0, 1, 2, 1500, 2) // of another site
	out, _ := drain(t, l, 1000*ms)
	want(t, out, got{2, 10 * ms}, got{0, 11 * ms}, got{1, 12 * ms})
}

func TestDownlink_ServesWhatArrivesFirst(t *testing.T) {
	s := &State{Sides: make([]Side, 3), Pairs: make([]Params, 9)}
	for i := range s.Pairs {
		s.Pairs[i] = fat()
	}
	s.Pairs[1*3+2].Delay = 2 * ms
	s.Sides[2].Down, s.Sides[2].DownQueue = 12_000_000, 3000
	l := New(1, s)
	send(l, 0, 0, 2, 1500, 0)    // arrives at 10
	send(l, 8*ms, 1, 2, 1500, 1) // at 10 too, but later sent
	send(l, 7*ms, 1, 2, 1500, 2) // as it may not overtake 1: at 10
	send(l, 0, 0, 2, 1500, 3)    // finds the downlink full
	out, dropped := drain(t, l, 1000*ms)
	if len(out) != 2 || out[0] != (got{0, 11 * ms}) || out[1].at != 12*ms || dropped[DownlinkFull] != 2 {
		t.Errorf("got %v, dropped %v", out, dropped)
	}
}

func TestJitter_StaysWithinItsBoundsAndOrder(t *testing.T) {
	p := fat()
	p.Delay, p.Jitter = 30*ms, 10*ms
	l := New(3, two(p))
	const n = 20000
	var least, most, sum int64 = math.MaxInt64, 0, 0
	for i := range int64(n) {
		send(l, i*ms, 0, 1, 100, uint32(i))
	}
	out, _ := drain(t, l, math.MaxInt64/2)
	for i, o := range out {
		if int(o.ref) != i {
			t.Fatalf("packet %d came as number %d", o.ref, i)
		}
		if i > 0 && o.at-out[i-1].at < ms/2-1 {
			t.Fatalf("sent 1 ms after the one before, packet %d arrived %d ns after it: delays fall too fast", i, o.at-out[i-1].at)
		}
		d := o.at - int64(o.ref)*ms
		least, most, sum = min(least, d), max(most, d), sum+d
	}
	mean := float64(sum) / n / ms
	if least < 20*ms || most > 40*ms || least > 21*ms || most < 39*ms || math.Abs(mean-30) > 1 {
		t.Errorf("delays from %v to %v ms, mean %v", least/ms, most/ms, mean)
	}
}

// shares counts what chance does in n packets.
func shares(p Params, n int) (lost, doubled, overtaken, corrupted, garbled float64, runs int) {
	l := New(11, two(p))
	seen := make([]int, n)
	highest := -1
	count := map[string]int{}
	take := func(until int64) {
		for {
			o, ok := l.Pop(until)
			if !ok {
				return
			}
			if seen[o.Ref]++; seen[o.Ref] == 2 {
				count["doubled"]++
				continue
			}
			if int(o.Ref) < highest {
				count["overtaken"]++
			}
			highest = max(highest, int(o.Ref))
			if o.Corrupt {
				count["corrupted"]++
			}
			if o.Garble {
				count["garbled"]++
			}
		}
	}
	for i := range n {
		send(l, int64(i)*ms, 0, 1, 100, uint32(i))
		take(int64(i) * ms)
	}
	take(math.MaxInt64 / 2)
	for i := range seen {
		if seen[i] == 0 {
			count["lost"]++
			if i == 0 || seen[i-1] > 0 {
				runs++
			}
		}
	}
	of := func(what string) float64 { return float64(count[what]) / float64(n) }
	return of("lost"), of("doubled"), of("overtaken"), of("corrupted"), of("garbled"), runs
}

func near(t *testing.T, what string, got, wanted float64, n int) {
	t.Helper()
	if within := 4 * math.Sqrt(wanted*(1-wanted)/float64(n)); math.Abs(got-wanted) > within {
		t.Errorf("%s: %v, want %v +- %v", what, got, wanted, within)
	}
}

func TestChance_KeepsItsShares(t *testing.T) {
	const n = 30_000
	p := fat()
	p.ReorderBy = 5 * ms
	for _, share := range []float64{0, 0.001, 0.05, 0.3} {
		all := p
		all.Loss = share
		lost, _, _, _, _, _ := shares(all, n)
		near(t, "lost", lost, share, n)
		all = p
		all.Duplicate, all.Reorder, all.Corrupt = share, share, share
		lost, doubled, overtaken, corrupted, _, _ := shares(all, n)
		near(t, "doubled", doubled, share, n)
		near(t, "corrupted", corrupted, share, n)
		near(t, "overtaken", overtaken, share, n)
		near(t, "lost beside", lost, 0, n)
		all = p
		all.Garble = share
		_, _, _, _, garbled, _ := shares(all, n)
		near(t, "garbled", garbled, share, n)
	}
	if lost, _, _, _, _, _ := shares(Params{Loss: 1}, 1000); lost != 1 {
		t.Errorf("all is lost: %v", lost)
	}
}

func TestLoss_ComesInRunsOfItsLength(t *testing.T) {
	p := fat()
	p.Loss, p.Burst = 0.05, 8
	const n = 150_000
	lost, _, _, _, _, runs := shares(p, n)
	mean := lost * n / float64(runs)
	if math.Abs(lost-0.05) > 0.01 || math.Abs(mean-8) > 1 {
		t.Errorf("%v lost, %v in a row", lost, mean)
	}
}

func TestSeed_RepeatsTheFate(t *testing.T) {
	p := fat()
	p.Loss, p.Jitter, p.Duplicate = 0.2, 5*ms, 0.1
	fate := func(seed uint64, others bool) []got {
		l := New(seed, two(p))
		for i := range 500 {
			send(l, int64(i)*ms, 0, 1, 100, uint32(i))
			if others {
				send(l, int64(i)*ms, 1, 0, 100, uint32(10000+i))
			}
		}
		out, _ := drain(t, l, math.MaxInt64/2)
		return slices.DeleteFunc(out, func(g got) bool { return g.ref >= 10000 })
	}
	if !slices.Equal(fate(1, false), fate(1, true)) {
		t.Error("traffic of another path changed it")
	}
	if slices.Equal(fate(1, false), fate(2, false)) {
		t.Error("two seeds gave the same")
	}
}

func TestCut_IsOneWay(t *testing.T) {
	s := two(fat())
	l := New(1, s)
	send(l, 0, 0, 1, 100, 0)
	cut := two(fat())
	cut.Pairs[1].Cut = true
	l.Set(ms, cut)
	if send(l, ms, 0, 1, 100, 1) != 0 || send(l, ms, 1, 0, 100, 2) != 1 {
		t.Error("cut the wrong way")
	}
	out, _ := drain(t, l, 1000*ms)
	want(t, out, got{0, 10 * ms}, got{2, 11 * ms}) // what was under way arrives
	if l.Counts()[1].Fates[Cut] != 1 {
		t.Errorf("%+v", l.Counts()[1])
	}
}

func TestOff_SiteNeitherSendsNorReceives(t *testing.T) {
	l := New(1, two(fat()))
	send(l, 0, 0, 1, 100, 0)
	send(l, 0, 1, 0, 100, 1) // left before, so it arrives
	off := two(fat())
	off.Sides[1].Off = true
	l.Set(5*ms, off)
	if send(l, 6*ms, 1, 0, 100, 2) != 0 {
		t.Error("a site that is off sent")
	}
	out, dropped := drain(t, l, 20*ms)
	want(t, out, got{1, 10 * ms})
	if dropped[Off] != 1 {
		t.Errorf("dropped %v", dropped)
	}
	l.Set(30*ms, two(fat()))
	send(l, 30*ms, 0, 1, 100, 3)
	out, _ = drain(t, l, 50*ms)
	want(t, out, got{3, 40 * ms})
}

func TestBlackout_ComesOnTime(t *testing.T) {
	s := two(Params{Queue: 1 << 20})
	s.Sides[1].Blackouts = []Blackout{{Every: 60 * ms, For: 30 * ms, From: 100 * ms}}
	l := New(1, s)
	for _, c := range []struct {
		at int64
		on bool
	}{{99, true}, {100, false}, {129, false}, {130, true}, {159, true}, {160, false}, {190, true}, {220, false}} {
		if on := send(l, c.at*ms, 1, 0, 100, 0) == 1; on != c.on {
			t.Errorf("at %d ms: on is %v", c.at, on)
		}
	}
}

// TestSet_ChangedRateMovesWhatWaits compares with a model that sends the same
// packets over a path of a fixed rate.
func TestSet_ChangedRateMovesWhatWaits(t *testing.T) {
	slow, quick := fat(), fat()
	slow.Rate, quick.Rate = 1_200_000, 12_000_000 // 10 ms and 1 ms for 1500 bytes
	l := New(1, two(slow))
	for i := range uint32(4) {
		send(l, 0, 0, 1, 1500, i) // would leave at 10, 20, 30, 40
	}
	l.Set(15*ms, two(quick)) // the second is half sent
	send(l, 15*ms, 0, 1, 1500, 4)
	out, _ := drain(t, l, 1000*ms)
	half := int64(ms / 2)
	want(t, out, got{0, 20 * ms}, got{1, 25*ms + half}, got{2, 26*ms + half}, got{3, 27*ms + half}, got{4, 28*ms + half})

	l = New(1, two(quick))
	for i := range uint32(3) {
		send(l, 0, 0, 1, 1500, i)
	}
	l.Set(ms, two(slow))
	out, _ = drain(t, l, 1000*ms)
	want(t, out, got{0, 11 * ms}, got{1, 21 * ms}, got{2, 31 * ms})
}

func TestSet_ChangedDownlinkMovesWhatWaits(t *testing.T) {
	down := func(rate int64) *State {
		s := two(fat())
		s.Sides[1].Down, s.Sides[1].DownQueue = rate, 1<<20
		return s
	}
	l := New(1, down(1_200_000)) // 10 ms for 1500 bytes
	for i := range uint32(3) {
		send(l, 0, 0, 1, 1500, i) // would leave at 20, 30, 40
	}
	drain(t, l, 12*ms)
	l.Set(15*ms, down(12_000_000)) // the first is half sent
	out, _ := drain(t, l, 1000*ms)
	half := int64(ms / 2)
	want(t, out, got{0, 15*ms + half}, got{1, 16*ms + half}, got{2, 17*ms + half})
}

func TestSet_ShorterDelayOvertakesNothing(t *testing.T) {
	long, short := fat(), fat()
	long.Delay = 100 * ms
	l := New(1, two(long))
	send(l, 0, 0, 1, 100, 0)
	l.Set(ms, two(short))
	send(l, 2*ms, 0, 1, 100, 1)
	send(l, 99*ms, 0, 1, 100, 2)
	out, _ := drain(t, l, 1000*ms)
	want(t, out, got{0, 100 * ms}, got{1, 100 * ms}, got{2, 109 * ms})
}

func TestSet_KeepsEveryPacketOnce(t *testing.T) {
	p := fat()
	p.Rate, p.Jitter, p.Reorder, p.ReorderBy = 10_000_000, 3*ms, 0.1, 5*ms
	s := func(rate, up, down int64) *State {
		q := p
		q.Rate = rate
		st := two(q)
		for i := range st.Sides {
			st.Sides[i] = Side{Up: up, Down: down, UpQueue: 1 << 30, DownQueue: 1 << 30}
		}
		return st
	}
	l := New(5, s(10_000_000, 0, 0))
	seen := map[uint32]int{}
	chance := random(9)
	for i := range uint32(3000) {
		now := int64(i) * ms
		send(l, now, int(i%2), int(1-i%2), 100+int(chance.next()%1400), i)
		if i%100 == 0 {
			l.Set(now, s(int64(1_000_000+chance.next()%50_000_000), int64(chance.next()%2)*20_000_000, int64(chance.next()%2)*15_000_000))
		}
		out, _ := drain(t, l, now)
		for _, o := range out {
			seen[o.ref]++
		}
	}
	out, dropped := drain(t, l, math.MaxInt64/2)
	for _, o := range out {
		seen[o.ref]++
	}
	if len(seen) != 3000 || len(dropped) > 0 {
		t.Errorf("%d of 3000 arrived, dropped %v", len(seen), dropped)
	}
	for ref, n := range seen {
		if n != 1 {
			t.Errorf("packet %d came %d times", ref, n)
		}
	}
}

func TestWhole_BigPacketsAreSplitWhereItMatters(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Params)
		want int
	}{
		{"no limit", func(*Params) {}, wholeMost},
		{"loss is drawn for each", func(p *Params) { p.Loss = 0.1 }, 0},
		{"damage is drawn for each", func(p *Params) { p.Garble = 0.1 }, 0},
		{"half a millisecond of the rate", func(p *Params) { p.Rate = 160_000_000 }, 10_000},
	} {
		p := fat()
		c.set(&p)
		if got := New(1, two(p)).Whole(0, 1); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

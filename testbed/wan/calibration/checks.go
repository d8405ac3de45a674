package calibration

import (
	"context"
	"fmt"
	"math"
	"net/netip"
	"time"

	"cartwheel.dev/testbed/wan"
)

const (
	withinRTT  = 1.0  // ms
	withinRate = 0.02 // of the rate
	deviations = 3.3  // of a share's binomial distribution: one in a thousand is further off
	paced      = 20 * wan.Mbit
	full       = 1500 // bytes of a packet
	small      = 228
)

// pairChecks are those of single paths, the ones that warm up neighbours first.
func pairChecks() []check {
	return []check{
		{"round trips", false, roundTrips},
		{"jitter", false, jitter},
		{"rates", false, udpRates},
		{"tcp rates", false, tcpRates},
		{"damage", false, damage},
		{"bursts", true, bursts},
		{"cuts", false, cuts},
		{"changes", false, changes},
		{"shared links", true, shared},
		{"lan", true, lan},
		{"fairness", true, fairness},
		{"fat link", false, fat},
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// roundTrips measures with echoes that the kernels answer and time.
func roundTrips(ctx context.Context, b *bench) error {
	for _, rtt := range pick(b, []float64{2, 100}, []float64{2, 10, 30, 100, 300}) {
		d := time.Duration(rtt / 2 * float64(time.Millisecond))
		got, err := b.echo(ctx, near, plain(d), pick(b, 20, 50))
		if err != nil {
			return err
		}
		b.row("ms", rtt, rtt-withinRTT, rtt+withinRTT, ms(got.median()), "RTT of %g ms, median", rtt)
		b.row("%", 0, 0, 0, 100*got.lost(), "RTT of %g ms, echoes lost", rtt)
	}
	return nil
}

// echo sets a path to far and its way back, and measures it.
func (b *bench) echo(ctx context.Context, from string, p wan.Path, count int) (pings, error) {
	if err := b.path(ctx, from, p); err != nil {
		return pings{}, err
	}
	c, err := b.net.Config(ctx)
	if err != nil {
		return pings{}, err
	}
	// The first finds neighbours' addresses.
	to := address(&c, far+"-0")
	if _, err := ping(ctx, b.net, from+"-0", to, 2, 5*time.Millisecond, 4*p.Delay+500*time.Millisecond); err != nil {
		return pings{}, err
	}
	return ping(ctx, b.net, from+"-0", to, count, 20*time.Millisecond, 4*p.Delay+500*time.Millisecond)
}

func jitter(ctx context.Context, b *bench) error {
	p := plain(30 * time.Millisecond)
	p.Jitter = 10 * time.Millisecond
	got, err := b.echo(ctx, near, p, pick(b, 60, 200))
	if err != nil || len(got.rtts) == 0 {
		return err
	}
	least, most := got.rtts[0], got.rtts[0]
	for _, r := range got.rtts {
		least, most = min(least, r), max(most, r)
	}
	// One way wanders from 20 to 40 ms, the other stays at 30.
	b.row("ms", 50, 50-withinRTT, 55, ms(least), "RTT of 60 ms +- 10, least")
	b.row("ms", 70, 65, 70+3*withinRTT, ms(most), "RTT of 60 ms +- 10, most")
	return nil
}

// train sends datagrams from a site's first host to far's.
func (b *bench) train(ctx context.Context, from string, p wan.Path, count, bytes int) (train, error) {
	if _, err := b.echo(ctx, from, plain(time.Millisecond), 1); err != nil { // so that the neighbours know each other
		return train{}, err
	}
	if err := b.path(ctx, from, p); err != nil {
		return train{}, err
	}
	c, err := b.net.Config(ctx)
	if err != nil {
		return train{}, err
	}
	return send(ctx, b.net, from+"-0", far+"-0", address(&c, far+"-0"), count, bytes, 400*time.Millisecond+2*p.Delay)
}

func udpRates(ctx context.Context, b *bench) error {
	seconds := pick(b, 0.8, 4.0)
	for _, r := range rates() {
		p := plain(10 * time.Millisecond)
		p.Rate = r
		t, err := b.train(ctx, sender(r), p, int(float64(r)*seconds/8/full), full)
		if err != nil {
			return err
		}
		b.rate(r, t.rate(), "UDP over %v", r)
	}
	return nil
}

func (b *bench) rate(wanted wan.Rate, got float64, format string, args ...any) {
	w := float64(wanted) / 1e6
	b.row("Mbit/s", w, w*(1-withinRate), w*(1+withinRate), got/1e6, format, args...)
}

func tcpRates(ctx context.Context, b *bench) error {
	for _, r := range pick(b, rates()[2:3], rates()) {
		p := plain(10 * time.Millisecond)
		p.Rate = r
		if err := b.path(ctx, near, p); err != nil {
			return err
		}
		got, err := pour(ctx, b.net, []flow{{near + "-0", far + "-0"}}, "cubic", time.Second, pick(b, 1500*time.Millisecond, 5*time.Second))
		if err != nil {
			return err
		}
		b.rate(r, got[0], "TCP over %v", r)
	}
	return nil
}

// share adds a row for a share of so many packets.
func (b *bench) share(wanted float64, count int, got float64, format string, args ...any) {
	within := deviations * math.Sqrt(wanted*(1-wanted)/float64(count))
	b.row("%", 100*wanted, 100*max(0, wanted-within), 100*min(1, wanted+within), 100*got, format, args...)
}

// wide is a path that passes more than the sender of that rate sends, so that
// its queue loses nothing, and parts the packets that a kernel hands over
// together: those due at one time can only leave one after the other, the last
// of them late.
func wide(delay time.Duration) wan.Path {
	p := plain(delay)
	p.Rate = 2 * paced
	return p
}

// damage measures everything that chance does to a packet.
func damage(ctx context.Context, b *bench) error {
	count := pick(b, 5000, 20000)
	from := sender(paced)
	for _, d := range []struct {
		name string
		long bool
		want float64
		set  func(*wan.Path, float64)
		got  func(train) float64
	}{
		{"lost", true, 0, func(*wan.Path, float64) {}, train.lost},
		{"lost", true, 0.001, func(p *wan.Path, v float64) { p.Loss = v }, train.lost},
		{"lost", false, 0.2, func(p *wan.Path, v float64) { p.Loss = v }, train.lost},
		{"doubled", false, 0.05, func(p *wan.Path, v float64) { p.Duplicate = v }, func(t train) float64 { return float64(t.doubled) / float64(t.sent) }},
		{"overtaken", false, 0.05, func(p *wan.Path, v float64) { p.Reorder = v }, func(t train) float64 { return float64(t.overtaken) / float64(t.sent) }},
		{"corrupted, so that checksums drop them", false, 0.1, func(p *wan.Path, v float64) { p.Corrupt = v }, train.lost},
		{"garbled, which no checksum tells", true, 0.1, func(p *wan.Path, v float64) { p.Garble = v }, func(t train) float64 { return float64(t.altered) / float64(t.sent) }},
	} {
		if d.long && b.Quick {
			continue
		}
		p := wide(10 * time.Millisecond)
		d.set(&p, d.want)
		t, err := b.train(ctx, from, p, count, small)
		if err != nil {
			return err
		}
		b.share(d.want, count, d.got(t), "%g %% %s", 100*d.want, d.name)
		if d.want == 0 && t.overtaken+t.doubled+t.altered > 0 {
			b.row("packets", 0, 0, 0, float64(t.overtaken+t.doubled+t.altered), "a clean path, damaged")
		}
	}
	return nil
}

// bursts measures losses that come in runs. Their number, not that of packets,
// says how sure the share is.
func bursts(ctx context.Context, b *bench) error {
	const share, length, count = 0.05, 5, 20000
	p := wide(5 * time.Millisecond)
	p.Loss, p.Burst = share, length
	t, err := b.train(ctx, sender(paced), p, count, small)
	if err != nil {
		return err
	}
	runs := float64(count) * share / length
	within := deviations * math.Sqrt(2/runs)
	b.row("%", 100*share, 100*share*(1-within), 100*share*(1+within), 100*t.lost(), "%g %% lost, %d in a row", 100*share, length)
	mean := t.lost() * count / float64(max(1, t.runs))
	within = deviations / math.Sqrt(runs)
	b.row("packets", length, length*(1-within), length*(1+within), mean, "%g %% lost, %d in a row: the mean run", 100*share, length)
	return nil
}

// cuts checks that what is cut one way is cut only that way, that a site that
// is off reaches nobody, and that a schedule keeps its times.
func cuts(ctx context.Context, b *bench) error {
	const count = 50
	if err := b.path(ctx, near, plain(2*time.Millisecond)); err != nil {
		return err
	}
	c, err := b.net.Config(ctx)
	if err != nil {
		return err
	}
	oneWay := func(from, to string) (float64, error) {
		t, err := send(ctx, b.net, from+"-0", to+"-0", address(&c, to+"-0"), count, small, 200*time.Millisecond)
		return float64(t.arrived), err
	}
	if err := b.net.Cut(ctx, near, far, true, true); err != nil {
		return err
	}
	there, err := oneWay(near, far)
	if err != nil {
		return err
	}
	back, err := oneWay(far, near)
	if err != nil {
		return err
	}
	b.row("packets", 0, 0, 0, there, "cut one way: of %d that way", count)
	b.row("packets", count, count, count, back, "cut one way: of %d the other way", count)
	if err := b.net.Cut(ctx, near, far, true, false); err != nil {
		return err
	}
	if err := b.net.Off(ctx, far, true); err != nil {
		return err
	}
	if back, err = oneWay(far, near); err != nil {
		return err
	}
	b.row("packets", 0, 0, 0, back, "site off: of %d from it", count)
	if err := b.net.Off(ctx, far, false); err != nil {
		return err
	}
	return b.blackouts(ctx, address(&c, far+"-0"))
}

// blackouts measures the share of time that a schedule leaves.
func (b *bench) blackouts(ctx context.Context, to netip.Addr) error {
	const every, length = 500 * time.Millisecond, 200 * time.Millisecond
	if err := b.net.Blackout(ctx, far, every, length); err != nil {
		return err
	}
	got, err := ping(ctx, b.net, near+"-0", to, pick(b, 200, 1000), 5*time.Millisecond, 200*time.Millisecond)
	if err != nil {
		return err
	}
	wanted := 100 * float64(length) / float64(every)
	b.row("%", wanted, wanted-4, wanted+4, 100*got.lost(), "a site off for %v of every %v: echoes lost", length, every)
	return b.net.Blackout(ctx, far, every, 0)
}

// changes alters a path under traffic.
func changes(ctx context.Context, b *bench) error {
	for _, rtt := range []float64{20, 4} {
		got, err := b.echo(ctx, near, plain(time.Duration(rtt/2*float64(time.Millisecond))), 10)
		if err != nil {
			return err
		}
		b.row("ms", rtt, rtt-withinRTT, rtt+withinRTT, ms(got.median()), "RTT changed to %g ms", rtt)
	}
	p := plain(10 * time.Millisecond)
	flows := []flow{{near + "-0", far + "-0"}}
	for _, r := range []wan.Rate{30 * wan.Mbit, 10 * wan.Mbit} {
		p.Rate = r
		// The second time, while the first's last packets still wait.
		if err := b.path(ctx, near, p); err != nil {
			return err
		}
		got, err := pour(ctx, b.net, flows, "cubic", time.Second, pick(b, 1000*time.Millisecond, 4*time.Second))
		if err != nil {
			return err
		}
		b.rate(r, got[0], "TCP, rate changed to %v", r)
	}
	return nil
}

// shared checks links that several paths share.
func shared(ctx context.Context, b *bench) error {
	const up, down = 20 * wan.Mbit, 12 * wan.Mbit
	err := b.net.ChangeSite(ctx, near, func(s *wan.Site) { s.Up = up })
	if err == nil {
		err = b.path(ctx, near, plain(10*time.Millisecond))
	}
	if err != nil {
		return err
	}
	flows := []flow{{near + "-0", far + "-0"}, {near + "-1", sender(200*wan.Mbit) + "-0"}}
	got, err := pour(ctx, b.net, flows, "cubic", 2*time.Second, 5*time.Second)
	if err != nil {
		return err
	}
	b.rate(up, got[0]+got[1], "uplink of %v, two flows to two sites", up)
	err = b.net.Change(ctx, func(c *wan.Config) error {
		c.Site(near).Up, c.Site(far).Down = wan.Unlimited, down
		return nil
	})
	if err != nil {
		return err
	}
	flows = []flow{{near + "-0", far + "-0"}, {sender(200*wan.Mbit) + "-0", far + "-1"}}
	if got, err = pour(ctx, b.net, flows, "cubic", 2*time.Second, 5*time.Second); err != nil {
		return err
	}
	b.rate(down, got[0]+got[1], "downlink of %v, two flows from two sites", down)
	return b.net.ChangeSite(ctx, far, func(s *wan.Site) { s.Down = wan.Unlimited })
}

// lan checks the links inside a site, which the kernel limits.
func lan(ctx context.Context, b *bench) error {
	site := sender(100 * wan.Mbit)
	r := wan.Rate(100 * faster * float64(wan.Mbit))
	got, err := pour(ctx, b.net, []flow{{site + "-0", site + "-1"}}, "cubic", time.Second, 3*time.Second)
	if err != nil {
		return err
	}
	w := float64(r) / 1e6
	// tbf counts the 14 bytes of Ethernet headers too.
	b.row("Mbit/s", w, 0.95*w, 1.02*w, got[0]/1e6, "TCP within a LAN of %v", r)
	return nil
}

// fairness checks that flows that share a path share it.
func fairness(ctx context.Context, b *bench) error {
	for _, control := range []string{"cubic", "bbr"} {
		p := plain(10 * time.Millisecond)
		p.Rate = 20 * wan.Mbit
		if err := b.path(ctx, near, p); err != nil {
			return err
		}
		var flows []flow
		for i := range 4 {
			flows = append(flows, flow{fmt.Sprintf("%s-%d", near, i), fmt.Sprintf("%s-%d", far, i)})
		}
		got, err := pour(ctx, b.net, flows, control, 4*time.Second, 16*time.Second)
		if err != nil {
			return err
		}
		b.row("Jain", 1, 0.8, 1, jain(got), "4 %s flows share %v", control, p.Rate)
		var sum float64
		for _, v := range got {
			sum += v
		}
		b.rate(p.Rate, sum, "4 %s flows together", control)
	}
	return nil
}

// fat checks that one connection with the system's own congestion control fills
// a long fat path, and that the path's queue loses none of it.
func fat(ctx context.Context, b *bench) error {
	const rate = 200 * wan.Mbit
	p := plain(75 * time.Millisecond)
	p.Rate = rate
	if err := b.path(ctx, near, p); err != nil {
		return err
	}
	before, err := b.net.Stats(ctx)
	if err != nil {
		return err
	}
	got, err := pour(ctx, b.net, []flow{{near + "-0", far + "-0"}}, "", 3*time.Second, pick(b, 1500*time.Millisecond, 10*time.Second))
	if err != nil {
		return err
	}
	after, err := b.net.Stats(ctx)
	if err != nil {
		return err
	}
	w := float64(rate) / 1e6
	b.row("Mbit/s", w, 0.9*w, 1.02*w, got[0]/1e6, "one TCP flow over %v, RTT 150 ms", rate)
	c := after.Since(before).Pairs[wan.Pair{From: near, To: far}]
	b.row("packets", 0, 0, 0, float64(c.Queue), "dropped by its queue, of %d", c.Packets)
	return nil
}

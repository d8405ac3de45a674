package boottime

import (
	"testing"
	"time"
)

// machine is what the clocks of a machine show.
type machine struct {
	mono, wall, boot time.Duration
	asked            int           // times that boot was read
	slow             time.Duration // how long a reading of boot takes
}

func (m *machine) pass(d time.Duration) { m.mono, m.wall, m.boot = m.mono+d, m.wall+d, m.boot+d }

func (m *machine) clock() Func {
	return sparing(func() (time.Duration, time.Duration) { return m.mono, m.wall }, func() time.Duration {
		m.asked++
		now := m.boot
		m.pass(m.slow)
		return now
	})
}

func TestSparing_AsksTheSlowClockAfterJumpsOnly(t *testing.T) {
	m := &machine{wall: time.Hour, boot: time.Minute}
	clock := m.clock()
	for _, step := range []struct {
		what  string
		do    func()
		asked int
	}{
		{"time passes", func() { m.pass(300 * time.Millisecond) }, 0},
		{"nothing passes", func() {}, 0},
		{"suspended for an hour", func() { m.wall, m.boot = m.wall+time.Hour, m.boot+time.Hour }, 1},
		{"time passes again", func() { m.pass(time.Hour) }, 0},
		{"suspended for two milliseconds", func() { m.wall, m.boot = m.wall+2*time.Millisecond, m.boot+2*time.Millisecond }, 1},
		{"the wall clock set back", func() { m.wall -= 2 * time.Hour }, 1},
		{"suspended while the wall clock was set back", func() { m.wall, m.boot = m.wall-time.Minute, m.boot+time.Hour }, 1},
		{"the wall clock set forward", func() { m.wall += time.Hour }, 1},
		{"the wall clock set back while readings are slow", func() { m.slow, m.wall = 30*time.Millisecond, m.wall-time.Hour }, readTries},
		{"time passes at last", func() { m.pass(time.Millisecond) }, 0},
	} {
		step.do()
		m.asked = 0
		if got := clock(); got != m.boot || m.asked != step.asked {
			t.Errorf("%s: got %v after asking %d times, want %v after %d", step.what, got, m.asked, m.boot, step.asked)
		}
	}
}

func TestSparing_NeverRunsBackOnSlowReadings(t *testing.T) {
	m := &machine{wall: time.Hour, boot: time.Minute}
	clock := m.clock()
	last := clock()
	for i := range 20 {
		m.slow = time.Duration(i%7) * 5 * time.Millisecond
		m.wall += time.Minute // it is asked each time
		if i%5 == 0 {
			m.wall, m.boot = m.wall+time.Second, m.boot+time.Second // a suspension
		}
		v := clock()
		if v < last {
			t.Fatalf("reading %d: got %v after %v", i, v, last)
		}
		if v > m.boot || v < m.boot-m.slow {
			t.Fatalf("reading %d: got %v, the slow clock shows %v and takes %v to read", i, v, m.boot, m.slow)
		}
		last = v
	}
	if m.asked > 20*readTries {
		t.Errorf("asked %d times", m.asked)
	}
}

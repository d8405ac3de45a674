package calibration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/testbed/wan"
	"cartwheel.dev/testbed/wan/emulator"
)

// role makes the test's own binary the emulator.
const role = "CARTWHEEL_WAN_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "emulator" {
		if err := emulator.Run(context.Background(), os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func options(t *testing.T) Options {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("this machine has no TUN device")
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		t.Skip("this machine has no nsenter")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Prefix: "cwcal", Seed: 1, Emulator: wan.Options{Emulator: []string{self}, Env: []string{role + "=emulator"}, Stderr: os.Stderr}}
}

// runs is how often a busy machine may make a calibration void.
const runs = 2

func TestRun_EmulatorDoesWhatItIsAsked(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes an emulator late; the test without it counts")
	}
	o := options(t)
	o.Quick = os.Getenv("CARTWHEEL_LONG") == ""
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for range runs {
		start := time.Now()
		r, err := Run(ctx, o)
		var table bytes.Buffer
		if werr := r.Write(&table); werr != nil {
			t.Error(werr)
		}
		t.Logf("%v\n%s", time.Since(start), table.String())
		if err != nil {
			t.Fatal(err)
		}
		if r.OK() {
			return
		}
		if r.Void == "" {
			t.Fatal("not as wanted")
		}
	}
	t.Skipf("this machine is too busy to tell: %d of %d calibrations were void", runs, runs)
}

func TestTrain_RateIsThatOfMostOfIt(t *testing.T) {
	var tr train
	tr.bytes = 1250 // 10 Mbit/s at one a millisecond
	for i := range int64(1000) {
		at := i * 1e6
		if i > 500 {
			at += 300e6 // the sender was away
		}
		tr.stamps = append(tr.stamps, at)
	}
	if got := tr.rate(); got < 9.99e6 || got > 10.01e6 {
		t.Errorf("got %v, want 10 Mbit/s", got)
	}
	if (train{}).rate() != 0 {
		t.Error("nothing has a rate")
	}
}

// TestReport_ShowsWhatIsNotAsWanted makes checks that are one packet or share
// off. The table must say so.
func TestReport_ShowsWhatIsNotAsWanted(t *testing.T) {
	var shown []Row
	b := &bench{report: &Report{}, Options: Options{Progress: func(r Row) { shown = append(shown, r) }}}
	right := check{"right", false, func(_ context.Context, b *bench) error {
		b.rate(20*wan.Mbit, 19.61e6, "near enough")
		return nil
	}}
	wrong := check{"wrong", false, func(_ context.Context, b *bench) error {
		b.rate(20*wan.Mbit, 19.5e6, "too slow")
		b.share(0.1, 10000, 0.111, "too many lost")
		b.row("ms", 2, 1, 3, 3.1, "too late")
		return nil
	}}
	if err := b.measure(t.Context(), right, punctual()); err != nil || !b.report.OK() {
		t.Errorf("2 %% are allowed: %v, %+v", err, b.report.Rows)
	}
	if err := b.measure(t.Context(), wrong, punctual()); err != nil || len(shown) != 4 || shown[1].OK || shown[2].OK || shown[3].OK || b.report.OK() {
		t.Errorf("got %v, %+v", err, shown)
	}
	var table bytes.Buffer
	if err := b.report.Write(&table); err != nil || strings.Count(table.String(), "WRONG") != 3 {
		t.Errorf("%v\n%s", err, table.String())
	}
	if r := (&Report{Rows: shown[:1], Void: "late"}); r.OK() {
		t.Error("a void report is not right")
	}
	if (&Report{}).OK() {
		t.Error("a report of nothing is not right")
	}
}

// punctual are the statistics of an emulator that is late, by much more than
// is allowed, while the tries of these numbers are measured, counted from 1.
func punctual(late ...int) func(context.Context) (*wan.Stats, error) {
	var s wan.Stats
	asked := 0
	return func(context.Context) (*wan.Stats, error) {
		if asked++; asked%2 == 0 { // each try asks before and after
			by := time.Microsecond
			if slices.Contains(late, asked/2) {
				by = 50 * time.Millisecond
			}
			for range 100 {
				s.Late.Add(by)
			}
		}
		out := s
		return &out, nil
	}
}

func TestMeasure_RepeatsAfterALateEmulator(t *testing.T) {
	for _, tc := range []struct {
		late []int // tries
		made int
		void bool
	}{{nil, 1, false}, {[]int{1}, 2, false}, {[]int{1, 2}, 3, false}, {[]int{1, 2, 3}, 3, true}, {[]int{2}, 1, false}} {
		b := &bench{report: &Report{}}
		made := 0
		err := b.measure(t.Context(), check{"rates", false, func(_ context.Context, b *bench) error {
			made++
			b.row("", 0, 0, 1, 1, "right")
			return nil
		}}, punctual(tc.late...))
		rows := b.report.Rows
		if err != nil || made != tc.made || (b.report.Void != "") != tc.void || len(rows) != 1 || rows[0].Tries != tc.made {
			t.Errorf("late at %v: got %v, %d tries, %+v", tc.late, err, made, b.report)
		}
		if again := strings.Contains(rows[0].Verdict(), "late"); again != (tc.made > 1) {
			t.Errorf("late at %v: the row says %q", tc.late, rows[0].Verdict())
		}
	}
}

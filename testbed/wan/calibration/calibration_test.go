package calibration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
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

func TestTheEmulatorDoesWhatItIsAskedTo(t *testing.T) {
	o := options(t)
	o.Quick = os.Getenv("CARTWHEEL_LONG") == ""
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	start := time.Now()
	r, err := Run(ctx, o)
	var table bytes.Buffer
	if werr := r.Write(&table); werr != nil {
		t.Error(werr)
	}
	t.Logf("%v\n%s", time.Since(start), table.String())
	if err != nil || !r.OK() {
		t.Errorf("not as wanted: %v", err)
	}
}

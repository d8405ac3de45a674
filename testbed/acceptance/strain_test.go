package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// TestStrain_RunsInSmall runs the strains in small sizes, to see that they work.
// Their figures need a machine of their own.
func TestStrain_RunsInSmall(t *testing.T) {
	if os.Getenv("CARTWHEEL_PROCESSES") == "" {
		t.Skip("set CARTWHEEL_PROCESSES=1 to run real processes")
	}
	if os.Geteuid() != 0 {
		t.Skip("mounts and network namespaces need root")
	}
	for name, c := range map[string]struct {
		words  []string
		figure string
		least  float64
	}{
		"overload": {[]string{"--clients", "3", "--ramp", "300ms", "--for", "2s"}, "done under overload", 1},
		"idle":     {[]string{"--files", "700", "--settle", "1ms", "--for", "100ms"}, "files that were looked at", 700},
		"copy":     {[]string{"--size", "67108864", "--files", "50", "--rate", "400 Mbps"}, "small files written meanwhile", 1},
	} {
		t.Run(name, func(t *testing.T) {
			words := append([]string{"strain", name, "--json", "--in", t.TempDir()}, c.words...)
			ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
			defer cancel()
			var said bytes.Buffer
			cmd := exec.CommandContext(ctx, binary(t, "cartwheel-testbed"), words...)
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, said.String())
			}
			var figures []struct {
				Name  string  `json:"name"`
				Value float64 `json:"value"`
			}
			if err := json.Unmarshal(out, &figures); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, f := range figures {
				if f.Name == c.figure {
					if f.Value < c.least {
						t.Errorf("%s: %g, want at least %g", f.Name, f.Value, c.least)
					}
					return
				}
			}
			t.Errorf("there is no %q in %v", c.figure, figures)
		})
	}
}

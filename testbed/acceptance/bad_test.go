package acceptance

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// refusalLimit is how long a program may take to say no.
const refusalLimit = 30 * time.Second

// refused runs a program that must end by itself, with that exit code, and name
// the thing and the remedy.
func refused(t *testing.T, code int, says []string, name string, args ...string) {
	t.Helper()
	out, err := within(refusalLimit, name, args...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	if got != code {
		t.Errorf("%s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, tail([]byte(out), 1000))
	}
	for _, want := range says {
		if !strings.Contains(out, want) {
			t.Errorf("%s: does not say %q: %s", strings.Join(args, " "), want, tail([]byte(out), 1000))
		}
	}
}

// commandLine is how a process was started, less its program.
func commandLine(t *testing.T, pid int) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(string(data), "\x00"), "\x00")[1:]
}

// with returns the words with another value behind a flag.
func with(words []string, flag, value string) []string {
	out := append([]string(nil), words...)
	for i := range out {
		if out[i] == flag {
			out[i+1] = value
		}
	}
	return out
}

func TestCartwheeld_NamesABadDataDirectory(t *testing.T) {
	d := startDemo(t, "--no-mounts")
	node := binary(t, "cartwheeld")
	words := commandLine(t, d.site("tokyo").NodePID)
	dir := flagValue(t, words, "--data")
	free := with(with(words, "--listen", "/ip4/127.0.0.1/tcp/0"), "--api", "127.0.0.1:0")

	refused(t, 8, []string{dir}, node, free...)
	geo := commandLine(t, d.GeoConfig.PID)
	refused(t, 8, []string{flagValue(t, geo, "--data")}, node, with(geo, "--listen", "/ip4/127.0.0.1/tcp/0")...)

	d.fail("tokyo")
	marker := filepath.Join(dir, "cartwheel.json")
	for _, c := range []struct {
		what     string
		code     int
		key, new string
	}{
		{"a newer version", 10, `("format": ?)\d+`, `${1}99`},
		{"another cluster", 6, `("cluster": ?")[^"]*`, `${1}another`},
	} {
		t.Run(c.what, func(t *testing.T) {
			text, err := os.ReadFile(marker)
			if err != nil {
				t.Fatal(err)
			}
			changed := regexp.MustCompile(c.key).ReplaceAll(text, []byte(c.new))
			if string(changed) == string(text) {
				t.Fatalf("%s has no %s: %s", marker, c.key, text)
			}
			if err := os.WriteFile(marker, changed, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, c.code, []string{dir}, node, words...)
			if err := os.WriteFile(marker, text, 0o600); err != nil {
				t.Fatal(err)
			}
		})
	}
	refused(t, 2, []string{"site"}, node, with(words, "--site", "no site")...)
	d.heal("tokyo") // nothing was lost
	d.awaitWhole(time.Minute)
}

func flagValue(t *testing.T, words []string, flag string) string {
	t.Helper()
	for i, w := range words {
		if w == flag {
			return words[i+1]
		}
	}
	t.Fatalf("no %s in %q", flag, words)
	return ""
}

// contactWith writes the demo's contact file with another value, and returns
// its name.
func (d *demo) contactWith(name, key string, value any) string {
	d.t.Helper()
	data, err := os.ReadFile(d.Contact)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err == nil {
		fields[key] = value
		data, err = json.Marshal(fields)
	}
	file := filepath.Join(d.t.TempDir(), name)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return file
}

func TestCartwheel_NamesBadMountsPathsAndAddresses(t *testing.T) {
	d := startDemo(t)
	cartwheel := binary(t, "cartwheel")
	tokyo := d.mount("tokyo")
	elsewhere := t.TempDir()

	refused(t, 8, []string{tokyo, "umount"}, cartwheel, "mount", d.Contact, tokyo)
	refused(t, 3, []string{filepath.Join(elsewhere, "none"), "make it first"}, cartwheel, "mount", d.Contact, filepath.Join(elsewhere, "none"))
	refused(t, 2, []string{"atlantis"}, cartwheel, "mount", d.Contact, elsewhere, "--site", "atlantis")
	refused(t, 8, []string{d.dir, "--dir"}, cartwheel, "demo", "--dir", d.dir)
	refused(t, 3, []string{"atlantis", "tokyo"}, cartwheel, "demo", "fail", "atlantis", "--dir", d.dir)
	refused(t, 3, []string{"4711"}, cartwheel, "slice", "hand-over", "4711", "--contact", d.Contact)
	refused(t, 3, []string{elsewhere}, cartwheel, "where", elsewhere)

	point := t.TempDir()
	away := d.contactWith("away.json", "nodes", []string{"/ip4/127.0.0.1/tcp/1/p2p/12D3KooWNEEAS8nxRQA7Y2kJGdNHMijoEvu8joeJiH5ue3ZVb3rm"})
	refused(t, 5, []string{away, "do the nodes run"}, cartwheel, "status", "--contact", away)
	refused(t, 5, []string{away}, cartwheel, "mount", away, point, "--daemon-timeout", "3s")
	another := d.contactWith("another.json", "cluster", "another")
	refused(t, 6, []string{another, "belongs to cluster"}, cartwheel, "status", "--contact", another)
	stranger := d.contactWith("stranger.json", "user_key", "stranger.key")
	refused(t, 3, []string{"stranger.key"}, cartwheel, "status", "--contact", stranger)
	if out, err := exec.Command(cartwheel, "key", filepath.Join(filepath.Dir(stranger), "stranger.key")).CombinedOutput(); err != nil {
		t.Fatalf("making a key: %v: %s", err, out)
	}
	refused(t, 7, []string{stranger}, cartwheel, "status", "--contact", stranger)

	for name, want := range map[string]syscall.Errno{
		strings.Repeat("n", 256): syscall.ENAMETOOLONG,
		".Site=atlantis/x":       syscall.EINVAL,
		".SyncLevel=none/x":      syscall.EINVAL,
	} {
		if err := os.WriteFile(filepath.Join(tokyo, name), nil, 0o644); !errors.Is(err, want) {
			t.Errorf("%.40s: got %v, want %v", name, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(tokyo, strings.Repeat("n", 255)), nil, 0o644); err != nil {
		t.Errorf("a name of 255 bytes: %v", err)
	}
}

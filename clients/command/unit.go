package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// fstabWords are the options of this mount as -o takes them.
func (c *mountCmd) fstabWords() string {
	words := []string{"_netdev", "nofail", "x-systemd.automount"}
	for _, o := range []struct{ name, value string }{
		{"site", c.Site}, {"user_key", c.UserKey}, {"cache_dir", c.CacheDir}, {"pid_file", c.PIDFile}, {"log_file", c.LogFile},
	} {
		if o.value == "" {
			continue
		}
		if strings.Contains(o.value, ",") {
			o.value = `"` + o.value + `"`
		}
		words = append(words, o.name+"="+o.value)
	}
	for _, o := range []struct {
		name string
		on   bool
	}{{"ro", c.ReadOnly}, {"noexec", c.NoExec}, {"suid", c.Suid}, {"dev", c.Dev}, {"allow_other", c.AllowOther}} {
		if o.on {
			words = append(words, o.name)
		}
	}
	if c.CacheDir != "" {
		words = append(words, "cache_size="+strconv.FormatInt(c.CacheSize, 10))
	}
	return strings.Join(append(words, "op_timeout="+c.OpTimeout.String()), ",")
}

// what is the cluster as a mount started from elsewhere has to name it.
func (c *mountCmd) what() (string, error) {
	if strings.HasPrefix(c.Cluster, "/") {
		return c.Cluster, nil
	}
	return filepath.Abs(c.Cluster)
}

// updateFstab writes the mount's line, in place of an older one for the same
// mount point, and the link by which mount(8) finds this program.
func (c *mountCmd) updateFstab(e *env) error {
	const op fault.Op = "command.updateFstab"
	if runtime.GOOS != "linux" {
		return fault.E(fault.NotSupported, op, "--update-fstab", "is for Linux; --print-unit prints what this system uses")
	}
	what, err := c.what()
	if err != nil {
		return fault.Wrap(fault.Invalid, op, c.Cluster, err)
	}
	text, err := os.ReadFile(c.FstabFile)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fault.FromOS(op, c.FstabFile, err)
	}
	line := fmt.Sprintf("%s %s cartwheel %s 0 0\n", field(what), field(c.Mountpoint), field(c.fstabWords()))
	var out strings.Builder
	for l := range strings.Lines(string(text)) {
		if f := strings.Fields(l); len(f) > 2 && f[1] == field(c.Mountpoint) && f[2] == "cartwheel" {
			continue
		}
		out.WriteString(strings.TrimRight(l, "\n") + "\n")
	}
	out.WriteString(line)
	if err := replaceFile(c.FstabFile, out.String()); err != nil {
		return fault.FromOS(op, c.FstabFile, err)
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, c.Helper)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fault.FromOS(op, c.Helper, err)
	}
	fmt.Fprintf(e.stdio.Err, "%s: %s", c.FstabFile, line)
	return nil
}

// field writes a text as one column of fstab.
func field(text string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`, "#", `\043`).Replace(text)
}

// replaceFile writes a file in one step, with the mode that it had.
func replaceFile(name, text string) error {
	mode := os.FileMode(0o644)
	if st, err := os.Stat(name); err == nil {
		mode = st.Mode().Perm()
	}
	tmp := name + ".cartwheel"
	if err := os.WriteFile(tmp, []byte(text), mode); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

func (c *mountCmd) printUnit(e *env) error {
	self, err := os.Executable()
	if err != nil {
		return fault.Wrap(fault.IO, "command.mount", "", err)
	}
	what, err := c.what()
	if err != nil {
		return fault.Wrap(fault.Invalid, "command.mount", c.Cluster, err)
	}
	if runtime.GOOS == "darwin" {
		fmt.Fprintf(e.stdio.Out, launchdJob, self, what, c.Mountpoint, c.fstabWords())
		return nil
	}
	name := unitName(c.Mountpoint)
	fmt.Fprintf(e.stdio.Out, systemdUnits, name, c.Mountpoint, what, c.Mountpoint, c.fstabWords(), name, c.Mountpoint, c.Mountpoint, self, name)
	return nil
}

// unitName names a mount unit as systemd-escape --path does.
func unitName(point string) string {
	var b strings.Builder
	for i, ch := range []byte(strings.Trim(point, "/")) {
		switch {
		case ch == '/':
			b.WriteByte('-')
		case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z' || ch >= '0' && ch <= '9' || ch == '_' || ch == ':' || ch == '.' && i > 0:
			b.WriteByte(ch)
		default:
			fmt.Fprintf(&b, `\x%02x`, ch)
		}
	}
	return b.String()
}

const systemdUnits = `# /etc/systemd/system/%s.mount
[Unit]
Description=Cartwheel at %s
After=network-online.target
Wants=network-online.target

[Mount]
What=%s
Where=%s
Type=cartwheel
Options=%s

# /etc/systemd/system/%s.automount
[Unit]
Description=Cartwheel at %s, when it is used

[Automount]
Where=%s

[Install]
WantedBy=multi-user.target

# Once: ln -s %s /sbin/mount.cartwheel && systemctl enable --now '%s.automount'
`

const launchdJob = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>dev.cartwheel.mount</string>
  <key>ProgramArguments</key><array>
    <string>%s</string><string>mount</string><string>%s</string><string>%s</string><string>-o</string><string>%s</string>
  </array>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
</dict></plist>
`

package acceptance

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// addresses are those of the machines that the pages speak of.
var addresses = map[string]string{"tokyo": "192.0.2.11", "boston": "192.0.2.12", "paris": "192.0.2.13", "laptop": "192.0.2.50"}

// machines stand for the machines of a page: each has a network of its own, with
// the page's address, and a directory in place of the root of its tree of files.
type machines struct {
	t      *testing.T
	parent string // a directory for each, by its name
	lan    *lan   // nil until the page speaks of a machine
}

// argv is a shell that runs a command on a machine; the reader's own is this one.
func (m *machines) argv(host, command string) []string {
	m.t.Helper()
	shell := []string{"bash", "-euo", "pipefail", "-c", command}
	if host == "" {
		return shell
	}
	if m.lan == nil {
		m.lan = startLAN(m.t, addresses)
	}
	return m.lan.command(host, shell...)
}

// dir is a machine's directory; the reader's own is the checkout.
func (m *machines) dir(host string) string {
	m.t.Helper()
	if host == "" {
		return filepath.Dir(m.parent)
	}
	if addresses[host] == "" {
		m.t.Fatalf("the page speaks of a machine %s, which has no address", host)
	}
	dir := filepath.Join(m.parent, host)
	if _, err := os.Stat(dir); err == nil {
		return dir // what it has may be a mount that does not answer
	}
	for _, sub := range []string{"etc", "mnt", "var/lib", "var/cache"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			m.t.Fatal(err)
		}
	}
	return dir
}

// text is a page's text as it is on a machine.
func (m *machines) text(host, text string) string {
	if host == "" {
		return text
	}
	return regexp.MustCompile(`(^|[\s"'=])/(etc|var|mnt)\b`).ReplaceAllString(text, "${1}"+m.dir(host)+"/$2")
}

// shown compares what commands print with what a page shows, and remembers the
// names that the page shortens.
type shown struct{ known map[string]string } // a name in the page -> the real one

var (
	// name is what differs from run to run, and what a reader copies: the
	// identity of a process or a key, a token, or a cluster's number.
	name = regexp.MustCompile(`(?:12D3KooW|cartwheel-join-)[\w-]*(?:\.\.\.)?|\b[0-9a-f]{16}\b`)
	// loose is what differs and is not copied: numbers, the ends of
	// identities, which of the sites it is, and whatever dots stand for.
	loose = regexp.MustCompile(`…\w{8}|\d+|\b(?:tokyo|boston|paris)\b|\.\.\.|\s+`)
)

// filled is a text with the real names in place of the page's.
func (s *shown) filled(text string) string {
	return name.ReplaceAllStringFunc(text, func(n string) string {
		if real, ok := s.known[n]; ok {
			return real
		}
		return n
	})
}

// compare fails the test for a line of the page that no line of the output is.
func (s *shown) compare(t *testing.T, where string, want []string, out string) {
	t.Helper()
	for _, line := range want {
		found := false
		for got := range strings.Lines(out) {
			found = found || s.matches(line, strings.TrimRight(got, "\n"))
		}
		if !found {
			t.Errorf("%s: the page shows\n\t%s\nand the command printed\n%s", where, line, out)
		}
	}
}

// matches reports whether a line of the page is one of the output, and then
// learns the names in it.
func (s *shown) matches(line, got string) bool {
	var pattern strings.Builder
	var names []string
	rest := line
	for rest != "" {
		at := name.FindStringIndex(rest)
		if at == nil {
			at = []int{len(rest), len(rest)}
		}
		pattern.WriteString(loosened(rest[:at[0]]))
		if n := rest[at[0]:at[1]]; n != "" {
			names = append(names, n)
			pattern.WriteString(`([\w-]+)`)
		}
		rest = rest[at[1]:]
	}
	m := regexp.MustCompile("^" + pattern.String() + "$").FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, n := range names {
		if real, ok := s.known[n]; ok && real != m[i+1] {
			return false
		}
	}
	for i, n := range names {
		s.known[n] = m[i+1]
	}
	return true
}

// loosened is a pattern for a text of the page.
func loosened(text string) string {
	var out strings.Builder
	for text != "" {
		at := loose.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		out.WriteString(regexp.QuoteMeta(text[:at[0]]))
		switch w := text[at[0]:at[1]]; {
		case w == "":
		case w == "...":
			out.WriteString(".*")
		case strings.TrimSpace(w) == "":
			out.WriteString(`\s+`)
		case strings.HasPrefix(w, "…"):
			out.WriteString(`…\w{8}`)
		case w[0] >= '0' && w[0] <= '9':
			out.WriteString(`\d+`)
		default:
			out.WriteString(`(?:tokyo|boston|paris)`)
		}
		text = text[at[1]:]
	}
	return out.String()
}

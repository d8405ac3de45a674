package winfsp

import (
	"testing"
	"unicode/utf8"
)

func TestNames_ReadBackAsTheyWere(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{
		"plain", "README", "readme", "CON", "con.txt", "CONSOLE", "COM1", "COM10", "nul", "aux .c", "a.", "a ", "a..", ".", "..",
		"...", "\xff\xfe", "caf\xe9", "\uf043ON", "a\uf02e", "\uf7ff", "日本語", "é", "e\u0301", " lead", ".hidden",
	} {
		shown := toWindows(name)
		if back := fromWindows(shown); back != name {
			t.Errorf("%q is shown as %q, which comes back as %q", name, shown, back)
		}
		if other, there := seen[shown]; there {
			t.Errorf("%q and %q are both shown as %q", name, other, shown)
		}
		seen[shown] = name
		if !utf8.ValidString(shown) {
			t.Errorf("%q is shown as %q, which is not UTF-8", name, shown)
		}
		if name != "." && name != ".." && (isDevice(shown) || shown[len(shown)-1] == '.' || shown[len(shown)-1] == ' ') {
			t.Errorf("%q is shown as %q, which Windows cannot say", name, shown)
		}
	}
	if got := toWindows("plain.txt"); got != "plain.txt" {
		t.Errorf("a plain name is shown as %q", got)
	}
}

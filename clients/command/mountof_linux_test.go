package command

import "testing"

func TestMountOf_SplitsAtTheMount(t *testing.T) {
	for path, want := range map[string][2]string{
		"/proc": {"/proc", "/"}, "/proc/sys": {"/proc", "/sys"}, "/proc/none/below": {"/proc", "/none/below"},
	} {
		if point, rest := mountOf(path); point != want[0] || rest != want[1] {
			t.Errorf("%s is %q of %q, want %q of %q", path, rest, point, want[1], want[0])
		}
	}
}

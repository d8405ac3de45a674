// Package winfsp binds mount.FileSystem to WinFsp on Windows through cgofuse,
// without cgo there: it turns calls by path into calls by node, in Windows's
// ways with names (case, characters, reserved words). It caches nothing; each
// path is looked up in the file system, which caches by leases. With the build
// tag cgofuse it compiles on Linux too, against libfuse, for its tests. Calls
// may come at once from many threads.
package winfsp

import (
	"strings"
	"unicode/utf8"
)

// Names that Windows cannot say are shown with characters of the private use
// area, as Cygwin and WinFsp itself do for < > : " \ | ? * and control codes:
//
//	U+F0xx  the ASCII character xx: a trailing dot or space, and the first
//	        letter of a name reserved for a device
//	U+F7xx  the byte xx (80 to FF) of what is not UTF-8, and of characters of
//	        the name itself that lie in these two ranges
//
// so that every name has exactly one form and comes back as it was.
const (
	escapeASCII = 0xf000
	escapeByte  = 0xf700
)

// toWindows answers the form of a stored name that Windows can say.
func toWindows(name string) string {
	if !needsEscape(name) {
		return name
	}
	var out strings.Builder
	device := isDevice(name)
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		last := i+size == len(name)
		switch {
		case r == utf8.RuneError && size <= 1 || isEscape(r):
			for _, b := range []byte(name[i : i+size]) {
				out.WriteRune(escapeByte + rune(b))
			}
		case i == 0 && device, last && (r == '.' || r == ' ') && name != "." && name != "..":
			out.WriteRune(escapeASCII + r)
		default:
			out.WriteRune(r)
		}
		i += size
	}
	return out.String()
}

// fromWindows undoes toWindows.
func fromWindows(name string) string {
	if strings.IndexFunc(name, isEscape) < 0 {
		return name
	}
	var out strings.Builder
	for _, r := range name {
		if isEscape(r) {
			out.WriteByte(byte(r))
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

func isEscape(r rune) bool {
	return r > escapeASCII && r < escapeASCII+0x80 || r >= escapeByte+0x80 && r <= escapeByte+0xff
}

func needsEscape(name string) bool {
	if name == "" {
		return false
	}
	last := name[len(name)-1]
	return last == '.' || last == ' ' || isDevice(name) || !utf8.ValidString(name) || strings.IndexFunc(name, isEscape) >= 0
}

// isDevice reports whether Windows takes a name for a device, which it does
// whatever follows the first dot.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	if len(base) == 4 && (strings.HasPrefix(base, "COM") || strings.HasPrefix(base, "LPT")) {
		return base[3] >= '0' && base[3] <= '9'
	}
	return false
}

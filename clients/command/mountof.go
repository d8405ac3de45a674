package command

import (
	"os"
	"path/filepath"
	"strings"
)

// mountOf splits a path into that of its mount and the rest, which begins with a slash: the
// same at each mount of a tree. The path may have been removed. Where the system tells no
// mounts, the rest is the whole path.
func mountOf(path string) (point, rest string) {
	device := func(path string) (uint64, bool) {
		info, err := os.Stat(path)
		if err != nil {
			return 0, false
		}
		o, ok := objectOf(info)
		return o.device, ok
	}
	point = path
	at, ok := device(point)
	for !ok && filepath.Dir(point) != point {
		point = filepath.Dir(point)
		at, ok = device(point)
	}
	for up := filepath.Dir(point); up != point; up = filepath.Dir(point) {
		if other, ok := device(up); !ok || other != at {
			break
		}
		point = up
	}
	rest = strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, point)), "/")
	return point, "/" + rest
}

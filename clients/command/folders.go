package command

import (
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// checkFolders refuses a cache or a log below the mountpoint: once the tree is
// mounted, the mount would wait for itself when it writes there.
func (c *mountCmd) checkFolders() error {
	for _, f := range []struct{ option, path string }{{"--cache-dir", c.CacheDir}, {"--log-file", c.LogFile}, {"--pid-file", c.PIDFile}} {
		if f.path != "" && isBelow(resolve(f.path), resolve(c.Mountpoint)) {
			return fault.Errorf(fault.Invalid, "command.mount", f.option, "%s lies inside the mountpoint %s: name a place outside of it", f.path, c.Mountpoint)
		}
	}
	return nil
}

// resolve follows the links of the part of a path that is there.
func resolve(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if filepath.Dir(at) == at {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}

func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(os.PathSeparator))
}

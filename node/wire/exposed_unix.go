//go:build !windows

package wire

import (
	"fmt"
	"io/fs"
)

// exposed says why a file is no place for a key, and what to do; empty: it is
// its owner's alone. The owner may be another user than this process's: only root
// can read such a file, and root may act for its owner.
func exposed(info fs.FileInfo) string {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("others may read or change the key file (mode %04o): run chmod 600 on it, and take a new key if it may have been read", mode)
	}
	return ""
}

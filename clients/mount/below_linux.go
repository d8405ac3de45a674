package mount

import (
	"bytes"
	"os"
	"strconv"
)

// maxAncestors bounds the walk towards the first process.
const maxAncestors = 256

// Below reports whether a thread belongs to a process or to one of its
// descendants, as they are now. It reads /proc, so ask rarely.
func Below(thread, process uint32) bool {
	for range maxAncestors {
		if thread == process {
			return true
		}
		if thread <= 1 {
			return false
		}
		status, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
		if err != nil {
			return false
		}
		if leader := field(status, "\nTgid:"); leader != thread && leader != 0 {
			thread = leader
			continue
		}
		thread = field(status, "\nPPid:")
	}
	return false
}

// field reads one number of a status file; 0 where there is none.
func field(status []byte, label string) uint32 {
	_, rest, _ := bytes.Cut(status, []byte(label))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

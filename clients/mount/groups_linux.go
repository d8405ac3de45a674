package mount

import (
	"bytes"
	"os"
	"strconv"
)

// Groups looks up the supplementary groups of the caller's thread, as they are
// now. It costs a read of /proc, so ask only where owner, mode and primary
// group have not settled the matter. A thread that is gone has none.
func Groups(c Caller) []uint32 {
	if c.PID == 0 {
		return nil
	}
	status, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(c.PID), 10) + "/status")
	if err != nil {
		return nil
	}
	return parseGroups(status)
}

const groupsLabel = "\nGroups:"

// parseGroups reads the line "Groups:\t4 24 1000 \n" of a status file.
func parseGroups(status []byte) []uint32 {
	at := bytes.Index(status, []byte(groupsLabel))
	if at < 0 {
		return nil
	}
	line := status[at+len(groupsLabel):]
	if end := bytes.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	fields := bytes.Fields(line)
	groups := make([]uint32, 0, len(fields))
	for _, field := range fields {
		if gid, err := strconv.ParseUint(string(field), 10, 32); err == nil {
			groups = append(groups, uint32(gid))
		}
	}
	return groups
}

package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A process that serves a FUSE file system and waits for that itself does not end when
// it is killed: the kernel waits for an answer, and the connection lasts as long as the
// process has it open. Only aborting the connection ends both.

// connections is where the kernel lets FUSE connections be aborted.
const connections = "/sys/fs/fuse/connections"

// AbortConnections aborts the FUSE connections that processes which were killed still
// have open, where the kernel tells them: since Linux 6.10. What cannot be aborted is
// left.
func AbortConnections(pids ...int) {
	list := map[string]bool{}
	for _, pid := range pids {
		files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/fdinfo/*")
		for _, f := range files {
			data, _ := os.ReadFile(f) // closed meanwhile is as good
			if _, rest, is := strings.Cut(string(data), "fuse_connection:"); is {
				id, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
				list[id] = true
			}
		}
	}
	if len(list) == 0 {
		return
	}
	var at syscall.Statfs_t
	if syscall.Statfs(connections, &at) == nil && at.Type != fuseControl {
		_ = syscall.Mount("fusectl", connections, "fusectl", 0, "") // else what follows does nothing
	}
	for id := range list {
		_ = os.WriteFile(filepath.Join(connections, id, "abort"), []byte("1"), 0)
	}
}

// fuseControl is FUSE_CTL_SUPER_MAGIC of the kernel's headers.
const fuseControl = 0x65735543

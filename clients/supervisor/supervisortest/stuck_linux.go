// Package supervisortest has a process that is hard to end, for tests of what ends
// processes. A test program calls Main first, and starts itself with what Stuck answers.
package supervisortest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// stuckAt names the mount point to a process that is to wait for its own mount.
const stuckAt = "CARTWHEEL_STUCK_AT"

// isStuck says that it does, in the words of a child that is ready.
const isStuck = `{"ready":true}`

// Stuck is the environment in which a program that calls Main waits for its own mount at
// this point.
func Stuck(point string) []string { return append(os.Environ(), stuckAt+"="+point) }

// Main waits for its own mount for ever, in a process that was started for that. Such a
// process does not end when it is killed. A TestMain calls it first.
func Main(stdout io.Writer) {
	point := os.Getenv(stuckAt)
	if point == "" {
		return
	}
	root := &silent{asked: make(chan struct{})}
	if _, err := fs.Mount(point, root, &fs.Options{}); err != nil {
		panic(err) // its parent waits for another line
	}
	go func() { _, _ = os.Stat(point + "/name") }()
	<-root.asked
	fmt.Fprintln(stdout, isStuck)
	select {}
}

// Await reads what such a process says until it waits. It returns what it says instead.
func Await(said io.Reader) string {
	line, err := bufio.NewReader(said).ReadString('\n')
	if line = strings.TrimSpace(line); line != isStuck {
		return fmt.Sprintf("%q, %v", line, err)
	}
	return ""
}

// silent is a directory that never says what is in it.
type silent struct {
	fs.Inode
	asked chan struct{}
}

func (s *silent) Lookup(context.Context, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	close(s.asked)
	select {}
}

// Package mounttest is the suite of a mounted file system: the whole file API
// that Linux carries over FUSE, through the kernel, on one mount and on two
// mounts of the same tree. It knows nothing of how the mount came about. Each
// case runs in a process of its own, because a daemon must never touch its own
// mount; the process is killed when it takes too long or the test ends.
package mounttest

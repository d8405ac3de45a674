package command

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"cartwheel.dev/geo-config/fault"
)

// record is the file that a mount keeps while it runs, so that umount can wait
// for its process, not only for the mount point: what is unsent goes out
// between the two. The process holds a lock on it, which ends with the process
// however that ends.
type record struct {
	PID        int    `json:"pid"`
	Mountpoint string `json:"mountpoint"`
	Cluster    string `json:"cluster"`
	Site       string `json:"site,omitempty"`
	// Files and Bytes are what is unsent while the mount ends.
	Files int    `json:"unsent_files,omitempty"`
	Bytes uint64 `json:"unsent_bytes,omitempty"`
	// Failed says how the mount ended, where that was not well; Kind is the
	// number of the kind.
	Failed string     `json:"failed,omitempty"`
	Kind   fault.Kind `json:"kind,omitempty"`

	file    *os.File
	pidFile string
}

// recordDir is where the records of this user's mounts lie, root's in one place
// whatever the session.
func (e *env) recordDir() (string, error) {
	if dir := e.getenv("CARTWHEEL_RUN_DIR"); dir != "" {
		return dir, os.MkdirAll(dir, 0o700)
	}
	dir := e.getenv("XDG_RUNTIME_DIR")
	switch {
	case os.Geteuid() == 0 && runtime.GOOS == "linux":
		dir = "/run"
	case dir == "":
		var err error
		if dir, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(dir, "cartwheel")
	return dir, os.MkdirAll(dir, 0o700)
}

func recordName(point string) string {
	sum := sha256.Sum256([]byte(point))
	return "mount-" + hex.EncodeToString(sum[:8])
}

// record writes down that this process serves the mount.
func (e *env) record(c *mountCmd) (*record, error) {
	const op fault.Op = "command.record"
	r := &record{PID: os.Getpid(), Mountpoint: c.Mountpoint, Cluster: c.Cluster, Site: c.Site, pidFile: c.PIDFile}
	if c.PIDFile != "" {
		if err := os.WriteFile(c.PIDFile, fmt.Appendln(nil, r.PID), 0o644); err != nil {
			return r, fault.FromOS(op, c.PIDFile, err)
		}
	}
	dir, err := e.recordDir()
	if err != nil {
		return r, fault.FromOS(op, c.Mountpoint, err)
	}
	f, err := os.OpenFile(filepath.Join(dir, recordName(c.Mountpoint)+".json"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return r, fault.FromOS(op, c.Mountpoint, err)
	}
	r.file = f
	if !lock(f) {
		return r, fault.E(fault.Busy, op, f.Name(), "is held by another process")
	}
	return r, fault.Wrap(fault.IO, op, f.Name(), r.write())
}

// write brings the file up to date. A reader may find half of it.
func (r *record) write() error {
	if r.file == nil {
		return nil
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := r.file.WriteAt(data, 0); err != nil {
		return err
	}
	return r.file.Truncate(int64(len(data)))
}

// read takes what the mount has written since; false: it is at it just now.
func (r *record) read() bool {
	data, err := io.ReadAll(io.NewSectionReader(r.file, 0, 1<<20))
	now := record{file: r.file}
	if err != nil || json.Unmarshal(data, &now) != nil {
		return false
	}
	*r = now
	return true
}

// end notes how the mount ended.
func (r *record) end(err error) {
	if r.Files, r.Bytes = 0, 0; err != nil {
		r.Failed, r.Kind = err.Error(), fault.KindOf(err)
	}
	_ = r.write() // umount then says that all is well if the process says so too
}

// remove ends the record, with the last thing that the process does.
func (r *record) remove() {
	if r.pidFile != "" {
		_ = os.Remove(r.pidFile) // somebody was quicker
	}
	if r.file != nil {
		_ = os.Remove(r.file.Name()) // likewise
		r.file.Close()
	}
}

// findRecord returns the record of a mount whose process runs, nil if there is
// none.
func (e *env) findRecord(point string) *record {
	dir, err := e.recordDir()
	if err != nil {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, recordName(point)+".json"), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	r := &record{file: f}
	if lock(f) { // its process is gone
		f.Close()
		return nil
	}
	if err := json.NewDecoder(f).Decode(r); err != nil {
		f.Close()
		return nil
	}
	return r
}

// ended reports whether the process of a found record has ended.
func (r *record) ended() bool { return lock(r.file) }

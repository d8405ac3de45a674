package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/diskcache"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/logattr"
)

// defaultCacheBytes bounds the disk cache where no limit is given.
const defaultCacheBytes = 10 << 30

// Folder is a client's cache folder: content that may vanish, and the journal of
// what was written and not committed, which may not. Copies of what could not be
// committed lie beside them. One process has a folder at a time.
type Folder struct {
	dir    string
	cache  *diskcache.Cache
	log    *writelog.Log
	left   []content.Leftover // in the journal when it was opened
	logger *slog.Logger
}

// FolderOptions set up a Folder. Only Dir and Logger must be given.
type FolderOptions struct {
	Dir string
	// CacheBytes bounds the content; 0: 10 GiB.
	CacheBytes int64
	// JournalFileBytes is behind how many bytes the journal begins a new file; 0:
	// the journal's own choice.
	JournalFileBytes int64
	Logger           *slog.Logger
}

// OpenFolder takes a folder, and makes it where it is not there.
func OpenFolder(o FolderOptions) (*Folder, error) {
	if o.CacheBytes <= 0 {
		o.CacheBytes = defaultCacheBytes
	}
	f := &Folder{dir: o.Dir, logger: o.Logger}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fault.FromOS("recovery.OpenFolder", f.dir, err)
	}
	var err error
	if f.cache, err = diskcache.Open(filepath.Join(f.dir, "chunks"), diskcache.Options{Limit: o.CacheBytes, Logger: o.Logger}); err != nil {
		return nil, err
	}
	if f.log, f.left, err = writelog.Open(filepath.Join(f.dir, "journal"), writelog.Options{Logger: o.Logger, SegmentBytes: o.JournalFileBytes}); err != nil {
		return nil, errors.Join(err, f.cache.Close())
	}
	return f, nil
}

// Use has an engine keep its content and its writes in the folder.
func (f *Folder) Use(o *content.Options) { o.Disk, o.Journal = f.cache, f.log }

// Close gives the folder back.
func (f *Folder) Close() error { return errors.Join(f.log.Close(), f.cache.Close()) }

// park keeps a file that another client has changed meanwhile beside the cache, as
// the lost writes would have made it.
func (f *Folder) park(ctx context.Context, p *content.Parked) error {
	const op fault.Op = "recovery.park"
	dir := filepath.Join(f.dir, "conflicts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.FromOS(op, dir, err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%s at version %d", p.Object, p.Known))
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fault.FromOS(op, name, err)
	}
	_, err = io.Copy(file, &parkedReader{ctx: ctx, p: p})
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fault.FromOS(op, name, err)
	}
	f.logger.Warn("a file was changed by others after writes that a crash left behind: both are kept", logattr.Object(p.Object), slog.String("copy", name))
	return nil
}

type parkedReader struct {
	ctx context.Context
	p   *content.Parked
	at  uint64
}

// Read implements io.Reader.
func (r *parkedReader) Read(b []byte) (int, error) {
	if r.at >= r.p.Size() {
		return 0, io.EOF
	}
	n, err := r.p.ReadAt(r.ctx, b, r.at)
	if n == 0 && err == nil {
		err = io.ErrUnexpectedEOF
	}
	r.at += uint64(n)
	return n, err
}

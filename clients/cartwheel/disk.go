package cartwheel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/diskcache"
	"cartwheel.dev/clients/content/writelog"
	"cartwheel.dev/geo-config/fault"
)

// defaultCacheBytes bounds the disk cache where nobody says.
const defaultCacheBytes = 10 << 30

// disk is what lies in the cache folder: content that may vanish, and the
// journal of what was written and not committed, which may not.
type disk struct {
	dir   string
	cache *diskcache.Cache
	log   *writelog.Log
	left  []content.Leftover
}

// openDisk takes the cache folder, if there is one.
func (c *Client) openDisk(o *content.Options) error {
	if c.opt.CacheDir == "" {
		return nil
	}
	limit := c.opt.CacheBytes
	if limit <= 0 {
		limit = defaultCacheBytes
	}
	d := &disk{dir: c.opt.CacheDir}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fault.FromOS("cartwheel.Open", d.dir, err)
	}
	var err error
	if d.cache, err = diskcache.Open(filepath.Join(d.dir, "chunks"), diskcache.Options{Limit: limit, Log: c.opt.Logger}); err != nil {
		return err
	}
	if d.log, d.left, err = writelog.Open(filepath.Join(d.dir, "journal"), writelog.Options{Log: c.opt.Logger, SegmentBytes: c.opt.JournalFileBytes}); err != nil {
		return errors.Join(err, d.cache.Close())
	}
	c.disk = d
	o.Disk, o.Journal = d.cache, d.log
	return nil
}

func (c *Client) closeDisk() error {
	if c.disk == nil {
		return nil
	}
	return errors.Join(c.disk.log.Close(), c.disk.cache.Close())
}

// park keeps a file that somebody else has changed meanwhile beside the cache,
// as the lost writes would have made it.
func (c *Client) park(ctx context.Context, p *content.Parked) error {
	const op fault.Op = "cartwheel.park"
	dir := filepath.Join(c.disk.dir, "conflicts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.FromOS(op, dir, err)
	}
	name := filepath.Join(dir, fmt.Sprintf("%s at version %d", p.Object, p.Known))
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fault.FromOS(op, name, err)
	}
	_, err = io.Copy(f, &parkedReader{ctx: ctx, p: p})
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fault.FromOS(op, name, err)
	}
	c.opt.Logger.Warn("a file was changed by others after writes that a crash left behind: both are kept", "object", p.Object.String(), "copy", name)
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

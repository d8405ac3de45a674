package cartwheel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/content/diskcache"
	"cartwheel.dev/clients/content/writelog"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire/pb"
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
	if d.cache, err = diskcache.Open(filepath.Join(d.dir, "chunks"), diskcache.Options{Limit: limit, Log: c.log}); err != nil {
		return err
	}
	if d.log, d.left, err = writelog.Open(filepath.Join(d.dir, "journal"), writelog.Options{Log: c.log}); err != nil {
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

// recover commits what an earlier process left in the journal, before anybody
// reads. Whose the writes were, the journal does not say: they are committed
// with this process's rights.
func (c *Client) recover(ctx context.Context) error {
	if c.disk == nil {
		return nil
	}
	left := c.disk.left
	c.disk.left = nil
	for _, l := range left {
		c.log.Info("writes that a crash left behind are being committed", "object", l.Object.String(), "writes", len(l.Writes))
		was := l.Object
		err := c.remake(ctx, &l)
		if err == nil && len(l.Writes) > 0 {
			err = c.engine.Recover(ctx, l, content.Open{As: &as{p: &pb.Principal{}}}, c.park)
		}
		if err != nil {
			c.log.Warn("writes that a crash left behind stay in the journal", "object", l.Object.String(), "err", err)
			continue
		}
		c.disk.log.Forget(was)
	}
	return nil
}

// remake makes a file of which a crash kept its active from hearing, if it has
// not; what was written goes to the object that it then is. Where its name was
// taken since, the writes find no object, and are parked.
func (c *Client) remake(ctx context.Context, l *content.Leftover) error {
	var req pb.OperateRequest
	at := slices.IndexFunc(l.Writes, func(w content.Numbered) bool { return w.Kind == content.WriteCreate })
	if at < 0 {
		return nil
	}
	data := l.Writes[at].Data
	l.Writes = slices.Delete(slices.Clone(l.Writes), at, at+1)
	if err := proto.Unmarshal(data, &req); err != nil || req.Operation.GetCreate() == nil {
		return fault.Wrap(fault.Corrupt, "cartwheel.recover", l.Object.String(), err)
	}
	a, err := c.fetch(ctx, l.Object, true, false)
	switch {
	case err == nil && a.Size == 0 && a.Version == a.Change:
		l.Known = max(l.Known, a.Version) // only its answer was lost
		return nil
	case err == nil:
		return nil
	case !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound):
		return err
	}
	// A new ID: who knows whether the old one was not in use for a moment.
	create := req.Operation.GetCreate()
	create.Object = 0
	resp, _, err := c.operate(ctx, operation{slice: l.Object.Slice(), p: req.Principal, op: req.Operation})
	switch {
	case err == nil:
		l.Object, l.Known = geoconfig.ObjectID(resp.Result.Attr.GetObject()), resp.Result.Attr.GetVersion()
	case unknown(err):
		return err
	default:
		c.log.Warn("a file that a crash left behind cannot be made", "name", string(create.Name), "err", err)
	}
	return nil
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
	c.log.Warn("a file was changed by others after writes that a crash left behind: both are kept", "object", p.Object.String(), "copy", name)
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

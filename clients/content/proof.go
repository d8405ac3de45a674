package content

import (
	"context"
	"log/slog"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
)

// A chunk's address is the BLAKE3 sum of its bytes: whole chunks are checked when
// they come in from a node, and when they are read from the disk cache. Nothing
// proves a part of a chunk, or a range that a node resolved: for these the client
// trusts the node. A Remote asks only normal members of the slice, over
// connections that prove them to be on the roster, and each checks what it reads
// from its own disk by the CRC-32C of every 4 KiB. To fetch whole chunks instead
// would bring 16 times the bytes of a random read of 4 KiB over a thin line, to
// prove what only a malicious node would forge.

// damagedTries bounds how often a damaged chunk is asked for.
const damagedTries = 4

// getChunks fetches parts and checks those that are whole chunks. Damaged ones are
// asked for again, elsewhere.
func (c *core) getChunks(ctx context.Context, object ids.Object, parts []Part) ([]byte, error) {
	const op fault.Op = "content.getChunks"
	body, err := c.remote.GetChunks(ctx, object, parts, 0)
	if err != nil {
		return nil, err
	}
	at := 0
	for i := range parts {
		p := &parts[i]
		end := at + int(p.Length)
		if end > len(body) {
			return nil, fault.E(fault.Corrupt, op, p.Address.String(), "fewer bytes came than were asked for")
		}
		if p.whole() && chunk.Verify(p.Address, body[at:end]) != nil {
			good, err := c.again(ctx, object, p)
			if err != nil {
				return nil, err
			}
			copy(body[at:end], good)
		}
		at = end
	}
	return body, nil
}

// again asks for a chunk that came damaged from one node after the other.
func (c *core) again(ctx context.Context, object ids.Object, p *Part) ([]byte, error) {
	const op fault.Op = "content.again"
	err := fault.E(fault.Corrupt, op, p.Address.String(), "the bytes that came are not the chunk's")
	for try := 1; try < damagedTries; try++ {
		c.opt.Logger.Warn("a chunk came damaged and is asked for elsewhere", logattr.Object(object), slog.String("chunk", p.Address.String()))
		body, failed := c.remote.GetChunks(ctx, object, []Part{*p}, try)
		if failed == nil && len(body) == int(p.Length) && chunk.Verify(p.Address, body) == nil {
			return body, nil
		}
		if ctx.Err() != nil {
			return nil, fault.Wrap(fault.Interrupted, op, p.Address.String(), context.Cause(ctx))
		}
	}
	return nil, err
}

// whole reports whether the part is all of its chunk.
func (p *Part) whole() bool { return p.Offset == 0 && p.Length == p.Size }

// fromDisk and toDisk speak to the disk cache, where there is one. A whole chunk
// that is not what its address says is forgotten.
func (c *core) fromDisk(k key) ([]byte, bool) {
	if c.opt.Disk == nil {
		return nil, false
	}
	data, ok := c.opt.Disk.Get(k.bytes())
	if ok && k.index == wholeChunk && chunk.Verify(k.address, data) != nil {
		c.opt.Logger.Warn("a chunk of the disk cache is damaged and forgotten", slog.String("chunk", k.address.String()))
		c.opt.Disk.Forget(k.bytes())
		return nil, false
	}
	return data, ok
}

func (c *core) toDisk(k key, data []byte) {
	if c.opt.Disk != nil {
		c.opt.Disk.Put(k.bytes(), data)
	}
}

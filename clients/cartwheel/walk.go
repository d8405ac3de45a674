package cartwheel

import (
	"context"
	"strings"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/cue"
)

// maxTogether is how many names of a path one question may have.
const maxTogether = 256

var _ mount.PathWalker = (*Client)(nil)

// Walk implements mount.PathWalker: Lookup of a whole path below a directory,
// cues among it. Whatever of it is not known takes one question to each active
// on the way, not one for each name, and the content of a small file comes with
// the answer. Empty names and "." lead nowhere; links are not followed. Where
// the last name is not there the answer has no Node; a missing name before it
// is NotFound, and what is no directory there NotDirectory. As after Lookup,
// Forget gives the node back.
func (c *Client) Walk(ctx context.Context, who mount.Caller, from mount.Inode, path string) (mount.Entry, error) {
	const op fault.Op = "cartwheel.Walk"
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	parts := all[:0]
	for _, name := range all {
		if name != "." {
			parts = append(parts, name)
		}
	}
	if len(parts) == 0 {
		return c.Lookup(ctx, who, from, ".")
	}
	at, warmed := from, 0
	for i, name := range parts {
		if n := together(parts[i:]); i >= warmed && n > 1 {
			if dir, _, ok := c.nodes.Find(at); ok {
				c.resolver.Warm(ctx, who, dir, parts[i:i+n])
			}
			warmed = i + n
		}
		e, err := c.Lookup(ctx, who, at, name)
		if at != from {
			c.Forget(at, 1)
		}
		last := i == len(parts)-1
		switch {
		case err != nil || last:
			return e, err
		case e.Node == 0:
			return mount.Entry{}, fault.E(fault.NotFound, op, path, "")
		case e.Attr.Mode&mount.TypeMask != mount.TypeDir:
			c.Forget(e.Node, 1)
			return mount.Entry{}, fault.E(fault.NotDirectory, op, path, "")
		}
		at = e.Node
	}
	return mount.Entry{}, nil // not reached: the last name returns
}

// together counts the names at the beginning of a path that are neither cues
// nor "..": they can be asked for together.
func together(path []string) int {
	for i, name := range path {
		if _, is, _ := cue.Parse(name); is || name == ".." || i == maxTogether {
			return i
		}
	}
	return len(path)
}

package names

import "cartwheel.dev/geo-config/ids"

// IsComplete reports whether every name of a directory is known.
func (c *Cache) IsComplete(dir ids.Object) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	return d != nil && d.complete && c.left(d.lease) > 0
}

// Bare returns up to most names of a directory of whose objects no attributes are
// known, in no order: those that lie in other slices.
func (c *Cache) Bare(dir ids.Object, most int) []Named {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.dirs[dir]
	if d == nil || c.left(d.lease) <= 0 {
		return nil
	}
	var out []Named
	for name, e := range d.entries {
		if len(out) == most {
			break
		}
		x := c.objects[e.Object]
		if e.Object == 0 || x != nil && x.attr != nil && (c.left(x.cover) > 0 || c.left(x.own) > 0) {
			continue
		}
		out = append(out, Named{name, e})
	}
	return out
}

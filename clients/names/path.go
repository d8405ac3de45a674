package names

import (
	"strings"

	"cartwheel.dev/geo-config/ids"
)

// maxDepth bounds the directories of a path that is looked for.
const maxDepth = 128

// Path returns a path of an object, as far as it is known; what is above is
// shown as the number of an object. It goes through all that is kept and is
// for people who look at traces.
func (c *Cache) Path(o ids.Object) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []string
	for range maxDepth {
		if o == ids.RootObject {
			return "/" + join(parts)
		}
		dir, name, ok := c.nameOf(o)
		if !ok {
			break
		}
		parts = append(parts, name)
		o = dir
	}
	if len(parts) == 0 {
		return "#" + o.String()
	}
	return "#" + o.String() + "/" + join(parts)
}

func join(parts []string) string {
	var b strings.Builder
	for i := len(parts) - 1; i >= 0; i-- {
		b.WriteString(parts[i])
		if i > 0 {
			b.WriteByte('/')
		}
	}
	return b.String()
}

func (c *Cache) nameOf(o ids.Object) (dir ids.Object, name string, ok bool) {
	if x := c.objects[o]; x != nil && x.attr != nil && x.attr.Parent != 0 {
		dir = ids.Object(x.attr.Parent)
		if d := c.dirs[dir]; d != nil {
			if name, ok := d.nameOf(o); ok {
				return dir, name, true
			}
		}
	}
	for dir, d := range c.dirs {
		if name, ok := d.nameOf(o); ok {
			return dir, name, true
		}
	}
	return 0, "", false
}

func (d *directory) nameOf(o ids.Object) (string, bool) {
	for name, e := range d.entries {
		if e.Object == o {
			return name, true
		}
	}
	return "", false
}

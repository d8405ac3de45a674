package replicatest

type cached struct {
	value string
	until Time
}

// cache is what a client has read and may show again.
type cache struct {
	values  map[string]cached
	revoked map[string]Time // nothing asked for before is kept
}

func newCache() *cache { return &cache{values: map[string]cached{}, revoked: map[string]Time{}} }

// get returns the value of a key where its lease has not ended.
func (c *cache) get(key string, now Time) (string, bool) {
	v, ok := c.values[key]
	return v.value, ok && now < v.until
}

// keep keeps a value that was asked for at a time, until another.
func (c *cache) keep(key, value string, asked, until Time) {
	if asked > c.revoked[key] {
		c.values[key] = cached{value, until}
	}
}

// forget gives a lease up.
func (c *cache) forget(key string, now Time) {
	delete(c.values, key)
	c.revoked[key] = now
}

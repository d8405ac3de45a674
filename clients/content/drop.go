package content

// DropCaches forgets all content and range maps that can be fetched again; the
// disk cache stays. What is dirty or on its way stays too.
func (e *Engine) DropCaches() {
	c := e.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.limit
	c.limit = 0
	c.evict()
	c.limit = limit
}

package route

// AwaitPings waits until the pings that are under way have ended.
func (r *Router) AwaitPings() { r.watchers.Wait() }

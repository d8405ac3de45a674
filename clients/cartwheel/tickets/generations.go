package tickets

// generations is a map that forgets what was not used for longest.
type generations[K comparable, V any] struct{ young, old map[K]V }

// get returns a value and makes it young.
func (g *generations[K, V]) get(k K, most int) (V, bool) {
	v, ok := g.young[k]
	if ok {
		return v, true
	}
	if v, ok = g.old[k]; ok {
		g.put(k, v, most)
	}
	return v, ok
}

func (g *generations[K, V]) put(k K, v V, most int) {
	if g.young == nil || len(g.young) >= most {
		g.old, g.young = g.young, make(map[K]V)
	}
	g.young[k] = v
}

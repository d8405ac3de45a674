package remembered

// recent keeps the last maxKept keys that were used, and up to as many before them.
// The zero recent is empty.
type recent[K comparable, V any] struct{ young, old map[K]V }

func (r *recent[K, V]) put(k K, v V) {
	if r.young == nil || len(r.young) >= maxKept {
		r.young, r.old = make(map[K]V), r.young
	}
	r.young[k] = v
}

func (r *recent[K, V]) get(k K) (V, bool) {
	if v, ok := r.young[k]; ok {
		return v, true
	}
	v, ok := r.old[k]
	if ok {
		r.put(k, v)
	}
	return v, ok
}

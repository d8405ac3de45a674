package memfs

import "sort"

// entries is one directory: by name, and in the order that listings follow. An
// entry's cookie never changes, so a listing that goes on after a change
// neither skips nor repeats what was there throughout.
type entries struct {
	byName map[string]*entry
	order  []*entry // ascending cookies; removed ones stay until compact
	dead   int
	next   uint64
}

type entry struct {
	name   string
	cookie uint64
	inode  *inode // nil: removed
}

// firstCookie leaves room for "." and "..".
const firstCookie = 3

func newEntries() *entries {
	return &entries{byName: map[string]*entry{}, next: firstCookie}
}

func (e *entries) len() int { return len(e.byName) }

func (e *entries) get(name string) *inode {
	if found := e.byName[name]; found != nil {
		return found.inode
	}
	return nil
}

// put gives name to i; a name that exists keeps its cookie.
func (e *entries) put(name string, i *inode) {
	if found := e.byName[name]; found != nil {
		found.inode = i
		return
	}
	made := &entry{name: name, cookie: e.next, inode: i}
	e.next++
	e.byName[name] = made
	e.order = append(e.order, made)
}

func (e *entries) remove(name string) {
	found := e.byName[name]
	found.inode = nil
	delete(e.byName, name)
	e.dead++
	if e.dead > 32 && e.dead > len(e.order)/2 {
		e.compact()
	}
}

func (e *entries) compact() {
	live := make([]*entry, 0, len(e.byName))
	for _, each := range e.order {
		if each.inode != nil {
			live = append(live, each)
		}
	}
	e.order, e.dead = live, 0
}

// after calls fn for each entry behind cookie until it answers false.
func (e *entries) after(cookie uint64, fn func(*entry) bool) {
	from := sort.Search(len(e.order), func(i int) bool { return e.order[i].cookie > cookie })
	for _, each := range e.order[from:] {
		if each.inode != nil && !fn(each) {
			return
		}
	}
}

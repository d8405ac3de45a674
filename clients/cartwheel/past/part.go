package past

import (
	"context"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/hlc"
)

const (
	// maxParts bounds the directories that are remembered to be in a part of the tree.
	maxParts = 1024
	// maxAbove bounds the directories that are looked at above one.
	maxAbove = 4096
)

// part is a directory that was in a part of the tree at a time. It is so for good.
type part struct {
	dir, root ids.Object
	at        hlc.Time
}

// parts remembers which directories were in parts of the tree. It is safe for concurrent use.
type parts struct {
	mu sync.Mutex // guards in
	in map[part]bool
}

func (p *parts) has(x part) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.in[x]
}

func (p *parts) add(x part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil || len(p.in) >= maxParts {
		p.in = map[part]bool{}
	}
	p.in[x] = true
}

// inPart refuses a directory that was not the root of a snapshot of a part of the tree then,
// nor below it: NotFound. It asks for the directories above.
func inPart(ctx context.Context, f *FileSystem, p place, root ids.Object, name string) error {
	const op fault.Op = "past.inPart"
	x := part{p.object, root, p.at}
	if f.table.parts.has(x) {
		return nil
	}
	for n, i := (&node{place: p}), 0; n.object != root; i++ {
		if n.object == ids.RootObject || i >= maxAbove {
			return fault.E(fault.NotFound, op, name, "the snapshot is of a part of the tree, and the directory was not in it; `cartwheel snapshot list` tells which part")
		}
		a, err := f.attr(ctx, n)
		if err != nil {
			return err
		}
		n = &node{place: place{ids.Object(a.Parent), p.at, p.cues}}
	}
	f.table.parts.add(x)
	return nil
}

package operate

import (
	"context"
	"sync"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/tree"
)

// An operation with Early makes a file. Its caller sends it to the other normal
// members too, which keep it until the log brings it, and order it if they take over.
// So the active answers the caller once its own disk has the entry. Reads wait until
// the file shows.

// earlyAfter is up to where the log must be committed before an operation may be
// answered early: what its evaluation counted on would be lost otherwise. Files that
// were made or removed under other names do not matter.
func (s *slice) earlyAfter(op *Operation) ids.Serial {
	after := s.decisive
	for i := range op.outcome.Mutations {
		if key := op.outcome.Mutations[i].Key; tree.NamesEntry(key) {
			after = max(after, s.over.serial(key))
		}
	}
	return after
}

// isDecisive reports whether files that are made behind an operation may count on more
// of it than one name. They do not count on the content of others, nor on other names.
func isDecisive(o *pb.Operation) bool {
	switch o := o.GetOp().(type) {
	case *pb.Operation_Create:
		return o.Create.Mode&tree.TypeMask != tree.TypeRegular
	case *pb.Operation_Unlink:
		return o.Unlink.Directory
	case *pb.Operation_MakeObject, *pb.Operation_Commit, *pb.Operation_Link, *pb.Operation_Hold:
		return false
	}
	return true
}

// answerEarly tells callers that their operations keep their places.
func answerEarly(l *Loop, list []replica.Early) {
	for i := range list {
		e := &list[i]
		op := l.waiting[e.Token]
		if op == nil || op.Early == nil || op.early {
			continue
		}
		op.early = true
		l.unseen.add(ids.Object(op.Op.GetCreate().GetDir()))
		op.Early(op, Answer{Serial: e.Serial, Epoch: e.Epoch, Time: uint64(e.Time)})
	}
}

// shown says that an operation is applied, or will not be here.
func shown(l *Loop, op *Operation) {
	if op.early {
		op.early = false
		l.unseen.remove(ids.Object(op.Op.GetCreate().GetDir()))
	}
}

// unseen are the directories with names that were answered early, and do not show yet.
// It is safe for concurrent use.
type unseen struct {
	mu   sync.Mutex // guards dirs
	dirs map[ids.Object]*unseenNames
}

// unseenNames counts the names of one directory; done is closed when there is none.
type unseenNames struct {
	count int
	done  chan struct{}
}

func newUnseen() *unseen { return &unseen{dirs: map[ids.Object]*unseenNames{}} }

func (u *unseen) add(dir ids.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.dirs[dir]
	if n == nil {
		n = &unseenNames{done: make(chan struct{})}
		u.dirs[dir] = n
	}
	n.count++
}

func (u *unseen) remove(dir ids.Object) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if n := u.dirs[dir]; n != nil {
		if n.count--; n.count == 0 {
			close(n.done)
			delete(u.dirs, dir)
		}
	}
}

func (u *unseen) of(dir ids.Object) *unseenNames {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.dirs[dir]
}

// AwaitSeen waits until the committed state shows the names of directories that were
// answered before now. Error: Again once ctx ends, and Closed once the loop has ended.
func (l *Loop) AwaitSeen(ctx context.Context, dirs ...ids.Object) error {
	for _, dir := range dirs {
		n := l.unseen.of(dir)
		if n == nil {
			continue
		}
		select {
		case <-n.done:
		case <-l.ended:
			return fault.E(fault.Closed, "operate.AwaitSeen", string(l.o.Self), "the node stops")
		case <-ctx.Done():
			return fault.Wrap(fault.Again, "operate.AwaitSeen", dir.String(), ctx.Err())
		}
	}
	return nil
}

// Package side keeps what clients write below .EventualConsistency while the active
// of a slice is away. Of the members at one side of a cut the first one in the
// slice's row evaluates such an operation over its copy and what it keeps already,
// and answers once that is on its disk, and with the other members that it reaches.
// So clients at this side of the cut see each other's writes, whichever member they
// ask. When the active can be reached the node sends it what was changed, object by
// object, and forgets that once its copy shows it. Package tree has the rules for what
// both sides changed.
//
// What is kept does not expire. It is bounded, by memory; then the answer is NoSpace.
package side

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/boottime"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/store/sidecar"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// Caller calls another node; a *wire.Host does.
type Caller interface {
	Call(ctx context.Context, peer string, class wire.Class, m wire.Method, request proto.Message, body [][]byte, answer proto.Message) (*wire.Buffer, error)
	Connected(peer string, class wire.Class) bool
}

// Chunks are the chunks on the node's disk; *pack.Packs are.
type Chunks interface {
	Put(ctx context.Context, addresses []chunk.Address, bodies [][]byte) error
	Missing(out, addresses []chunk.Address) []chunk.Address
	Length(a chunk.Address) (int, bool)
	Read(ctx context.Context, ranges []pack.Range) error
}

// Options set up a Log. None may be missing, but for FS, which is the operating
// system's then.
type Options struct {
	Self ids.Node
	// Dir is where the side logs are kept, in FS.
	Dir string
	FS  vfs.FS
	// Bytes bounds what is kept in memory.
	Bytes     int
	Published func(ids.Slice) *operate.Published
	Committed func(ids.Slice) tree.View
	Row       func(ids.Slice) (geoconfig.SliceRow, bool)
	Nodes     tree.Nodes
	Chunks    Chunks
	Caller    Caller
	// Feature is the highest feature level that a node's program knows.
	Feature func(ids.Node) int
	// Distance is the round trip to a node; false: it is not known.
	Distance func(ids.Node) (time.Duration, bool)
	// AdoptAfter is for how long the owner of a copy must be away until this node merges
	// it.
	AdoptAfter time.Duration
	// Propose orders an operation of the node's own, where it acts for the slice.
	Propose func(ctx context.Context, s ids.Slice, op *pb.Operation, body []byte) (operate.Answer, error)
	Clock   boottime.Func
	HLC     *hlc.Clock
	Random  func() uint64
	Logger  *slog.Logger
}

// Log is the side logs of a node, its own and its copies of others'. It is safe for use
// by many goroutines.
type Log struct {
	o    Options
	wake chan struct{} // holds one word that there is something to merge
	done *recent

	mu     sync.Mutex                 // guards below
	kept   *kept                      // nil while nothing was ever kept
	away   map[ids.Node]time.Duration // boot time until which a node is left alone
	slices map[ids.Slice]*slice
	closed bool
}

// slice is the side logs of one slice. The node's own lies over the copies, but for what
// one of these changed later.
type slice struct {
	self    ids.Node
	mu      sync.Mutex // guards below, while nothing else is locked
	own     *tree.Side // nil: there is none
	copies  map[ids.Node]*copied
	has     map[ids.Node]bool            // has all of the own one, as far as is known
	away    map[ids.Node]time.Duration   // boot time since which an owner of a copy is away
	refused map[ids.Object]time.Duration // until when a change of an object is not sent again
	serial  ids.Serial                   // of the newest operation of the own one
	seen    ids.Serial                   // the largest one of the others' that is known
	since   time.Duration                // boot time of the first change
	until   ids.Serial                   // the copy shows what was merged once it has this
	merged  time.Duration                // boot time of the last merge
	settled time.Duration                // boot time when changes that are merged were forgotten last
	gone    bool                         // it was forgotten: another one is to be made
}

// Open reads what is kept.
func Open(o Options) (*Log, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	l := &Log{o: o, wake: make(chan struct{}, 1), done: newRecent(), away: map[ids.Node]time.Duration{}, slices: map[ids.Slice]*slice{}}
	is, err := sidecar.Exists(o.FS, o.Dir)
	if err != nil || !is {
		return l, err
	}
	if l.kept, err = openKept(o.FS, o.Dir); err != nil {
		return nil, err
	}
	all, err := l.kept.load()
	if err != nil {
		return nil, err
	}
	for id, changes := range all {
		s := l.slices[id.slice]
		if s == nil {
			s = l.newSlice()
			l.slices[id.slice] = s
		}
		l.side(s, id).Apply(changes)
		for i := range changes {
			if id.owner == l.o.Self {
				s.serial = max(s.serial, changes[i].Serial)
			} else {
				s.seen = max(s.seen, changes[i].Serial)
			}
		}
		l.wakeUp()
	}
	return l, nil
}

func (l *Log) newSlice() *slice {
	// Numbers of versions are not used twice, whatever was kept before.
	return &slice{self: l.o.Self, copies: map[ids.Node]*copied{}, has: map[ids.Node]bool{}, away: map[ids.Node]time.Duration{}, refused: map[ids.Object]time.Duration{}, serial: l.serialNow(), since: l.o.Clock()}
}

// serialNow is the serial of an operation as of now. Members' clocks are about the
// same, so are the serials of what they do at the same time.
func (l *Log) serialNow() ids.Serial { return tree.FirstOfSide + ids.Serial(l.o.HLC.Now()>>4) }

// next is the serial of the slice's next own operation: larger than that of all it may
// be done over.
func (s *slice) next(now ids.Serial) ids.Serial { return max(s.serial+1, s.seen+1, now) }

// beside finds the last change of a key by another side log than this owner's, if it is
// newer than one of its own. Of equal serials the owner's name decides.
func (s *slice) beside(owner ids.Node) tree.Others {
	return func(key []byte, than ids.Serial) (tree.SideChange, bool) {
		c, by := s.newest(key, than, owner)
		return c, by != owner
	}
}

// newest is the last change of a key by any side log, if it is newer than one with this
// serial and owner, and whose it is; else that owner.
func (s *slice) newest(key []byte, than ids.Serial, owner ids.Node) (newest tree.SideChange, by ids.Node) {
	by = owner
	look := func(n ids.Node, side *tree.Side) {
		if c, is := side.Change(key); is && n != owner && (c.Serial > than || c.Serial == than && n > by) {
			newest, than, by = c, c.Serial, n
		}
	}
	for n, c := range s.copies {
		look(n, c.Side)
	}
	if s.own != nil {
		look(s.self, s.own)
	}
	return newest, by
}

// side returns one side of a slice, with s.mu held or s not known to others yet. It is
// made where there is none.
func (l *Log) side(s *slice, id logID) *tree.Side {
	if id.owner != l.o.Self {
		c := s.copies[id.owner]
		if c == nil {
			c = newCopied(tree.NewSide(id.slice, l.o.Committed(id.slice), s.beside(id.owner), nil))
			s.copies[id.owner] = c
		}
		return c.Side
	}
	if s.own == nil {
		s.own = tree.NewSide(id.slice, under{l, s, id.slice}, s.beside(id.owner), nil)
	}
	return s.own
}

// under is what the node's own side lies over: the copies of the others'. It is read
// with s.mu held.
type under struct {
	l  *Log
	s  *slice
	id ids.Slice
}

func (u under) view() tree.View {
	v := u.l.o.Committed(u.id)
	for _, c := range u.s.copies {
		v = tree.Over(c.Side, v)
	}
	return v
}

// Get implements tree.View.
func (u under) Get(key []byte) ([]byte, bool, error) { return u.view().Get(key) }

// Scan implements tree.View.
func (u under) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	return u.view().Scan(from, to, fn)
}

func (l *Log) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close ends the log once no operation is under way. Run has ended.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.kept == nil {
		return nil
	}
	return l.kept.close()
}

// of returns a slice's side logs, made where there are none.
func (l *Log) of(id ids.Slice) (*slice, *kept, error) {
	const op fault.Op = "side.of"
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, fault.E(fault.Canceled, op, "", "the node stops")
	}
	if l.kept == nil {
		k, err := openKept(l.o.FS, l.o.Dir)
		if err != nil {
			return nil, nil, err
		}
		l.kept = k
	}
	s := l.slices[id]
	if s == nil {
		s = l.newSlice()
		l.slices[id] = s
	}
	return s, l.kept, nil
}

// known returns a slice's side logs; nil: there are none.
func (l *Log) known(id ids.Slice) *slice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slices[id]
}

// Waiting lists the node's own side logs that are not merged yet.
func (l *Log) Waiting() (out []*pb.Waiting) {
	l.mu.Lock()
	list := maps.Clone(l.slices)
	l.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(list)) {
		s := list[id]
		s.mu.Lock()
		own := s.own
		s.mu.Unlock()
		if own == nil {
			continue
		}
		if waves, err := s.merges(own); err != nil || len(waves) > 0 {
			out = append(out, &pb.Waiting{Slice: uint32(id), Objects: uint32(len(slices.Concat(waves...))), WaitsNs: int64(l.o.Clock() - s.since)})
		}
	}
	return out
}

// merges lists what one of the sides has to merge.
func (s *slice) merges(side *tree.Side) ([][]ids.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return side.Merges()
}

// Unmerged reports whether a side log here has something of an object, or of one of these
// names in it, that the active is not known to have.
func (l *Log) Unmerged(o ids.Object, names [][]byte) bool {
	s := l.known(o.Slice())
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.copies {
		if c.HasOf(o, names) {
			return true
		}
	}
	return s.own != nil && s.own.HasOf(o, names)
}

// size is what all side logs take in memory.
func (l *Log) size() (n int) {
	l.mu.Lock()
	all := make([]*slice, 0, len(l.slices))
	for _, s := range l.slices {
		all = append(all, s)
	}
	l.mu.Unlock()
	for _, s := range all {
		s.mu.Lock()
		if s.own != nil {
			n += s.own.Size()
		}
		for _, c := range s.copies {
			n += c.Size() + c.coming.size()
		}
		s.mu.Unlock()
	}
	return n
}

// KeepsAny reports whether any side log here has something, merged or not.
func (l *Log) KeepsAny() bool { return l.size() > 0 }

// View returns the state of a slice with what its side logs have; nil where there are
// none. Each reading of it is of one moment, two may be of two.
func (l *Log) View(id ids.Slice) tree.View {
	s := l.known(id)
	if s == nil {
		return nil
	}
	return view{under{l, s, id}}
}

// view reads side logs while they may change.
type view struct{ under }

// now is what readers are shown now.
func (v view) now() tree.View {
	out := v.l.o.Committed(v.id)
	for _, c := range v.s.copies {
		out = tree.Shown(c.Side, out)
	}
	if v.s.own != nil {
		out = tree.Shown(v.s.own, out)
	}
	return out
}

// Get implements tree.View.
func (v view) Get(key []byte) ([]byte, bool, error) {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.now().Get(key)
}

// Scan implements tree.View. fn must not read the same view.
func (v view) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	return v.now().Scan(from, to, fn)
}

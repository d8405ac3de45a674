// Package recovery keeps a client's cache folder, and commits what an earlier
// process left in its write journal. An object with such writes is not opened
// before it is decided what becomes of them: the engine shows them, or they are
// committed, or they are parked as a conflict copy. Until then they stay in the
// journal. The package decides nothing about files that this process writes.
package recovery

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/clients/route"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// tryAgainAfter is the pause before an object is tried again whose active did not
// answer.
const tryAgainAfter = 2 * time.Second

// Calls asks actives; a *calls.Sender is one.
type Calls interface {
	Fetch(ctx context.Context, o ids.Object, want calls.Wanted) (*pb.Attr, error)
	Operate(ctx context.Context, o calls.Operation) (*pb.OperateResponse, ids.Node, error)
}

var _ Calls = (*calls.Sender)(nil)

// Options set up a Recoverer. None but Folder may be missing.
type Options struct {
	Folder    *Folder         // nil: the client has none
	Context   context.Context // ends with the client
	OpTimeout time.Duration
	Calls     Calls
	// Engine returns the content engine, once there are files.
	Engine func() *content.Engine
	// MakeApart makes a file of which its directory's slice takes no more.
	MakeApart func(context.Context, *pb.Create, *pb.Principal) (*pb.Attr, error)
	// Spawn runs a function in a goroutine that the client joins. Remotely returns
	// the context for calls on behalf of one request.
	Spawn    func(func()) bool
	Remotely func(context.Context) (context.Context, context.CancelFunc)
	Logger   *slog.Logger
}

// Recoverer recovers what an earlier process left. It is safe for use by many
// goroutines; its mutex is held over no call.
type Recoverer struct {
	opt     Options
	waiting waiting
}

// New returns a Recoverer that waits for nothing.
func New(o Options) *Recoverer { return &Recoverer{opt: o} }

// Recover commits what an earlier process left in the folder's journal. It returns
// when it is decided what becomes of each object, so that all reads are right, or
// when ctx ends. The rest goes on in the background, and opens of such an object
// wait. It is called once.
func (r *Recoverer) Recover(ctx context.Context) {
	f := r.opt.Folder
	if f == nil || len(f.left) == 0 {
		return
	}
	left := f.left
	f.left = nil
	r.waiting.begin(left)
	for _, l := range left { // one goroutine each: those of a slice that is away hold up no others
		r.opt.Spawn(func() { r.object(l) })
	}
	r.waiting.awaitAll(ctx)
}

// Await returns when an object may be opened, within the limit of one operation.
func (r *Recoverer) Await(ctx context.Context, o ids.Object) error {
	if r.waiting.count.Load() == 0 {
		return nil
	}
	out, cancel := r.opt.Remotely(ctx)
	defer cancel()
	return r.waiting.await(out, o)
}

// Waiting returns the objects that it is not decided about.
func (r *Recoverer) Waiting() []ids.Object { return r.waiting.list() }

// Close gives the folder back, once nothing uses it any more.
func (r *Recoverer) Close() error {
	if r.opt.Folder == nil {
		return nil
	}
	return r.opt.Folder.Close()
}

// object recovers an object, trying again while its active does not answer.
func (r *Recoverer) object(l content.Leftover) {
	o, last := l.Object, l.Writes[len(l.Writes)-1].Number
	defer r.waiting.decided(o)
	r.opt.Logger.Info("writes that a crash left behind are being committed", logattr.Object(o), slog.Int("writes", len(l.Writes)))
	for {
		err := r.try(o, &l)
		if err == nil {
			r.opt.Folder.log.Forget(o, last) // what is written since it was decided stays
			return
		}
		r.opt.Logger.Warn("writes that a crash left behind stay in the journal", logattr.Object(o), logattr.Err(err))
		select {
		case <-time.After(tryAgainAfter):
		case <-r.opt.Context.Done():
			return
		}
	}
}

// try makes one attempt for what the journal has under an object. What is done of
// it stays done in l.
func (r *Recoverer) try(was ids.Object, l *content.Leftover) error {
	ctx, cancel := context.WithTimeout(r.opt.Context, r.opt.OpTimeout)
	err := r.remake(ctx, l)
	cancel()
	if err != nil || len(l.Writes) == 0 {
		return err
	}
	l.LoggedAs = was
	// Once it is decided, the engine goes on by itself.
	return r.opt.Engine().Recover(r.opt.Context, *l, content.Recovery{As: calls.Decode, Park: r.opt.Folder.park, Decided: func() { r.waiting.decided(was) }})
}

// remake makes a file of which a crash kept its active from hearing, if it has
// not; what was written goes to the object that it then is. Where its name was
// taken since, the writes find no object, and are parked.
func (r *Recoverer) remake(ctx context.Context, l *content.Leftover) error {
	var req pb.OperateRequest
	at := slices.IndexFunc(l.Writes, func(w content.Numbered) bool { return w.Kind == content.WriteCreate })
	if at < 0 {
		return nil
	}
	data, rest := l.Writes[at].Data, slices.Delete(slices.Clone(l.Writes), at, at+1)
	if err := proto.Unmarshal(data, &req); err != nil || req.Operation.GetCreate() == nil {
		return fault.Wrap(fault.Corrupt, "recovery.remake", l.Object.String(), err)
	}
	a, err := r.opt.Calls.Fetch(ctx, l.Object, calls.Wanted{Content: true})
	switch {
	case err == nil && a.Size == 0 && a.Version == a.Change:
		l.Known, l.Writes = max(l.Known, a.Version), rest // only its answer was lost
		return nil
	case err == nil:
		l.Writes = rest
		return nil
	case !fault.Is(err, fault.Stale) && !fault.Is(err, fault.NotFound):
		return err
	}
	// A new ID: the old one may have been in use for a moment.
	create := req.Operation.GetCreate()
	create.Object = 0
	resp, _, err := r.opt.Calls.Operate(ctx, calls.Operation{Slice: l.Object.Slice(), Principal: req.Principal, Op: req.Operation})
	attr := resp.GetResult().GetAttr()
	if fault.Is(err, fault.Closed) && !calls.IsUnknown(err) {
		attr, err = r.opt.MakeApart(ctx, create, req.Principal)
	}
	switch {
	case err == nil:
		l.Writes = rest
		l.Object, l.Known = ids.Object(attr.GetObject()), attr.GetVersion()
	case calls.IsUnknown(err) || route.MayComeLater(err):
		return err // it stays in the journal, and is tried again
	default:
		l.Writes = rest
		r.opt.Logger.Warn("a file that a crash left behind cannot be made", slog.String("name", string(create.Name)), logattr.Err(err))
	}
	return nil
}

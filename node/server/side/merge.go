package side

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/logattr"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/store/pack"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

const (
	// again is after how long a merge is tried again that did not get through.
	again = 500 * time.Millisecond
	// sendFor bounds one merge on its way, and putFor one call with content. An active
	// that is away is often found out only by the first.
	sendFor, putFor = 2 * time.Second, 30 * time.Second
	// refusedFor is how long a change that the active refused waits until it is sent
	// again.
	refusedFor = time.Minute
	// inFlight bounds the merges under way of one slice.
	inFlight = 64
	// keepFor is how long a side log is kept at most until the copy shows what was
	// merged: where there is no copy any more, it never does.
	keepFor = 10 * time.Second
	// bodyBytes is how much content goes with a merge; more goes ahead of it, in
	// calls of putBytes.
	bodyBytes = 64 << 10
	putBytes  = 1 << 20
)

// Run merges until the context ends.
func (l *Log) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		}
		for l.mergeAll(ctx) && pause(ctx, again) {
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// mergeAll tries every slice once, and reports whether something is left.
func (l *Log) mergeAll(ctx context.Context) bool {
	l.mu.Lock()
	list := slices.Sorted(maps.Keys(l.slices))
	l.mu.Unlock()
	var group errgroup.Group
	group.SetLimit(8)
	var mu sync.Mutex
	left := false
	for _, id := range list {
		group.Go(func() error {
			done, err := l.mergeSlice(ctx, id)
			if err != nil && ctx.Err() == nil {
				l.o.Logger.Debug("a side log is not merged yet", logattr.Slice(id), logattr.Err(err))
			}
			mu.Lock()
			defer mu.Unlock()
			left = left || !done
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	return left
}

// mergeSlice merges what there is of a slice, and forgets it once nothing is left and
// the copy shows it.
func (l *Log) mergeSlice(ctx context.Context, id ids.Slice) (done bool, err error) {
	s := l.known(id)
	if s == nil {
		return true, nil
	}
	l.catchUp(ctx, id, s)
	if err := l.settle(ctx, id, s); err != nil && ctx.Err() == nil {
		l.o.Logger.Debug("what is merged of a side log is kept for now", logattr.Slice(id), logattr.Err(err))
	}
	done = true
	for _, own := range l.mine(id, s) {
		over, e := l.mergeSide(ctx, own, s)
		if done = done && over; e != nil {
			err = e
		}
	}
	return done && l.known(id) == nil, err
}

// mine lists the side logs of a slice that this node merges: its own, and the copies
// of those whose owners are away for long.
func (l *Log) mine(id ids.Slice, s *slice) (out []logID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own != nil {
		out = append(out, logID{id, l.o.Self})
	}
	now := l.o.Clock()
	for n := range s.copies {
		if l.o.Caller.Connected(string(n), wire.Operation) {
			delete(s.away, n)
		} else if since, is := s.away[n]; !is {
			s.away[n] = now
		} else if now-since >= l.o.AdoptAfter {
			out = append(out, logID{id, n})
		}
	}
	return out
}

func (l *Log) mergeSide(ctx context.Context, id logID, s *slice) (done bool, err error) {
	s.mu.Lock()
	side := l.side(s, id)
	s.mu.Unlock()
	waves, err := s.merges(side)
	if err != nil {
		return false, err
	}
	if len(waves) == 0 {
		return l.forget(ctx, id, s)
	}
	for _, wave := range waves {
		var group errgroup.Group
		group.SetLimit(inFlight)
		for _, o := range wave {
			group.Go(func() error { return l.mergeOne(ctx, id, s, side, o) })
		}
		if err := group.Wait(); err != nil {
			return false, err
		}
	}
	return false, nil // what came meanwhile is next
}

// forget drops a side log once the copy of its slice shows what was merged, here and at
// the members that have it too.
func (l *Log) forget(ctx context.Context, id logID, s *slice) (bool, error) {
	p := l.o.Published(id.slice)
	s.mu.Lock()
	until, merged := s.until, s.merged
	s.mu.Unlock()
	if p.IsCopy(l.o.Clock()) && ids.Serial(p.Applied.Load()) < until && l.o.Clock() < merged+keepFor {
		return false, nil
	}
	req := &pb.SideCopyRequest{Slice: uint32(id.slice), Owner: string(id.owner), Serial: uint64(until), Ends: true}
	if err := l.tellAll(ctx, id.slice, id.owner, req); err != nil {
		return false, err
	}
	return l.drop(id, s)
}

// drop forgets a side log, unless something came meanwhile that is to be merged.
func (l *Log) drop(id logID, s *slice) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if id.owner == l.o.Self {
		if s.own == nil {
			return true, nil
		}
		if waves, err := s.own.Merges(); err != nil || len(waves) > 0 {
			return false, err
		}
	}
	if l.kept != nil {
		if err := l.kept.drop(id); err != nil {
			return false, err
		}
	}
	if id.owner == l.o.Self {
		s.own = nil
		clear(s.has)
	}
	delete(s.copies, id.owner)
	delete(s.away, id.owner)
	if s.own == nil && len(s.copies) == 0 {
		s.gone = true
		delete(l.slices, id.slice)
	}
	l.o.Logger.Info("a side log was merged", logattr.Slice(id.slice))
	return true, nil
}

// mergeOne sends the active what a side did to one object.
func (l *Log) mergeOne(ctx context.Context, id logID, s *slice, side *tree.Side, o ids.Object) error {
	for _, above := range []bool{false, true} {
		s.mu.Lock()
		if l.o.Clock() < s.refused[o] {
			s.mu.Unlock()
			return nil
		}
		m, body, err := side.Merge(o, l.o.Nodes, id.owner, l.o.HLC.Now().Wall().UnixNano(), above)
		waits := err == nil && m != nil && s.waits(id.owner, m, l.o.Committed(id.slice))
		s.mu.Unlock()
		if err != nil || m == nil || waits {
			return err
		}
		if !l.allKnow(id.slice, version.MergedVersions) {
			m.SideVersion = 0
		}
		if !l.allKnow(id.slice, version.MovedNames) {
			m.Given = nil
			for _, n := range m.Gained {
				n.ReplacedLives = false
			}
		}
		r, serial, err := l.send(ctx, id.slice, m, body)
		switch {
		case err != nil:
			return err
		case fault.Kind(r.Kind) == fault.Stale && !above:
			continue // a directory is gone there: say where it was
		case r.Kind != 0:
			l.o.Logger.Warn("a change of a side log cannot be merged, and is kept", logattr.Slice(id.slice), logattr.Object(o),
				logattr.Err(fault.E(fault.Kind(r.Kind), "side.mergeOne", o.String(), r.Message)))
			s.mu.Lock()
			s.refused[o] = l.o.Clock() + refusedFor
			s.mu.Unlock()
			return nil
		}
		return l.note(s, id, side, m, r, serial)
	}
	return nil
}

// waits reports whether the merge of an object is to wait for that of another side log,
// over which it was made.
func (s *slice) waits(owner ids.Node, m *pb.Merge, base tree.View) bool {
	if m.Fresh || ids.Serial(m.BaseVersion) < tree.FirstOfSide {
		return false
	}
	if a, err := tree.GetAttr(base, ids.Object(m.Object), false, false); err == nil && a.SideVersion >= m.BaseVersion {
		return false
	}
	_, others := s.beside(owner)(tree.RecordKey(ids.Object(m.Object)), 0)
	return others
}

// allKnow reports whether the programs of all members of a slice know a feature level.
func (l *Log) allKnow(id ids.Slice, level int) bool {
	row, _ := l.o.Row(id)
	return !slices.ContainsFunc(row.Members, func(m geoconfig.Member) bool { return l.o.Feature(m.Node) < level })
}

// note keeps that an object was merged.
func (l *Log) note(s *slice, id logID, side *tree.Side, m *pb.Merge, r *pb.Result, serial ids.Serial) error {
	k := l.onDisk()
	s.mu.Lock()
	defer s.mu.Unlock()
	changes, err := side.Merged(m, r, serial)
	if err != nil {
		return err
	}
	if err := k.put(id, changes); err != nil {
		return err
	}
	side.Apply(changes)
	s.until, s.merged = max(s.until, serial), l.o.Clock()
	return nil
}

// send sends a merge to the slice's active, with the content that it lacks.
func (l *Log) send(ctx context.Context, id ids.Slice, m *pb.Merge, body []byte) (*pb.Result, ids.Serial, error) {
	op := &pb.Operation{TimeNs: m.AtNs, Op: &pb.Operation_Merge{Merge: m}}
	if here := l.o.Published(id); here.Serves(l.o.Clock()) {
		ctx, cancel := context.WithTimeout(ctx, putFor)
		defer cancel()
		a, err := l.o.Propose(ctx, id, op, body)
		r := a.Result
		if err == nil && r == nil {
			r = &pb.Result{}
			err = proto.Unmarshal(a.Encoded, r)
		}
		return r, a.Serial, fault.Wrap(fault.IO, "side.send", "", err)
	}
	row, ok := l.o.Row(id)
	if !ok || row.Active == l.o.Self || row.Active == "" {
		return nil, 0, fault.E(fault.NotActive, "side.send", "", "no node acts for the slice now")
	}
	body, err := l.sendContent(ctx, row.Active, id, m, body)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	var answer pb.OperateResponse
	req := &pb.OperateRequest{Slice: uint32(id), Operation: op, Hlc: uint64(l.o.HLC.Now())}
	b, err := l.o.Caller.Call(ctx, string(row.Active), wire.Operation, method.Operate, req, [][]byte{body}, &answer)
	b.Release()
	if err == nil && answer.Refusal != nil {
		err = fault.E(fault.Kind(answer.Refusal.Kind), "side.send", string(row.Active), answer.Refusal.Message)
	}
	return answer.GetResult(), ids.Serial(answer.GetReceipt().GetSerial()), err
}

// sendContent brings the chunks of a file's content to the active. A little content
// goes in the merge's body, which it returns.
func (l *Log) sendContent(ctx context.Context, to ids.Node, id ids.Slice, m *pb.Merge, body []byte) ([]byte, error) {
	list, total, whole, err := l.contentOf(m.Content)
	switch {
	case err != nil || total == 0:
		return body, err
	case total > bodyBytes || !whole:
		return body, l.put(ctx, to, id, list, l.chain(id, to))
	}
	bodies, err := l.read(ctx, list)
	for _, e := range m.Content.Extents {
		part := bodies[slices.Index(list, chunk.Address(e.GetChunk()))]
		e.Source, e.ChunkSize = &pb.Extent_BodyOffset{BodyOffset: uint64(len(body))}, 0
		body = append(body, part...)
	}
	return body, err
}

// contentOf lists the chunks that a commit names, and how many bytes they have. whole
// says that it names no part of one.
func (l *Log) contentOf(c *pb.Commit) (list []chunk.Address, total int, whole bool, err error) {
	known := map[chunk.Address]struct{}{}
	whole = true
	for _, e := range c.GetExtents() {
		if e.GetChunk() == nil {
			continue
		}
		a, err := chunk.AddressOf(e.GetChunk())
		if err != nil {
			return nil, 0, false, err
		}
		n, ok := l.o.Chunks.Length(a)
		if !ok {
			return nil, 0, false, fault.E(fault.Missing, "side.contentOf", a.String(), "a chunk of the side log is not on the disk")
		}
		whole = whole && e.ChunkOffset == 0 && e.Length == uint64(n)
		total += n
		if _, is := known[a]; !is {
			known[a] = struct{}{}
			list = append(list, a)
		}
	}
	return list, total, whole, nil
}

func (l *Log) read(ctx context.Context, list []chunk.Address) ([][]byte, error) {
	ranges, bodies := make([]pack.Range, len(list)), make([][]byte, len(list))
	for i, a := range list {
		n, _ := l.o.Chunks.Length(a)
		bodies[i] = make([]byte, n)
		ranges[i] = pack.Range{Address: a, Into: bodies[i]}
	}
	return bodies, l.o.Chunks.Read(ctx, ranges)
}

// chain lists the members to which the active passes chunks on.
func (l *Log) chain(id ids.Slice, to ids.Node) (out []string) {
	row, _ := l.o.Row(id)
	for _, n := range row.Normals() {
		if n != to && n != l.o.Self {
			out = append(out, string(n))
		}
	}
	return out
}

// put stores chunks at a member that it lacks, and has it pass them on.
func (l *Log) put(ctx context.Context, to ids.Node, id ids.Slice, list []chunk.Address, chain []string) error {
	var have pb.HaveResponse
	ask := &pb.HaveRequest{Slice: uint32(id), Addresses: chunk.AppendAddresses(nil, list...)}
	part, cancel := context.WithTimeout(ctx, sendFor)
	defer cancel()
	b, err := l.o.Caller.Call(part, string(to), wire.Chunk, method.Have, ask, nil, &have)
	b.Release()
	if err != nil {
		return err
	}
	var lacks []chunk.Address
	for i, a := range list {
		if i/8 < len(have.Missing) && have.Missing[i/8]&(1<<(i%8)) != 0 {
			lacks = append(lacks, a)
		}
	}
	for len(lacks) > 0 {
		n, bytes := 0, 0
		for n < len(lacks) && (n == 0 || bytes < putBytes) {
			size, _ := l.o.Chunks.Length(lacks[n])
			bytes += size
			n++
		}
		if err := l.putSome(ctx, to, id, lacks[:n], chain); err != nil {
			return err
		}
		lacks = lacks[n:]
	}
	return nil
}

func (l *Log) putSome(ctx context.Context, to ids.Node, id ids.Slice, list []chunk.Address, chain []string) error {
	bodies, err := l.read(ctx, list)
	if err != nil {
		return err
	}
	req := &pb.PutRequest{Slice: uint32(id), Addresses: chunk.AppendAddresses(nil, list...), Chain: chain}
	for _, b := range bodies {
		req.Sizes = append(req.Sizes, uint32(len(b)))
	}
	ctx, cancel := context.WithTimeout(ctx, putFor)
	defer cancel()
	b, err := l.o.Caller.Call(ctx, string(to), wire.Chunk, method.Put, req, bodies, &pb.PutResponse{})
	b.Release()
	return err
}

package historytest

import (
	"context"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/tree"
)

const (
	// numbersAsked is how many IDs an actor asks for, and mostParts bounds the
	// operations of a batch.
	numbersAsked = 16
	mostParts    = 6
)

// batch has a few operations on names done at once. They are drawn without regard
// to what there is, and some of them reach other slices.
func (a *actor) batch(ctx context.Context, at int) {
	by, ok := a.fs.(*cartwheel.Client)
	if !ok { // a mount has no batches
		a.link(ctx, at)
		return
	}
	slice := a.places[at/namesEach].Slice()
	b := &pb.Batch{}
	var parts []*event
	for range 1 + a.rand.IntN(mostParts) {
		if op, e := a.part(slice); op != nil {
			b.Operations, parts = append(b.Operations, op), append(parts, e)
		}
	}
	if a.given[slice].left == 0 {
		b.Reserve = numbersAsked
	}
	var got *pb.Result
	result := a.run(ctx, event{object: namesObject, what: batch, at: at, parts: parts}, func(ctx context.Context) (err error) {
		if got, err = cartwheel.Batch(ctx, by, slice, b); err == nil && got.Kind != 0 {
			err = fault.E(fault.Kind(got.Kind), "history.batch", "", got.Message)
		}
		return err
	}, func(e *event) {
		if e.parts = e.parts[:min(len(got.GetResults()), len(parts))]; len(got.GetResults()) > len(parts) {
			e.value = "with more results than operations"
		}
		for i, p := range e.parts {
			p.result = resultOf(p, fault.Kind(got.Results[i].Kind))
		}
	})
	if result != done {
		return
	}
	for i, r := range got.Results {
		if resultOf(parts[i], fault.Kind(r.Kind)) == unknown {
			a.log.problem("client %d: part %d of a batch, %v: %v", a.id, i, parts[i], fault.Kind(r.Kind))
		}
	}
	if got.Numbers > 0 {
		a.given[slice] = given{got.First, uint64(got.Numbers)}
	}
}

// resultOf sorts what came of one operation of a batch; unknown is none that a
// correct system gives.
func resultOf(e *event, kind fault.Kind) outcome {
	switch {
	case kind == fault.None:
		return done
	case kind == fault.Exists && (e.what == create || e.what == link):
		return exists
	case kind == fault.NotFound && (e.what == unlink || e.what == rename || e.what == link), kind == fault.Stale && e.what == link:
		return missing
	}
	return unknown
}

// part draws one operation of a batch, most often on a directory of the slice.
func (a *actor) part(slice ids.Slice) (*pb.Operation, *event) {
	at, to := a.within(slice), a.within(slice)
	dir, name := uint64(a.places[at/namesEach]), []byte(cellName(at))
	e := &event{client: a.id, object: namesObject, at: at, ret: never}
	switch n := a.rand.IntN(10); {
	case n < 4:
		g := a.given[slice]
		if g.left == 0 || ids.Object(dir).Slice() != slice {
			return nil, nil
		}
		a.given[slice] = given{g.next + 1, g.left - 1}
		e.what, e.ino = create, g.next
		return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: dir, Name: name, Mode: tree.TypeRegular | 0o644, Object: e.ino}}}, e
	case n < 6:
		e.what = unlink
		return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: dir, Name: name}}}, e
	case n < 8 || len(a.known) == 0:
		e.what, e.to = rename, to
		return &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: dir, Name: name, NewDir: uint64(a.places[to/namesEach]), NewName: []byte(cellName(to))}}}, e
	}
	e.what, e.ino = link, a.known[a.rand.IntN(len(a.known))].Attr.Ino
	return &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: e.ino, Dir: dir, Name: name}}}, e
}

// within draws a cell, most often one whose directory is in a slice.
func (a *actor) within(slice ids.Slice) int {
	at := a.near()
	for range 8 {
		if a.places[at/namesEach].Slice() == slice {
			break
		}
		at = a.rand.IntN(dirs * namesEach)
	}
	return at
}

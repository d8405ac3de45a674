package advisory_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/lock"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/advisory"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
	"cartwheel.dev/node/server/reading"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
	"cartwheel.dev/node/wire/wiretest"
)

const slice, file = ids.RootSlice, ids.RootObject

// node is what stands around the server: a client may reach every object with
// a ticket, and its sessions are those in live.
type node struct {
	mu      sync.Mutex // guards below
	refuses bool
	live    map[uint64]bool
	granted []ids.Object
}

func (n *node) Valid(session, _ uint64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.live[session] {
		return fault.E(fault.Expired, "test", "", "no such session")
	}
	return nil
}

func (n *node) Opened(uint64, ids.Object) bool { return true }

func (n *node) Grant(_ uint64, _ ids.Slice, _ ids.Epoch, o ids.Object, _ pb.Grant_What) *pb.Grant {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.granted = append(n.granted, o)
	return nil
}

func (n *node) HasReached(_ *reading.Asker, _ ids.Object, ticket []byte) bool { return len(ticket) > 0 }

func (n *node) Reached(_ context.Context, _ *reading.Asker, o ids.Object, ticket []byte) error {
	if len(ticket) == 0 {
		return fault.E(fault.Permission, "test", o.String(), "no ticket")
	}
	return nil
}

func (n *node) Refused(id ids.Slice) *pb.Refusal {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refuses {
		return n.NotActive(id)
	}
	return nil
}

func (*node) NotActive(ids.Slice) *pb.Refusal {
	return &pb.Refusal{Kind: uint32(fault.NotActive)}
}

func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// rig is a server that a client asks over a connection.
type rig struct {
	*advisory.Server
	n      *node
	client *wire.Host
	id     string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	host, client := wiretest.Pair(t)
	n := &node{live: map[uint64]bool{1: true, 2: true}}
	began := time.Now()
	s := advisory.New(advisory.Options{
		Self: "a", Limits: lock.DefaultConfig(), Sessions: n, Reading: n, ClaimTime: time.Hour,
		Client: func(string) (*identity.Who, error) { return &identity.Who{User: "ann", Client: 7}, nil },
		Asker:  func(*identity.Who) reading.Asker { return reading.Asker{} },
		Clock:  func() time.Duration { return time.Since(began) },
		Go:     func(f func(context.Context)) { go f(context.Background()) },
	})
	host.Inline(method.Lock, s.Set)
	return &rig{Server: s, n: n, client: client, id: host.KeyID()}
}

// ask asks for a write lock of the whole file for one owner.
func (r *rig) ask(ctx context.Context, session, owner uint64, wait bool) (*pb.LockResponse, error) {
	answer := &pb.LockResponse{}
	_, err := r.client.Call(ctx, r.id, wire.Operation, method.Lock, &pb.LockRequest{Slice: uint32(slice), Client: 7, Session: session, Wait: wait, Ticket: []byte("t"),
		Lock: &pb.Lock{Object: uint64(file), Owner: owner, End: 1<<63 - 1, Type: uint32(lock.Write)}}, nil, answer)
	return answer, err
}

// waiter asks for a lock that another owner has, and returns once it waits.
func (r *rig) waiter(t *testing.T, session uint64) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		answer, err := r.ask(t.Context(), session, 2, true)
		switch {
		case err == nil && answer.Refusal != nil:
			err = fault.E(fault.Kind(answer.Refusal.Kind), "test", "", "refused")
		case err == nil && !answer.Granted:
			err = errors.New("not granted")
		}
		done <- err
	}()
	wiretest.Wait(t, "the request to wait", func() bool { _, waiting := r.Len(); return waiting == 1 })
	return done
}

func (r *rig) hold(t *testing.T, session uint64) {
	t.Helper()
	if answer, err := r.ask(t.Context(), session, 1, false); err != nil || !answer.Granted {
		t.Fatalf("the first lock: got %v (%v), want it granted", answer, err)
	}
}

func TestSet_RefusesWhatAnotherOwnerHas(t *testing.T) {
	r := newRig(t)
	r.hold(t, 1)
	if answer, err := r.ask(t.Context(), 1, 2, false); err != nil || answer.Granted || answer.Conflict.GetOwner() != 1 {
		t.Errorf("got %v (%v), want the conflict with owner 1", answer, err)
	}
	if _, err := r.ask(t.Context(), 3, 3, false); !fault.Is(err, fault.Expired) {
		t.Errorf("under a session that is over: got %v, want Expired", err)
	}
	r.n.set(func() { r.n.refuses = true })
	if answer, err := r.ask(t.Context(), 1, 1, false); err != nil || answer.Refusal == nil {
		t.Errorf("got %v (%v) where the node does not act, want a refusal", answer, err)
	}
}

func TestEndSession_WakesWhoWaitsForItsLocks(t *testing.T) {
	r := newRig(t)
	r.hold(t, 1)
	done := r.waiter(t, 1)
	r.EndSession(7, 2) // not the one that has the lock
	if _, waiting := r.Len(); waiting != 1 {
		t.Error("the end of another session woke the request")
	}
	r.EndSession(7, 1)
	if err := <-done; !fault.Is(err, fault.Expired) {
		t.Errorf("a request of the session that ended: got %v, want Expired", err)
	}
	if held, waiting := r.Len(); held+waiting != 0 {
		t.Errorf("%d held and %d waiting are left, want none", held, waiting)
	}
}

func TestFollowRole_DropsLocksOnlyOfAFormerActive(t *testing.T) {
	r := newRig(t)
	r.hold(t, 1)
	done := r.waiter(t, 1)
	r.FollowRole(&replica.Role{Slice: slice, Kind: replica.RoleActive, Row: &geoconfig.SliceRow{Active: "a"}}, true)
	if err := <-done; !fault.Is(err, fault.NotActive) {
		t.Errorf("a request that waits while the node stops: got %v, want NotActive", err)
	}
	if held, _ := r.Len(); held != 1 {
		t.Errorf("%d locks are held while the node stays the active, want 1", held)
	}
	r.FollowRole(&replica.Role{Slice: slice, Kind: replica.RoleStandby, Row: &geoconfig.SliceRow{Active: "b"}}, true)
	if held, _ := r.Len(); held != 0 {
		t.Errorf("%d locks are held by a former active, want 0", held)
	}
}

func TestClaim_AnswersWhatIsLost(t *testing.T) {
	r := newRig(t)
	r.FollowRole(&replica.Role{Slice: slice, Kind: replica.RoleLeading}, false)
	l := func(o ids.Object, owner uint64) *pb.Lock {
		return &pb.Lock{Object: uint64(o), Owner: owner, End: 9, Type: uint32(lock.Write)}
	}
	ticket := []*pb.Ticket{{Object: uint64(file), Ticket: []byte("t")}}
	answer, err := r.Claim(t.Context(), &identity.Who{Client: 7}, &pb.ClaimRequest{Slice: uint32(slice), Session: 1, Tickets: ticket,
		Locks: []*pb.Lock{l(file, 1), l(file, 2), l(file+1, 1)}, Open: []uint64{uint64(file), uint64(file + 1)}})
	if err != nil {
		t.Fatal(err)
	}
	lost := answer.(*pb.ClaimResponse).Lost
	if len(lost) != 2 || lost[0].Object != uint64(file+1) || lost[1].Owner != 2 {
		t.Errorf("got %v, want the lock without a ticket and the second of two that conflict", lost)
	}
	if held, _ := r.Len(); held != 1 || !slices.Equal(r.n.granted, []ids.Object{file}) {
		t.Errorf("%d locks are held and %v leased, want 1 and the file with a ticket", held, r.n.granted)
	}
}

func TestMayCommit_FailsAfterALockWasLost(t *testing.T) {
	r := newRig(t)
	r.hold(t, 1)
	commit := func(client, session uint64) error {
		return r.MayCommit(&operate.Operation{Client: client, Session: session,
			Op: &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: uint64(file)}}}})
	}
	if err := commit(7, 1); err != nil {
		t.Errorf("a commit under the session with the lock: %v", err)
	}
	r.EndSession(7, 1)
	if err := commit(7, 1); !fault.Is(err, fault.LostLock) {
		t.Errorf("got %v for a commit after the lock was lost, want LostLock", err)
	}
	if err := commit(8, 1); err != nil {
		t.Errorf("another client's commit: %v", err)
	}
	batch := func(objects ...uint64) error {
		b := &pb.Batch{Operations: []*pb.Operation{{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{}}}}}
		for _, o := range objects {
			b.Operations = append(b.Operations, &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: o}}})
		}
		return r.MayCommit(&operate.Operation{Client: 7, Session: 1, Op: &pb.Operation{Op: &pb.Operation_Batch{Batch: b}}})
	}
	if err := batch(uint64(file)+1, uint64(file)); !fault.Is(err, fault.LostLock) {
		t.Errorf("got %v for a batch with a commit after the lock was lost, want LostLock", err)
	}
	if err := batch(uint64(file) + 1); err != nil {
		t.Errorf("a batch with a commit of another file: %v", err)
	}
}

func TestHolds_ReleaseOnlyWhatAbsentClientsHold(t *testing.T) {
	view := holds{{file, 7}, {file + 1, 7}, {file, 8}}
	var released [][2]uint64
	h := &advisory.Holds{
		Committed: func(ids.Slice) tree.View { return view },
		Live:      func(client uint64) bool { return client == 8 },
		Logger:    slog.New(slog.DiscardHandler),
		Propose: func(_ context.Context, id ids.Slice, op *pb.Operation) (operate.Answer, error) {
			if hold := op.GetHold(); id == slice && hold.Release {
				released = append(released, [2]uint64{hold.Object, hold.Client})
			}
			return operate.Answer{}, nil
		},
	}
	h.ReleaseAbsent(t.Context(), slice)
	if want := [][2]uint64{{uint64(file), 7}, {uint64(file + 1), 7}}; !slices.Equal(released, want) {
		t.Errorf("got %v, want %v", released, want)
	}
}

// holds are the files of a slice that clients hold, by client and file.
type holds []struct {
	file   ids.Object
	client uint64
}

// keyHeld begins the keys of package tree that say which client holds what.
const keyHeld = 'H'

func (h holds) Get([]byte) ([]byte, bool, error) { return nil, false, nil }

func (h holds) Scan(from, to []byte, fn func(key, value []byte) bool) error {
	for _, x := range h {
		key := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64([]byte{keyHeld}, x.client), uint64(x.file))
		if bytes.Compare(key, from) >= 0 && bytes.Compare(key, to) < 0 && !fn(key, []byte{1}) {
			break
		}
	}
	return nil
}

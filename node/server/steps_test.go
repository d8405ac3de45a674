package server_test

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// TestSteps_PeerTakesNoneOfASlicesOwnIntents sends the steps that a slice's own
// coordinator takes from another node: all are refused, so no peer can begin,
// decide or finish what the slice's active coordinates. Steps of intents of
// another slice are taken.
func TestSteps_PeerTakesNoneOfASlicesOwnIntents(t *testing.T) {
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	row, err := c.Row(ctx, ids.RootSlice)
	if err != nil {
		t.Fatal(err)
	}
	peer := c.Nodes[0]
	if peer.ID() == row.Active {
		peer = c.Nodes[1]
	}
	send := func(i tree.Intent, phase pb.Step_Phase) (*pb.OperateResponse, error) {
		answer := &pb.OperateResponse{}
		step := &pb.Step{Intent: uint64(i), Phase: phase}
		b, err := peer.Server().Host().Call(ctx, string(row.Active), wire.Operation, method.Operate,
			&pb.OperateRequest{Slice: uint32(row.ID), Operation: &pb.Operation{Op: &pb.Operation_Step{Step: step}}}, nil, answer)
		b.Release()
		return answer, err
	}
	own, others := tree.NewIntent(row.ID, 5), tree.NewIntent(row.ID+1, 5)
	for _, phase := range []pb.Step_Phase{pb.Step_PREPARE, pb.Step_COMMIT, pb.Step_ABORT, pb.Step_FINISH} {
		if answer, err := send(own, phase); !fault.Is(err, fault.Permission) {
			t.Errorf("%v of the slice's own intent: got %v, %v, want it refused", phase, answer, err)
		}
	}
	for _, i := range []tree.Intent{0, own, others} {
		if answer, err := send(i, pb.Step_BEGIN); !fault.Is(err, fault.Permission) {
			t.Errorf("BEGIN of %v: got %v, %v, want it refused", i, answer, err)
		}
	}
	if answer, err := send(others, pb.Step_ABORT); err != nil || answer.Refusal != nil || answer.Result.GetKind() != 0 {
		t.Errorf("ABORT of another slice's intent: got %v, %v", answer, err)
	}
}

// TestSteps_PrepareNothingThatWasAborted has an intent wait for the lock of another one, and
// be aborted meanwhile. Once the lock is given back, nothing is locked.
func TestSteps_PrepareNothingThatWasAborted(t *testing.T) {
	t.Parallel()
	c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	active := c.Active(ids.RootSlice)
	peer := c.Nodes[0]
	if peer == active {
		peer = c.Nodes[1]
	}
	send := func(i tree.Intent, phase pb.Step_Phase, detail []byte) error {
		answer := &pb.OperateResponse{}
		b, err := peer.Server().Host().Call(ctx, string(active.ID()), wire.Operation, method.Operate, &pb.OperateRequest{Slice: 1,
			Operation: &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{Intent: uint64(i), Phase: phase, Detail: detail}}}}, nil, answer)
		b.Release()
		if err == nil && answer.Result.GetKind() != 0 {
			err = fault.E(fault.Kind(answer.Result.Kind), "", "", answer.Result.Message)
		}
		return err
	}
	must := func(i tree.Intent, phase pb.Step_Phase, detail []byte) {
		t.Helper()
		if err := send(i, phase, detail); err != nil {
			t.Fatalf("%v of %v: %v", phase, i, err)
		}
	}
	lock := append(binary.BigEndian.AppendUint64([]byte{1}, uint64(ids.RootObject)), "\x04name"...)
	for round := range ids.Serial(20) { // the abort may come before the prepare, too
		first, second := tree.NewIntent(ids.RootSlice+1, 5+2*round), tree.NewIntent(ids.RootSlice+1, 6+2*round)
		must(first, pb.Step_PREPARE, lock)
		late := make(chan error, 1)
		go func() { late <- send(second, pb.Step_PREPARE, lock) }()
		must(second, pb.Step_ABORT, nil)
		if err := <-late; !fault.Is(err, fault.Canceled) {
			t.Fatalf("a step that was aborted while it waited: got %v, want it canceled", err)
		}
		must(first, pb.Step_ABORT, nil)
	}
	do(ctx, t, c.Connect("root"), ids.RootSlice, create("name")) // nothing holds the name
}

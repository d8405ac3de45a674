package server_test

import (
	"context"
	"maps"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/chunk"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
	"cartwheel.dev/node/wire"
)

// accessRow is one method, or one operation: how each role asks for it, for
// something of bob's where it is about an object, and how that must end.
type accessRow struct {
	name   string
	method wire.Method
	call   func(a *asker, x *bobs) error
	want   map[role]fault.Kind
}

const (
	done    = fault.None
	refused = fault.Permission
	unknown = fault.Unauthorized
)

// outcomes are those of the known roles; strangers and former nodes get nothing.
func outcomes(withoutRight, withRightOf, hostForUser, root, node fault.Kind) map[role]fault.Kind {
	return map[role]fault.Kind{unknownKey: unknown, formerNode: unknown, noRight: withoutRight, withRight: withRightOf, trustedFor: hostForUser, admin: root, peer: node}
}

// Who may what, by kinds of methods.
var (
	byRight     = outcomes(refused, done, refused, done, done) // modes and ACLs decide
	byHost      = outcomes(refused, done, done, done, done)    // and a trusted host's kernel is believed
	anybody     = outcomes(done, done, done, done, done)
	clientsOnly = outcomes(done, done, done, done, unknown)
	nodesOnly   = outcomes(unknown, unknown, unknown, unknown, done)
	adminsOnly  = outcomes(refused, refused, refused, done, refused)
)

// but is a table with one role's outcome changed.
func but(want map[role]fault.Kind, r role, k fault.Kind) map[role]fault.Kind {
	out := maps.Clone(want)
	out[r] = k
	return out
}

// asks is a call of which only the error counts.
func asks(class wire.Class, m wire.Method, req, answer proto.Message) func(*asker, *bobs) error {
	return func(a *asker, _ *bobs) error { return a.ask(class, m, proto.Clone(req), proto.Clone(answer)) }
}

func methodRows() []accessRow {
	op := wire.Operation
	return []accessRow{
		{"hello", method.Hello, sayHello, clientsOnly},
		{"keep-alive", method.KeepAlive, func(a *asker, _ *bobs) error {
			var answer pb.KeepAliveResponse
			return a.ask(wire.Beacon, method.KeepAlive, &pb.KeepAliveRequest{}, &answer)
		}, clientsOnly},
		{"claim", method.Claim, claims, but(clientsOnly, peer, fault.Expired)},
		{"lock", method.Lock, locksFile, but(byHost, peer, unknown)},
		{"resolve", method.Resolve, resolves, byRight},
		{"list", method.List, func(a *asker, x *bobs) error {
			return a.ask(op, method.List, &pb.ListRequest{Header: a.header(x.ticket(x.dir)), Dir: x.dir}, &pb.ListResponse{})
		}, byRight},
		{"getattr", method.GetAttr, func(a *asker, x *bobs) error {
			var answer pb.GetAttrResponse
			err := a.ask(op, method.GetAttr, &pb.GetAttrRequest{Header: a.header(x.ticket(x.file)), Object: x.file, Content: true, Xattrs: true}, &answer)
			if err == nil && answer.Attr.Content.GetWithheld() {
				err = fault.E(refused, "", "", "the content is withheld")
			}
			return err
		}, byRight},
		{"history", method.History, func(a *asker, x *bobs) error {
			return a.ask(op, method.History, &pb.HistoryRequest{Header: a.header(x.ticket(x.dir)), Object: x.dir, Name: []byte("x")}, &pb.HistoryResponse{})
		}, byRight},
		{"files", method.Files, files, byRight},
		{"statfs", method.Statfs, asks(op, method.Statfs, &pb.StatfsRequest{}, &pb.StatfsResponse{}), anybody},
		{"place", method.Place, asks(op, method.Place, &pb.PlaceRequest{Parent: uint64(ids.RootObject)}, &pb.PlaceResponse{}), anybody},
		{"rows", method.Rows, asks(op, method.Rows, &pb.RowsRequest{AllSlices: true, Nodes: true, Sites: true}, &pb.RowsResponse{}), anybody},
		{"have", method.Have, has, byHost},
		{"put", method.Put, func(a *asker, x *bobs) error {
			_, err := a.call(a.w.node, wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: x.chunk[:], Sizes: []uint32{uint32(len(x.body))}}, x.body, &pb.PutResponse{})
			return err
		}, anybody},
		{"get", method.Get, gets, byHost},
		{"get for a site", method.Get, func(a *asker, x *bobs) error {
			return a.ask(wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Parts: []*pb.GetRequest_Part{{Length: 100}},
				Object: x.file, Root: x.root[:], Height: x.height, Readable: x.readable, Sharing: pb.Sharing_SITE}, &pb.GetResponse{})
		}, byHost},
		{"get from a source", method.Get, getsShared(pb.Sharing_SOURCE), outcomes(refused, refused, refused, refused, done)},
		{"get what is held", method.Get, getsShared(pb.Sharing_HELD), outcomes(refused, refused, refused, refused, done)},
		{"range", method.Range, func(a *asker, x *bobs) error {
			return a.ask(op, method.Range, &pb.RangeRequest{Slice: 1, Root: x.root[:], Height: x.height, Length: 100, Data: true, Object: x.file, Readable: x.readable}, &pb.RangeResponse{})
		}, byHost},
		{"status", method.Status, asks(op, method.Status, &pb.StatusRequest{}, &pb.StatusResponse{}), anybody},
		{"slices", method.SliceList, asks(op, method.SliceList, &pb.SliceListRequest{}, &pb.SliceListResponse{}), anybody},
		{"where", method.Where, func(a *asker, x *bobs) error {
			return a.ask(op, method.Where, &pb.WhereRequest{Object: x.file, Ticket: x.ticket(x.file)}, &pb.WhereResponse{})
		}, byHost},
		{"hand-over", method.HandOver, func(a *asker, _ *bobs) error { // who may is told that there is no such slice
			err := a.ask(op, method.HandOver, &pb.HandOverRequest{Slice: 9999}, &pb.HandOverResponse{})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		}, but(adminsOnly, peer, done)}, // a node orders it for the accounts of its API
		{"drop-caches", method.DropCaches, asks(op, method.DropCaches, &pb.DropCachesRequest{}, &pb.DropCachesResponse{}), adminsOnly},
		{"scrub", method.Scrub, asks(op, method.Scrub, &pb.ScrubRequest{}, &pb.ScrubResponse{}), but(adminsOnly, peer, done)},
		{"take part in a drill", method.Drill, asks(op, method.Drill, &pb.DrillRequest{Id: "x", Kind: "geo-config", ForNs: 1, Check: true}, &pb.DrillResponse{}), adminsOnly},
		{"drills", method.Drills, asks(op, method.Drills, &pb.DrillsRequest{}, &pb.DrillsResponse{}), adminsOnly},
		{"recall", method.Recall, asks(op, method.Recall, &pb.RecallRequest{}, &pb.RecallResponse{}), adminsOnly}, // it has the cluster's secret
		{"conflicts", method.Conflicts, asks(op, method.Conflicts, &pb.ConflictsRequest{}, &pb.ConflictsResponse{}), outcomes(refused, refused, done, done, done)},
		{"space", method.Space, asks(op, method.Space, &pb.SpaceRequest{Slice: uint32(ids.RootSlice)}, &pb.SpaceResponse{}), outcomes(refused, refused, done, done, done)},
		{"snapshots", method.Snapshots, asks(op, method.Snapshots, &pb.SnapshotsRequest{}, &pb.SnapshotsResponse{}), anybody},
		{"make a snapshot", method.Snapshot, asks(op, method.Snapshot, &pb.SnapshotRequest{Make: "daily", DryRun: true}, &pb.SnapshotResponse{}), adminsOnly},
		{"delete a snapshot", method.Snapshot, func(a *asker, _ *bobs) error { // who may is told that there is none
			err := a.ask(op, method.Snapshot, &pb.SnapshotRequest{Delete: "none", DryRun: true}, &pb.SnapshotResponse{})
			if fault.Is(err, fault.NotFound) {
				return nil
			}
			return err
		}, adminsOnly},
		{"side", method.Side, sides, byHost},
		{"sidecopy", method.SideCopy, func(a *asker, _ *bobs) error { // who may is told that it is malformed
			err := a.ask(op, method.SideCopy, &pb.SideCopyRequest{Slice: 1}, &pb.SideCopyResponse{})
			if fault.Is(err, fault.Invalid) {
				return nil
			}
			return err
		}, nodesOnly},
		{"keep a create", method.Hold, holdsCreate, anybody}, // the active decides whether it may
		{"net", method.Net, asks(op, method.Net, &pb.NetRequest{}, &pb.NetResponse{}), anybody},
		{"intent", method.Intent, asks(op, method.Intent, &pb.IntentRequest{Intent: uint64(ids.RootObject), Slice: 1}, &pb.IntentResponse{}), nodesOnly},
		{"facts", method.Facts, asks(op, method.Facts, &pb.FactsRequest{Slice: 1}, &pb.FactsResponse{}), nodesOnly},
		{"transfer", method.Transfer, func(a *asker, _ *bobs) error {
			err := a.ask(wire.Chunk, method.Transfer, &pb.TransferRequest{Slice: 1, Token: 12345}, &pb.TransferResponse{})
			if err != nil && !fault.Is(err, unknown) { // there is no such copy
				return nil
			}
			return err
		}, nodesOnly},
		{"replica", method.Replica, sends(wire.Operation, method.Replica), nodesOnly},
		{"beacon", method.Beacon, sends(wire.Beacon, method.Beacon), nodesOnly},
		{"budget", method.Budget, sends(wire.Beacon, method.Budget), nodesOnly},
	}
}

// sends sends a frame that makes no sense. The node says so of a peer's, and
// looks at nobody else's: a call behind it shows that it was received.
func sends(class wire.Class, m wire.Method) func(*asker, *bobs) error {
	return func(a *asker, _ *bobs) error {
		before := a.w.frames.Load()
		if err := a.cl.Host.Send(string(a.w.node), class, m, []byte{0xff, 0xff, 0xff}); err != nil {
			return fault.E(unknown, "", "", err.Error()) // no connection of this class
		}
		_ = a.ask(class, method.Facts, &pb.FactsRequest{Slice: 1}, &pb.FactsResponse{}) // behind it on its connection
		ctx, cancel := context.WithTimeout(a.w.ctx, time.Second)
		defer cancel()
		for a.w.frames.Load() == before && a.role == peer && ctx.Err() == nil {
			_ = a.ask(class, method.Facts, &pb.FactsRequest{Slice: 1}, &pb.FactsResponse{})
		}
		if a.w.frames.Load() == before {
			return fault.E(unknown, "", "", "the frame was not looked at")
		}
		return nil
	}
}

func sayHello(a *asker, _ *bobs) error {
	key := a.cl.Key
	if a.role == unknownKey || a.role == formerNode || a.role == peer {
		other, err := wire.NewKey(nil)
		if err != nil {
			return err
		}
		key = other
	}
	signature, err := key.Sign(method.HelloProof(a.cl.Host.KeyID(), string(a.w.node)))
	if err != nil {
		return err
	}
	b, err := a.cl.Host.Call(a.w.ctx, string(a.w.node), wire.Operation, method.Hello, &pb.HelloRequest{Cluster: string(servertest.ClusterID), UserKey: key.Public(),
		Signature: signature, Version: method.ProtocolVersion}, nil, &pb.HelloResponse{})
	b.Release()
	return err
}

func claims(a *asker, x *bobs) error {
	a.renew()
	return a.ask(wire.Operation, method.Claim, &pb.ClaimRequest{Slice: 1, Session: a.session, Open: []uint64{x.file}}, &pb.ClaimResponse{})
}

func locksFile(a *asker, x *bobs) (err error) {
	for wait := true; wait; wait = (fault.Is(err, fault.Again) || fault.Is(err, fault.Expired)) && a.w.ctx.Err() == nil { // the claims of before are waited for
		a.renew()
		err = a.ask(wire.Operation, method.Lock, &pb.LockRequest{Slice: 1, Session: a.session, Ticket: x.ticket(x.file),
			Lock: &pb.Lock{Object: x.file, Owner: 1, Flock: true, End: ^uint64(0), Type: 1}}, &pb.LockResponse{})
	}
	return err
}

// renew opens the role's session anew where it lapsed, or prolongs it.
func (a *asker) renew() {
	if a.session == 0 {
		return
	}
	if opened, err := a.cl.Session(a.w.ctx, a.w.node); err == nil {
		a.session = opened.Session
	}
}

func resolves(a *asker, x *bobs) error {
	var answer pb.ResolveResponse
	err := a.ask(wire.Operation, method.Resolve, &pb.ResolveRequest{Header: a.header(x.ticket(x.dir)), Dir: x.dir, Names: [][]byte{[]byte("file")}}, &answer)
	if err == nil {
		err = kind(answer.Steps[0].Kind)
	}
	return err
}

// sides writes bob's file at the side of a cut. Who may is told that there is none.
func sides(a *asker, x *bobs) error {
	size := uint64(3)
	req := &pb.OperateRequest{Slice: uint32(ids.RootSlice), Number: 1, Principal: a.principal, Tickets: x.tickets,
		Operation: &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: x.file, Size: &size}}}}
	if a.role == peer {
		req.Client = 7
	}
	err := a.ask(wire.Operation, method.Side, req, &pb.OperateResponse{})
	if fault.Is(err, fault.NotActive) {
		return nil
	}
	return err
}

// holdsCreate asks for a file in bob's directory. Who may is told that the active keeps
// nothing, or, a node, that there is no such client.
func holdsCreate(a *asker, x *bobs) error {
	req := &pb.OperateRequest{Slice: uint32(ids.RootSlice), Epoch: 999, Number: 1, Lowest: 1, Principal: a.principal, Tickets: x.tickets, Operation: once("held", nil)}
	if a.role == peer {
		req.Client = 7
	}
	req.Operation.GetCreate().Dir = x.dir
	err := a.ask(wire.Operation, method.Hold, req, &pb.OperateResponse{})
	if fault.Is(err, fault.WrongEpoch) || a.role == peer && fault.Is(err, fault.Expired) {
		return nil
	}
	return err
}

func files(a *asker, x *bobs) error {
	var answer pb.FilesResponse
	err := a.ask(wire.Chunk, method.Files, &pb.FilesRequest{Header: a.header(nil), Objects: []uint64{x.file}, Tickets: [][]byte{x.ticket(x.file)}, DataBytes: 1 << 20}, &answer)
	if err == nil && len(answer.Files) == 0 {
		err = fault.E(refused, "", "", "the file is left out")
	}
	return err
}

// has asks whether a chunk is there; users prove to have it, as bob can.
func has(a *asker, x *bobs) error {
	req := &pb.HaveRequest{Slice: 1, Addresses: x.chunk[:]}
	if a.role == withRight {
		var hello pb.HelloResponse
		signature, err := a.cl.Key.Sign(method.HelloProof(a.cl.Host.KeyID(), string(a.w.node)))
		if err != nil {
			return err
		}
		err = a.ask(wire.Operation, method.Hello, &pb.HelloRequest{UserKey: a.cl.Key.Public(), Signature: signature, Version: 1}, &hello)
		if err != nil {
			return err
		}
		proof := chunk.Prove([32]byte(hello.Nonce), x.body)
		req.Proofs = proof[:]
	} else if a.role == noRight {
		req.Proofs = make([]byte, chunk.ProofSize)
	}
	var answer pb.HaveResponse
	err := a.ask(wire.Operation, method.Have, req, &answer)
	if err == nil && answer.Missing[0]&1 != 0 {
		err = fault.E(refused, "", "", "the node says that it lacks the chunk")
	}
	return err
}

func gets(a *asker, x *bobs) error {
	return a.ask(wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Parts: []*pb.GetRequest_Part{{Length: 100}},
		Object: x.file, Root: x.root[:], Height: x.height, Readable: x.readable}, &pb.GetResponse{})
}

// getsShared asks for a chunk as the nodes of a site do, with all that a user may
// show.
func getsShared(how pb.Sharing) func(*asker, *bobs) error {
	return func(a *asker, x *bobs) error {
		return a.ask(wire.Chunk, method.Get, &pb.GetRequest{Slice: 1, Addresses: x.chunk[:], Object: x.file, Root: x.root[:], Height: x.height,
			Readable: x.readable, Sharing: how}, &pb.GetResponse{})
	}
}

// operates is an operation in the root's slice.
func operates(build func(x *bobs) *pb.Operation) func(*asker, *bobs) error {
	return func(a *asker, x *bobs) error {
		_, err := a.operate(ids.RootSlice, build(x), x.tickets)
		return err
	}
}

func operationRows() []accessRow {
	var out []accessRow
	add := func(name string, want map[role]fault.Kind, build func(x *bobs) *pb.Operation) {
		out = append(out, accessRow{name, method.Operate, operates(build), want})
	}
	mode, refusedToUsers := uint32(0o644), outcomes(refused, refused, refused, refused, fault.Invalid)
	add("create", byRight, func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Create{Create: &pb.Create{Dir: x.dir, Name: []byte("new"), Mode: tree.TypeRegular | 0o600}}}
	})
	add("unlink", byRight, func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Unlink{Unlink: &pb.Unlink{Dir: x.dir, Name: []byte("file")}}}
	})
	add("rename", byRight, func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Rename{Rename: &pb.Rename{Dir: x.dir, Name: []byte("file"), NewDir: x.dir, NewName: []byte("moved")}}}
	})
	add("link", byRight, func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Link{Link: &pb.Link{Object: x.file, Dir: x.dir, Name: []byte("second")}}}
	})
	add("set_attr", but(byRight, trustedFor, fault.NotOwner), func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: x.file, Mode: &mode}}}
	})
	add("set_xattr", byRight, func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_SetXattr{SetXattr: &pb.SetXattr{Object: x.file, Name: "user.a", Value: []byte("b")}}}
	})
	add("commit", byHost, func(x *bobs) *pb.Operation {
		size := uint64(3)
		return &pb.Operation{Op: &pb.Operation_Commit{Commit: &pb.Commit{Object: x.file, Size: &size}}}
	})
	out = append(out, accessRow{"commit of a chunk by its hash", method.Operate, commitsChunk, but(byHost, noRight, fault.Missing)})
	add("hold", but(byHost, peer, refused), func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Hold{Hold: &pb.Hold{Object: x.file}}}
	})
	out = append(out, accessRow{"make_object", method.Operate, func(a *asker, x *bobs) error { _, err := makes(a, x); return err }, byHost},
		accessRow{"link_name", method.Operate, namesMade, byRight},
		accessRow{"link_name of what another made", method.Operate, namesOthers, outcomes(refused, refused, refused, done, done)})
	add("step", refusedToUsers, func(*bobs) *pb.Operation { return &pb.Operation{Op: &pb.Operation_Step{Step: &pb.Step{}}} })
	add("reap", but(refusedToUsers, peer, done), func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Reap{Reap: &pb.Reap{Object: x.file, Confirm: true}}}
	})
	add("collect", but(refusedToUsers, peer, done), func(*bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Collect{Collect: &pb.Collect{Horizon: 1}}}
	})
	add("merge", but(refusedToUsers, peer, done), func(x *bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_Merge{Merge: &pb.Merge{Object: x.file, Lost: []*pb.Named{{Dir: x.dir, Name: []byte("no such")}}}}}
	})
	add("grant_range", but(refusedToUsers, peer, refused), func(*bobs) *pb.Operation {
		return &pb.Operation{Op: &pb.Operation_GrantRange{GrantRange: &pb.GrantRange{}}}
	})
	return out
}

// commitsChunk makes a file of the role's own with the content of bob's chunk.
// Who has the bytes puts them first.
func commitsChunk(a *asker, x *bobs) error {
	own := a.w.must(1, create(a.cl.Host.KeyID()+time.Now().String())).Attr.Object
	uid := map[role]uint32{noRight: 1000, withRight: 1001, trustedFor: 1000}[a.role]
	a.w.must(1, &pb.Operation{Op: &pb.Operation_SetAttr{SetAttr: &pb.SetAttr{Object: own, Uid: &uid}}})
	var put pb.PutResponse
	if a.role == withRight {
		if _, err := a.call(a.w.node, wire.Chunk, method.Put, &pb.PutRequest{Slice: 1, Addresses: x.chunk[:], Sizes: []uint32{uint32(len(x.body))}}, x.body, &put); err != nil {
			return err
		}
	}
	var owned []byte
	if len(put.Owned) > 0 {
		owned = put.Owned[0]
	}
	x.file = own
	_, err := a.operate(1, commitOf(x, owned), nil) // the root can be searched: no ticket is needed
	return err
}

// makes makes an object in the other slice for bob's directory.
func makes(a *asker, x *bobs) (*pb.Result, error) {
	return a.operate(a.w.other.ID, &pb.Operation{Op: &pb.Operation_MakeObject{MakeObject: &pb.MakeObject{Mode: tree.TypeRegular | 0o600, Parent: x.dir}}}, x.tickets)
}

func linkMade(x *bobs, made *pb.Result) *pb.Operation {
	l := &pb.LinkName{Dir: x.dir, Name: []byte("far"), Mode: tree.TypeRegular, Object: uint64(ids.NewObject(2, 1))}
	if made != nil {
		l.Object, l.Made = made.Attr.Object, made.Made
	}
	return &pb.Operation{Op: &pb.Operation_LinkName{LinkName: l}}
}

// namesMade names what the role made itself, if it could.
func namesMade(a *asker, x *bobs) error {
	made, _ := makes(a, x)
	_, err := a.operate(1, linkMade(x, made), x.tickets)
	return err
}

// namesOthers names what root made.
func namesOthers(a *asker, x *bobs) error {
	made, err := makes(a.w.askers[admin], x)
	if err == nil {
		_, err = a.operate(1, linkMade(x, made), x.tickets)
	}
	return err
}

package calls

import (
	"context"

	"cartwheel.dev/clients/cartwheel/timeouts"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"google.golang.org/protobuf/proto"
)

// Writer is as whom, and with how many acknowledgements, a handle's writes are
// committed. It is what content.Open.As is in this client.
type Writer struct {
	Principal *pb.Principal
	Level     uint32
	Terms     cue.Terms
}

// Under returns a context on the writer's terms, where these are eventual, without a
// limit of its own: what is sent under it in the background goes on until it is done.
func (w *Writer) Under(ctx context.Context) context.Context {
	if !w.Terms.Eventual {
		return ctx
	}
	return timeouts.On(ctx, w.Terms)
}

// LevelOf is the level of a content.Open.As; false where that is no Writer.
func LevelOf(as any) (level uint32, ok bool) {
	if w, _ := as.(*Writer); w != nil {
		return w.Level, true
	}
	return 0, false
}

// The write journal keeps who wrote as one byte, whose lowest bit says that commits
// clear set-id bits, and an OperateRequest with the principal and the level.
const clearsSetID = 1

// Encode encodes how a handle writes, for the journal.
func Encode(o content.Open) []byte {
	w, _ := o.As.(*Writer)
	if w == nil {
		return nil
	}
	flags := byte(0)
	if o.ClearSetID {
		flags = clearsSetID
	}
	out, err := proto.MarshalOptions{}.MarshalAppend([]byte{flags}, &pb.OperateRequest{Principal: w.Principal, SyncLevel: w.Level})
	if err != nil {
		return nil // it is then recovered without a writer
	}
	return out
}

// Decode is how writes are committed again of which the journal says who made
// them. Where it does not say, set-id bits are cleared.
func Decode(who []byte) content.Open {
	var req pb.OperateRequest
	if len(who) == 0 || proto.Unmarshal(who[1:], &req) != nil || req.Principal == nil {
		return content.Open{As: &Writer{Principal: &pb.Principal{}}, ClearSetID: true}
	}
	return content.Open{As: &Writer{Principal: req.Principal, Level: req.SyncLevel}, ClearSetID: who[0]&clearsSetID != 0}
}

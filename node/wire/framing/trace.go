package framing

import "google.golang.org/protobuf/encoding/protowire"

// Trace says to which trace a call belongs, and which span of it made the call,
// as W3C Trace Context has them.
type Trace struct {
	ID    [16]byte
	Span  [8]byte
	Flags byte
}

const (
	// traceField is the number under which a call's message carries its trace.
	// No message has a field of that number, so a peer that knows nothing of
	// traces passes over it.
	traceField = 15000
	traceSize  = 16 + 8 + 1
)

// traceHead is what stands before a trace: the field's tag, and the length.
var traceHead = protowire.AppendVarint(protowire.AppendTag(nil, traceField, protowire.BytesType), traceSize)

// AppendTrace appends a trace to an encoded message.
func AppendTrace(message []byte, t Trace) []byte {
	message = append(message, traceHead...)
	message = append(message, t.ID[:]...)
	message = append(message, t.Span[:]...)
	return append(message, t.Flags)
}

// TraceOf returns the trace at the end of an encoded message; false: it has none.
func TraceOf(message []byte) (Trace, bool) {
	at := len(message) - len(traceHead) - traceSize
	if at < 0 || string(message[at:at+len(traceHead)]) != string(traceHead) {
		return Trace{}, false
	}
	var t Trace
	rest := message[at+len(traceHead):]
	copy(t.ID[:], rest)
	copy(t.Span[:], rest[len(t.ID):])
	t.Flags = rest[traceSize-1]
	return t, true
}

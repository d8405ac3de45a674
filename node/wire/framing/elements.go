package framing

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cartwheel.dev/geo-config/fault"
)

const (
	// freeElements and elementBytes bound the elements of a request's message: an
	// empty element takes two bytes on the wire and a hundred in memory. A message
	// of n bytes may have freeElements, and one more for each elementBytes of n.
	freeElements = 1 << 10
	elementBytes = 8
	// maxElements bounds them whatever the size.
	maxElements = 64 << 10
	// maxNesting bounds how deep messages nest.
	maxNesting = 32
)

// CheckElements refuses a message that would take far more memory than its
// encoding does. It leaves malformed messages to the decoder.
func CheckElements(b []byte, m proto.Message) error {
	if len(b) < 2*freeElements {
		return nil
	}
	c := elements{left: min(freeElements+len(b)/elementBytes, maxElements)}
	if !c.count(b, m.ProtoReflect().Descriptor(), 0) {
		return fault.Errorf(fault.TooLarge, Op, "", "a message of %d bytes has too many elements, or too deep ones", len(b))
	}
	return nil
}

// elements counts messages and the entries of lists that are not packed.
type elements struct{ left int }

// count reports whether a message stays within the limits.
func (c *elements) count(b []byte, d protoreflect.MessageDescriptor, depth int) bool {
	if depth > maxNesting {
		return false
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return true
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return true
		}
		value := b[:n]
		b = b[n:]
		f := d.Fields().ByNumber(number)
		if f == nil || f.Message() == nil && !f.IsList() {
			continue
		}
		if c.left--; c.left < 0 {
			return false
		}
		if kind != protowire.BytesType || f.Message() == nil {
			continue
		}
		if inner, n := protowire.ConsumeBytes(value); n < 0 || !c.count(inner, f.Message(), depth+1) {
			return false
		}
	}
	return true
}

package fault

import (
	"encoding/binary"
	"errors"
)

// MaxText bounds each text of an encoded error in bytes; longer ones are cut.
const MaxText = 4096

// Encode writes err as it crosses the wire: kind, op of the outermost error,
// and the first subject and public text that its chain of causes has. Causes
// themselves stay here. A nil error is kind None.
//
//	kind     uvarint
//	op       uvarint length, bytes
//	subject  uvarint length, bytes
//	public   uvarint length, bytes
//	         what follows is of a newer version and is skipped
func Encode(dst []byte, err error) []byte {
	var op, subject, public string
	var e *Error
	for cause := err; errors.As(cause, &e); cause = e.Cause {
		op, subject, public = first(op, string(e.Op)), first(subject, e.Subject), first(public, e.Public)
	}
	dst = binary.AppendUvarint(dst, uint64(KindOf(err)))
	for _, s := range [...]string{op, subject, public} {
		s = s[:min(len(s), MaxText)]
		dst = binary.AppendUvarint(dst, uint64(len(s)))
		dst = append(dst, s...)
	}
	return dst
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// Decode reads what Encode wrote. The error that was sent is the first result,
// nil for kind None; the second is of kind Corrupt when src is not one.
func Decode(src []byte) (sent error, err error) {
	kind, n := binary.Uvarint(src)
	if n <= 0 || kind > 1<<32-1 {
		return nil, E(Corrupt, "fault.Decode", "", "not an encoded error")
	}
	src = src[n:]
	var texts [3]string
	for i := range texts {
		size, n := binary.Uvarint(src)
		if n <= 0 || size > MaxText || size > uint64(len(src)-n) {
			return nil, E(Corrupt, "fault.Decode", "", "an encoded error is cut short or too long")
		}
		texts[i] = string(src[n : n+int(size)])
		src = src[n+int(size):]
	}
	if Kind(kind) == None {
		return nil, nil
	}
	return E(Kind(kind), Op(texts[0]), texts[1], texts[2]), nil
}

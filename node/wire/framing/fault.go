package framing

import (
	"encoding/binary"
	"errors"

	"cartwheel.dev/geo-config/fault"
)

// remote marks an error as a peer's own answer.
type remote struct{ peer string }

func (r *remote) Error() string { return "answered by " + r.peer }

// Answered reports whether err is a fault that ParseFault read: the peer's own
// answer.
func Answered(err error) bool {
	var r *remote
	return errors.As(err, &r)
}

// maxFaultText bounds each text of a fault on the wire; longer ones are cut.
const maxFaultText = 4096

// AppendFault encodes kind, op, subject and public text. Causes stay here.
func AppendFault(to []byte, err error) []byte {
	e := flatten(err)
	to = binary.LittleEndian.AppendUint32(to, uint32(e.Kind))
	for _, s := range [...]string{string(e.Op), e.Subject, e.Public} {
		s = s[:min(len(s), maxFaultText)]
		to = binary.LittleEndian.AppendUint16(to, uint16(len(s)))
		to = append(to, s...)
	}
	return to
}

// flatten takes each field from the outermost fault that has it.
func flatten(err error) fault.Error {
	out := fault.Error{Kind: fault.KindOf(err)}
	if out.Kind == fault.None {
		out.Kind = fault.Other
	}
	for err != nil {
		var e *fault.Error
		if !errors.As(err, &e) {
			break
		}
		if out.Op == "" {
			out.Op = e.Op
		}
		if out.Subject == "" {
			out.Subject = e.Subject
		}
		if out.Public == "" {
			out.Public = e.Public
		}
		err = e.Cause
	}
	return out
}

// ParseFault decodes a peer's answer. It always returns a fault, for which
// Answered holds.
func ParseFault(b []byte, peer string) *fault.Error {
	bad := func() *fault.Error {
		return &fault.Error{Kind: fault.Corrupt, Op: Op, Subject: peer, Public: "an error that cannot be read", Cause: &remote{peer}}
	}
	if len(b) < 4 {
		return bad()
	}
	k := fault.Kind(binary.LittleEndian.Uint32(b))
	b = b[4:]
	var text [3]string
	for i := range text {
		if len(b) < 2 || len(b)-2 < int(binary.LittleEndian.Uint16(b)) {
			return bad()
		}
		n := int(binary.LittleEndian.Uint16(b))
		text[i], b = string(b[2:2+n]), b[2+n:]
	}
	if k == fault.None {
		k = fault.Other
	}
	return &fault.Error{Kind: k, Op: fault.Op(text[0]), Subject: text[1], Public: text[2], Cause: &remote{peer}}
}

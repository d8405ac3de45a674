package framing

import (
	"encoding/binary"
	"errors"
	"io"
)

// ErrBlock says that a block is longer than its limit.
var ErrBlock = errors.New("a block longer than its limit")

// AppendBlock appends a length of two bytes and the content.
func AppendBlock(to, content []byte) []byte {
	return append(binary.LittleEndian.AppendUint16(to, uint16(len(content))), content...)
}

// ReadBlock reads a length of two bytes and the content, of at most limit bytes,
// and not one byte more. It returns both.
func ReadBlock(r io.Reader, limit int) ([]byte, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := int(binary.LittleEndian.Uint16(length[:]))
	if n > limit {
		return nil, ErrBlock
	}
	b := append(make([]byte, 0, 2+n), length[:]...)[:2+n]
	_, err := io.ReadFull(r, b[2:])
	return b, err
}

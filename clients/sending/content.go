package sending

import (
	"bytes"
	"errors"
	"io"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// zeros is a piece of nothing but zeros.
var zeros [pieceBytes]byte

func isZero(piece []byte) bool { return bytes.Equal(piece, zeros[:len(piece)]) }

// readPiece reads the piece of a file that begins at an offset, or less where the file ends.
func readPiece(f *os.File, buf []byte, offset uint64) ([]byte, error) {
	n, err := f.ReadAt(buf, int64(offset))
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return buf[:n], fault.FromOS("sending.readPiece", f.Name(), err)
}

// content sends the content of a file from an offset on. Where the receiver has a file under
// the name, what is the same there is left out.
func (x *sender) content(was, is *facts, from uint64) error {
	const op fault.Op = "sending.content"
	in, err := os.Open(is.path)
	if err != nil {
		return fault.FromOS(op, is.path, err)
	}
	defer in.Close()
	var old *os.File
	if was != nil && was.isRegular() {
		if old, err = os.Open(was.path); err != nil {
			return fault.FromOS(op, was.path, err)
		}
		defer old.Close()
	}
	k := kept{out: &x.out}
	for offset, size := from, is.size(); offset < size; {
		if x.ctx.Err() != nil {
			return fault.Wrap(fault.Canceled, op, is.path, x.ctx.Err())
		}
		want := min(pieceBytes-offset%pieceBytes, size-offset)
		piece, err := readPiece(in, x.piece[:want], offset)
		if err != nil {
			return err
		}
		if uint64(len(piece)) != want {
			return fault.E(fault.Corrupt, op, is.path, "has fewer bytes than its size says")
		}
		if err := x.onePiece(&k, old, piece, offset); err != nil {
			return err
		}
		x.src.Progress.Bytes.Add(int64(want))
		if offset += want; isZero(piece) && offset < size {
			// All pieces from here to the next data are zeros, too.
			offset = max(offset, nextData(in, offset, size)/pieceBytes*pieceBytes)
		}
	}
	return k.flush()
}

// onePiece sends a piece: as its bytes, as what the receiver has, or as a hole.
func (x *sender) onePiece(k *kept, old *os.File, piece []byte, offset uint64) error {
	if isZero(piece) {
		return k.flush()
	}
	if old != nil {
		there, err := readPiece(old, x.other[:len(piece)], offset)
		if err != nil {
			return err
		}
		if bytes.Equal(there, piece) {
			return k.add(offset, piece)
		}
	}
	if err := k.flush(); err != nil {
		return err
	}
	name := chunk.Sum(piece)
	x.out.bytes += uint64(len(piece))
	return x.out.record(recordData, little.AppendUint64(nil, offset), name[:], piece)
}

// kept collects the names of pieces that the receiver has, for one record.
type kept struct {
	out            *writer
	offset, length uint64
	pieces         []byte
}

// add takes the next piece. A range ends at the multiples of keptBytes, so that it is the same
// one wherever a sending went on.
func (k *kept) add(offset uint64, piece []byte) error {
	if k.length == 0 {
		k.offset = offset
	}
	name := chunk.Sum(piece)
	k.pieces = append(k.pieces, name[:]...)
	k.length += uint64(len(piece))
	if (k.offset+k.length)%keptBytes == 0 {
		return k.flush()
	}
	return nil
}

// flush sends what was collected.
func (k *kept) flush() error {
	if k.length == 0 {
		return nil
	}
	body := encodeKept(k.offset, k.length, chunk.Sum(k.pieces))
	k.length, k.pieces = 0, k.pieces[:0]
	return k.out.record(recordKept, body)
}

// equal compares the contents of a file at both times, which have one size.
func (x *sender) equal(was, is *facts) (bool, error) {
	const op fault.Op = "sending.equal"
	in, err := os.Open(is.path)
	if err != nil {
		return false, fault.FromOS(op, is.path, err)
	}
	defer in.Close()
	old, err := os.Open(was.path)
	if err != nil {
		return false, fault.FromOS(op, was.path, err)
	}
	defer old.Close()
	for offset := uint64(0); ; offset += pieceBytes {
		if x.ctx.Err() != nil {
			return false, fault.Wrap(fault.Canceled, op, is.path, x.ctx.Err())
		}
		a, err := readPiece(in, x.piece, offset)
		if err != nil {
			return false, err
		}
		b, err := readPiece(old, x.other, offset)
		if err != nil || !bytes.Equal(a, b) || len(a) < pieceBytes {
			return bytes.Equal(a, b), err
		}
	}
}

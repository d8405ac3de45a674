package chunk

// PieceSize is about how many bytes of chunks travel to another site in one request.
// A node passes a piece on once it has all of it: the smaller a piece is, the sooner
// the next line of a chain is busy.
const PieceSize = 128 << 10

// Piece is a run of chunks that lie end to end: so many of them from First on, and
// so many bytes from At on.
type Piece struct{ First, Chunks, At, Bytes int }

// Pieces parts chunks of these sizes, which lie end to end, into pieces of at most
// PieceSize; a larger chunk is a piece of its own.
func Pieces(sizes []uint32) []Piece {
	var out []Piece
	var p Piece
	for i, n := range sizes {
		if p.Chunks > 0 && p.Bytes+int(n) > PieceSize {
			out = append(out, p)
			p = Piece{First: i, At: p.At + p.Bytes}
		}
		p.Chunks++
		p.Bytes += int(n)
	}
	if p.Chunks > 0 {
		out = append(out, p)
	}
	return out
}

package snapshot

import (
	"bytes"

	"github.com/zeebo/blake3"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/replog"
	"cartwheel.dev/node/store/meta"
)

// A receiver that has an old state of a slice copies the difference alone. It names ranges
// of its rows, one behind the other, each with a sum. The source compares them with its own
// rows, and answers how many are alike, and the rows of the first that is not. So what
// travels grows with what differs, and what is read with the state. The sum of the whole
// copy (copySum) decides at the end whether all of it was right.

const (
	// rangesMost bounds the ranges of one request, of about rangeBytes of rows each. A range
	// grows to as much as a page while one after the other differs, so that a state of which
	// nothing is alike takes no more calls than without ranges.
	rangesMost = 64
	rangeBytes = 64 << 10
	rangeGrown = 1 << 20
	// rangeSum is the length of a range's sum, in bytes.
	rangeSum = 16
)

// rowNamed is the row that bytes of the protocol name: its area and its key.
func rowNamed(b []byte) (r meta.Row, ok bool) {
	if len(b) == 0 {
		return r, false
	}
	return meta.Row{Area: b[0], Key: b[1:]}, true
}

// nameOf is a row's name in the protocol.
func nameOf(r *meta.Row) []byte { return append([]byte{r.Area}, r.Key...) }

// sumRows is the sum of a range's rows, but those that each node keeps for itself.
func sumRows(rows []meta.Row) []byte {
	h := blake3.New()
	var b []byte
	for i := range rows {
		if r := &rows[i]; !r.Plain() || !replog.Own(r.Key) {
			b = appendRow(b[:0], r)
			_, _ = h.Write(b) // a hash takes everything
		}
	}
	return h.Sum(nil)[:rangeSum]
}

// alike says how many of a request's ranges are as they are in a frozen state here. They
// begin behind a row; upTo is the end of the last alike one, or that row.
func alike(frozen *meta.Frozen, slice ids.Slice, behind meta.Row, have []*pb.TransferRequest_Range) (same int, upTo meta.Row, err error) {
	upTo = behind
	if err := checkRanges(behind, have); err != nil {
		return 0, behind, err
	}
	for _, r := range have {
		end, _ := rowNamed(r.End)
		rows, whole, err := rowsIn(frozen, slice, upTo, end, 2*rangeGrown)
		if err != nil {
			return same, upTo, err
		}
		if !whole || hasNotes(rows) || !bytes.Equal(sumRows(rows), r.Sum) {
			break
		}
		same, upTo = same+1, end
	}
	return same, upTo, nil
}

// checkRanges refuses ranges that do not lie one behind the other.
func checkRanges(behind meta.Row, have []*pb.TransferRequest_Range) error {
	for _, r := range have {
		end, ok := rowNamed(r.End)
		if !ok || end.Compare(behind) <= 0 || len(r.Sum) != rangeSum || len(have) > rangesMost {
			return fault.E(fault.Invalid, "snapshot.checkRanges", "", "the ranges are malformed")
		}
		behind = end
	}
	return nil
}

// rowsIn returns the rows behind one row up to another, if they have about limit bytes at
// most; whole says whether they have.
func rowsIn(frozen *meta.Frozen, slice ids.Slice, behind, end meta.Row, limit int) (rows []meta.Row, whole bool, err error) {
	rows, err = frozen.Rows(slice, behind, limit)
	if err != nil {
		return nil, false, err
	}
	for i := range rows {
		if rows[i].Compare(end) > 0 {
			return rows[:i], true, nil
		}
	}
	if len(rows) == 0 {
		return nil, true, nil
	}
	left, err := frozen.Rows(slice, rows[len(rows)-1], 1)
	return rows, len(left) == 0 || left[0].Compare(end) > 0, err
}

// hasNotes reports whether rows note chunks that are away: these the receiver must get,
// though they are not in the sum.
func hasNotes(rows []meta.Row) bool {
	for i := range rows {
		if _, is := replog.IsUnheld(rows[i].Key, rows[i].Value); is && rows[i].Plain() {
			return true
		}
	}
	return false
}

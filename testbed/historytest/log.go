package historytest

import (
	"fmt"
	"slices"
	"strings"
)

// logOrder looks for an order that explains a log, and returns why there is
// none, or "". Records are unique and of one length, so what the longest read
// shows is the order of its records, and every read has its place among them:
// there is one order of groups to try, and none that takes long to find. Of
// appends that no read shows, those acknowledged came after the last read, and
// those of unknown outcome may come yet.
func logOrder(events []*event) string {
	records := map[string]*event{}
	length := 0
	var longest *event
	for _, e := range events {
		switch {
		case e.what == add:
			records[e.value], length = e, len(e.value)
		case longest == nil || len(e.value) > len(longest.value):
			longest = e
		}
	}
	if longest == nil {
		return "" // nobody looked
	}
	// Groups 2i are the reads of i records, 2i+1 the append of the next one,
	// and the last one the appends that nobody read.
	var groups [][]*event
	shown := map[string]bool{}
	for rest := longest.value; rest != ""; rest = rest[length:] {
		if length == 0 || len(rest) < length || records[rest[:length]] == nil {
			return fmt.Sprintf("  nobody appended what is read at %d\n  %v\n", len(longest.value)-len(rest), longest)
		}
		record := rest[:length]
		if shown[record] {
			return fmt.Sprintf("  it shows twice\n  %v\n  %v\n", records[record], longest)
		}
		shown[record] = true
		groups = append(groups, nil, []*event{records[record]})
	}
	groups = append(groups, nil, nil)
	last := len(groups) - 1
	for _, e := range events {
		switch {
		case e.what != add && !strings.HasPrefix(longest.value, e.value):
			return fmt.Sprintf("  two reads, and neither begins as the other does\n  %v\n  %v\n", e, longest)
		case e.what != add && e.value == "":
			groups[0] = append(groups[0], e)
		case e.what != add && len(e.value)%length > 0:
			return fmt.Sprintf("  a read ends within a record\n  %v\n", e)
		case e.what != add:
			i := 2 * len(e.value) / length
			groups[i] = append(groups[i], e)
		case !shown[e.value] && e.result == done:
			groups[last] = append(groups[last], e)
		}
	}
	return inTime(groups)
}

// inTime says whether groups of operations can follow each other: no operation
// may have ended before one of an earlier group began.
func inTime(groups [][]*event) string {
	var latest *event // begun, of the groups before
	for _, g := range groups {
		for _, e := range g {
			if latest != nil && e.ret < latest.call {
				return fmt.Sprintf("  the first must come before the second, and had not begun when it ended\n  %v\n  %v\n", latest, e)
			}
		}
		if len(g) == 0 {
			continue
		}
		if of := slices.MaxFunc(g, func(a, b *event) int { return int(a.call - b.call) }); latest == nil || of.call > latest.call {
			latest = of
		}
	}
	return ""
}

package desktops

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// tryAgain is when secondaries are tried again for which no disk had room.
const tryAgain = time.Hour

// pending is a file whose secondaries are to be made or brought up to date.
type pending struct {
	at    time.Duration
	file  File
	again bool // no disk had room the last time
}

// pendingQueue has the next pending in front. A file is in it once at most.
type pendingQueue []pending

func (a pendingQueue) Len() int { return len(a) }
func (a pendingQueue) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].file < a[j].file
}
func (a pendingQueue) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *pendingQueue) Push(x any)   { *a = append(*a, x.(pending)) }
func (a *pendingQueue) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// await has a file's secondaries seen to at some time, unless that is to come anyway.
func (b *beeFS) await(f File, at time.Duration, again bool) {
	if x := &b.files[f]; !x.waits {
		x.waits = true
		heap.Push(&b.due, pending{at, f, again})
	}
}

// lastUse is a file with the time of its last use, as it was when the list was made.
type lastUse struct {
	file File
	used int32
}

// oldest returns the least recently used primary of a machine that may leave. The
// machine's files are put in order once. Those used since are passed over, and new
// ones are missing: all of them were used later than any that is left. The list is
// made again when it is used up, or when an older file arrived (move).
func (b *beeFS) oldest(machine int, may func(File) bool) (File, bool) {
	for range 2 {
		list, stay := b.order[machine], 0
		for i, a := range list {
			x := &b.files[a.file]
			if x.n == 0 || int(x.copies[0].machine) != machine || x.used != a.used {
				continue
			}
			if !may(a.file) {
				stay++ // it stays in front of the rest
				list[i], list[stay-1] = list[stay-1], a
				continue
			}
			copy(list[i+1-stay:], list[:stay])
			b.order[machine] = list[i+1-stay:]
			return a.file, true
		}
		all := make([]lastUse, 0, len(b.primaries[machine]))
		for _, f := range b.primaries[machine] {
			all = append(all, lastUse{f, b.files[f].used})
		}
		slices.SortFunc(all, func(x, y lastUse) int {
			return cmp.Or(cmp.Compare(x.used, y.used), cmp.Compare(x.file, y.file))
		})
		b.order[machine] = all
	}
	return 0, false
}

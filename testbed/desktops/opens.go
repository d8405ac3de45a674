package desktops

import (
	"math"
	"slices"
	"time"
)

// open fills in an open of a file.
func (u *user) open(e *Event) {
	h, draw := u.trace.o.Habits, u.random.Float64()
	e.Open = time.Duration(float64(h.Open) * math.Exp(h.OpenSpread*u.random.NormFloat64()))
	limit := h.Create
	if draw < limit || len(u.recent) == 0 {
		u.create(e)
		return
	}
	if limit += h.Replace; draw < limit {
		e.Kind, e.File = Replace, u.pick()
		// A new version is about as large as the one before.
		e.Bytes = max(1, int64(float64(u.trace.sizes[e.File])*(0.9+0.25*u.random.Float64())))
		u.trace.sizes[e.File] = e.Bytes
		return
	}
	if limit += h.Append; draw < limit {
		e.Kind, e.File = Append, u.pick()
		e.Bytes = max(1, fileBytes(u.random)/4) // a page of a log or a mailbox
		u.trace.sizes[e.File] += e.Bytes
		return
	}
	if limit += h.Overwrite; draw < limit {
		e.Kind, e.File = Overwrite, u.pick()
		return
	}
	e.Kind = Read
	if u.random.Float64() < h.Shared {
		if theirs := u.another().recent; len(theirs) > 0 {
			e.File = theirs[u.place(len(theirs))]
			return
		}
	}
	e.File = u.pick()
}

func (u *user) create(e *Event) {
	h := u.trace.o.Habits
	e.Kind, e.Bytes = Create, fileBytes(u.random)
	e.File = u.trace.newFile(e.Bytes)
	u.recent = append(u.recent, e.File)
	if u.random.Float64() < h.Temporary {
		u.temporary = append(u.temporary, temporary{e.File, e.At + after(u.random, h.Lifetime)})
	}
}

// clean deletes a temporary file whose time is over, if there is one.
func (u *user) clean(e *Event) bool {
	i := slices.IndexFunc(u.temporary, func(t temporary) bool { return t.due <= e.At })
	if i < 0 {
		return false
	}
	e.Kind, e.File = Delete, u.temporary[i].file
	u.temporary = slices.Delete(u.temporary, i, i+1)
	for at := len(u.recent) - 1; at >= 0; at-- {
		if u.recent[at] == e.File {
			u.recent = slices.Delete(u.recent, at, at+1)
			break
		}
	}
	return true
}

// pick chooses one of the user's files, which becomes the last opened.
func (u *user) pick() File {
	at := u.place(len(u.recent))
	f := u.recent[at]
	copy(u.recent[at:], u.recent[at+1:])
	u.recent[len(u.recent)-1] = f
	return f
}

// place chooses one of n files, of which the last one was opened last.
func (u *user) place(n int) int {
	return n - 1 - rank(u.random, n, u.trace.o.Habits.Locality)
}

// another is a user other than this one.
func (u *user) another() *user {
	i := u.random.IntN(len(u.trace.byNumber) - 1)
	if i >= u.number {
		i++
	}
	return u.trace.byNumber[i]
}

package listing

import (
	"context"
	"sync"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/clients/names"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
)

// FirstName is the cookie of the first name: "." and ".." are before it.
const FirstName = 2

// Listing is an open directory: the names as they were read, from the first
// ask or the last rewind on. A cookie is a place in it. A Listing is safe for use
// by many goroutines, one of which reads at a time.
type Listing struct {
	reader *Reader
	dir    ids.Object
	terms  cue.Terms

	mu sync.Mutex // guards below; held while a page is read
	window
	more  bool // there are pages behind
	begun bool
	mark  names.Mark
	kept  bool // every page so far was learned
	// stream brings the pages, while some are to come.
	stream *stream
}

// Open begins a listing of a directory, which asks nothing yet and asks for each page
// on a path's terms. The caller closes it.
func (r *Reader) Open(dir ids.Object, t cue.Terms) *Listing {
	return &Listing{reader: r, dir: dir, terms: t}
}

// Close ends a listing. It waits for a page that is being read.
func (l *Listing) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stop()
}

// Read hands over the names behind a cookie, each with its own cookie, until hand
// refuses one or there are no more. Offset 0 begins anew. Before the first name
// it runs dots, which says whether that took all the room. A directory that was
// removed has no names.
func (l *Listing) Read(ctx context.Context, who mount.Caller, offset uint64, dots func() (full bool, err error),
	hand func(n *names.Named, cookie uint64) bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if offset == 0 {
		l.stop()
		l.window, l.more, l.begun = window{}, false, false
	}
	if full, err := dots(); full || err != nil {
		return err
	}
	at := max(offset, FirstName) - FirstName
	if at < l.base {
		if err := l.readAgain(ctx, who, at); err != nil {
			return l.ended(err)
		}
	}
	for ; ; at++ {
		for at >= l.end() {
			if l.begun && !l.more {
				return nil
			}
			if err := l.nextPage(ctx, who); err != nil {
				return l.ended(err)
			}
		}
		if !hand(l.at(at), at+FirstName+1) {
			return nil
		}
	}
}

// Kept counts the names that are in memory, for tests.
func (l *Listing) Kept() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.names)
}

// stop ends reading on.
func (l *Listing) stop() {
	if l.stream != nil {
		l.stream.stop()
		l.stream = nil
	}
}

// ended makes an error of reading what the kernel gets: in a directory that was
// removed there is nothing.
func (l *Listing) ended(err error) error {
	if fault.Is(err, fault.Stale) {
		l.begun, l.more = true, false
		return nil
	}
	return err
}

// nextPage reads on in a directory: all of it at once where it is known, else
// the next page that comes in.
func (l *Listing) nextPage(ctx context.Context, who mount.Caller) error {
	if !l.begun {
		if all, ok := l.reader.opt.Names.Listing(l.dir); ok {
			if len(all) <= maxSorted {
				names.SortNames(all)
			}
			l.names, l.begun, l.more = all, true, false
			return nil
		}
		l.kept = true
	}
	page, more, err := l.readPage(ctx, who, l.last())
	if err != nil {
		return err
	}
	l.add(page)
	l.begun, l.more = true, more
	return nil
}

// readAgain reads a directory again from before a place that was dropped.
func (l *Listing) readAgain(ctx context.Context, who mount.Caller, at uint64) error {
	l.stop()
	from, gone := l.before(at)
	var again []names.Named
	for more := true; more && len(again) < len(gone)+pageEntries; {
		after := from.after
		if n := len(again); n > 0 {
			after = again[n-1].Name
		}
		page, further, err := l.readPage(ctx, who, after)
		if err != nil {
			return err
		}
		again, more = append(again, page...), further
		l.more = more
	}
	l.window.goBack(at, again)
	return nil
}

// readPage takes the next page of the stream; where there is none, one begins
// behind a name.
func (l *Listing) readPage(ctx context.Context, who mount.Caller, after string) (page []names.Named, more bool, err error) {
	if l.stream == nil {
		l.stream = l.reader.readOn(who, l.dir, l.terms, after, aheadBytes)
	}
	p, err := l.stream.take(ctx)
	if err != nil {
		l.stop()
		return nil, false, err
	}
	page, more = l.reader.learnPage(l.dir, p, l.begun, &l.mark, &l.kept), p.resp.More
	if !more {
		l.stop()
	}
	return page, more, nil
}

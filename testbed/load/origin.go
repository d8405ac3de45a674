package load

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// OriginOptions say what a web site serves.
type OriginOptions struct {
	WebPages
	Age time.Duration // how long caches may keep a page
}

// OriginEvent is one request that came to the web site.
type OriginEvent struct {
	Page int    `json:"page"`
	At   int64  `json:"at_us"` // since 1970
	From string `json:"from"`
}

// Origin serves the pages at a listener, which it closes, until ctx ends. It
// writes every request for a page to out when it comes, a line of JSON each.
func Origin(ctx context.Context, at net.Listener, o OriginOptions, out io.Writer) error {
	const op fault.Op = "load.Origin"
	defer at.Close()
	if err := o.check(op); err != nil {
		return err
	}
	l := &eventLog{w: bufio.NewWriter(out)}
	s := &http.Server{Handler: o.handler(l), ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- s.Serve(at) }()
	select {
	case err := <-done:
		return fault.Wrap(fault.IO, op, at.Addr().String(), err)
	case <-ctx.Done():
	}
	err := s.Close()
	if end := <-done; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return fault.Wrap(fault.IO, op, at.Addr().String(), errors.Join(err, l.flush()))
}

// handler serves the pages. Each request is in the log before its answer.
func (o OriginOptions) handler(l *eventLog) http.Handler {
	pages := o.all()
	changed := time.Unix(1_000_000_000, 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/page-"))
		if err != nil || n < 0 || n >= len(pages) || r.URL.Path != o.path(n) {
			http.NotFound(w, r)
			return
		}
		err = errors.Join(l.add(OriginEvent{Page: n, At: time.Now().UnixMicro(), From: r.RemoteAddr}), l.flush())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", int(o.Age.Seconds())))
		http.ServeContent(w, r, "", changed, bytes.NewReader(pages[n]))
	})
}

// ReadOriginEvents reads what Origin wrote.
func ReadOriginEvents(in io.Reader) ([]OriginEvent, error) {
	return readLines[OriginEvent]("load.ReadOriginEvents", in)
}

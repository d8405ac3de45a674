package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// WebPages are the pages of one web site. Page n is always the same bytes.
type WebPages struct {
	Count int
	Bytes int // of each page
	Seed  uint64
}

func (p WebPages) check(op fault.Op) error {
	if p.Count < 1 || p.Bytes < 1 {
		return fault.E(fault.Usage, op, "pages", "a web site has one page of one byte at least")
	}
	return nil
}

// path is a page's path in its URL.
func (p WebPages) path(n int) string { return fmt.Sprintf("/page-%05d", n) }

// all makes all pages.
func (p WebPages) all() [][]byte {
	out := make([][]byte, p.Count)
	for n := range out {
		out[n] = content(p.Seed, uint64(n), p.Bytes)
	}
	return out
}

// WebOptions say which pages a client asks for, and by which proxies.
type WebOptions struct {
	WebPages
	Client  int      // tells apart clients that ask for different pages
	Origin  string   // HOST:PORT of the web site
	Proxies []string // HOST:PORT each; every request goes by a random one
	AtOnce  int      // requests in flight
	For     time.Duration
	Limit   time.Duration // of one request
}

// WebEvent is one request of a client.
type WebEvent struct {
	Page   int    `json:"page"`
	Proxy  string `json:"proxy"`
	At     int64  `json:"at_us"` // since 1970
	Took   int64  `json:"took_us"`
	Status int    `json:"status,omitempty"` // of HTTP; 0: there was no answer
	Hit    bool   `json:"hit,omitempty"`    // the proxy had it
	Err    string `json:"err,omitempty"`
	// Wrong says that the page came and was not what the origin has.
	Wrong bool `json:"wrong,omitempty"`
}

// End is when the request ended.
func (e WebEvent) End() time.Time { return time.UnixMicro(e.At + e.Took) }

// webPause is how long a worker waits after a request that failed, so that
// quick errors do not become a flood of requests.
const webPause = 200 * time.Millisecond

// proxyLimit bounds the wait for the proxies to listen.
const proxyLimit = 30 * time.Second

// Web waits until all proxies listen, and asks for random pages until o.For has
// passed. It writes every request to out as it ends, a line of JSON each, but for
// those under way at the end. Errors of requests are events.
func Web(ctx context.Context, o WebOptions, out io.Writer) error {
	const op fault.Op = "load.Web"
	if err := o.check(op); err != nil {
		return err
	}
	if len(o.Proxies) == 0 || o.AtOnce < 1 || o.Limit <= 0 {
		return fault.E(fault.Usage, op, o.Origin, "there is a proxy, a request at a time and a limit of one at least")
	}
	if err := listening(ctx, o.Proxies); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.For)
	defer cancel()
	c := webClient{o: o, pages: o.all(), log: &eventLog{w: bufio.NewWriterSize(out, 1<<16)}}
	for _, p := range o.Proxies {
		transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p}), MaxIdleConnsPerHost: o.AtOnce}
		defer transport.CloseIdleConnections()
		c.by = append(c.by, transport)
	}
	err := each(context.WithoutCancel(ctx), o.AtOnce, o.AtOnce, func(_ context.Context, i int) error {
		chance := rand.New(rand.NewPCG(o.Seed, uint64(o.Client)<<32|uint64(i)))
		for ctx.Err() == nil {
			if err := c.one(ctx, chance.IntN(o.Count), chance.IntN(len(o.Proxies))); err != nil {
				return err
			}
		}
		return nil
	})
	return fault.Wrap(fault.IO, op, o.Origin, errors.Join(err, c.log.flush()))
}

// listening returns when every proxy takes a connection.
func listening(ctx context.Context, proxies []string) error {
	ctx, cancel := context.WithTimeout(ctx, proxyLimit)
	defer cancel()
	for _, p := range proxies {
		var dialer net.Dialer
		for {
			c, err := dialer.DialContext(ctx, "tcp", p)
			if err == nil {
				c.Close()
				break
			}
			if wait(ctx, 100*time.Millisecond) != nil {
				return fault.Wrap(fault.Unreachable, "load.listening", p, err)
			}
		}
	}
	return nil
}

// webClient asks by several proxies at once.
type webClient struct {
	o     WebOptions
	pages [][]byte
	by    []http.RoundTripper // of each proxy
	log   *eventLog
}

// one asks for a page and notes what came. Only the log fails.
func (c *webClient) one(ctx context.Context, page, proxy int) error {
	e := WebEvent{Page: page, Proxy: c.o.Proxies[proxy], At: time.Now().UnixMicro()}
	err := c.ask(ctx, &e, c.by[proxy])
	if ctx.Err() != nil && err != nil {
		return nil // the time is over
	}
	e.Took = time.Now().UnixMicro() - e.At
	if err != nil {
		e.Err = err.Error()
	}
	if err := c.log.add(e); err != nil {
		return err
	}
	if e.Err != "" {
		_ = wait(ctx, webPause) // the loop sees that it is over
	}
	return nil
}

func (c *webClient) ask(ctx context.Context, e *WebEvent, by http.RoundTripper) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.o.Origin+c.o.path(e.Page), nil)
	if err != nil {
		return err
	}
	answer, err := by.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	e.Status = answer.StatusCode
	e.Hit = strings.HasPrefix(answer.Header.Get("X-Cache"), "HIT")
	if e.Status != http.StatusOK {
		return fault.E(fault.Other, "load.ask", e.Proxy, answer.Status)
	}
	if e.Wrong = !bytes.Equal(got, c.pages[e.Page]); e.Wrong {
		return fault.Errorf(fault.Corrupt, "load.ask", e.Proxy, "the page is not what the origin has: %s", difference(got, c.pages[e.Page]))
	}
	return nil
}

// difference says where bytes first differ from what is wanted, and how they go on.
func difference(got, want []byte) string {
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	const shown = 16
	return fmt.Sprintf("%d bytes instead of %d; from byte %d on %x instead of %x", len(got), len(want), at,
		got[at:min(at+shown, len(got))], want[at:min(at+shown, len(want))])
}

// ReadWebEvents reads what Web wrote.
func ReadWebEvents(in io.Reader) ([]WebEvent, error) {
	return readLines[WebEvent]("load.ReadWebEvents", in)
}

// readLines reads one value a line.
func readLines[T any](op fault.Op, in io.Reader) ([]T, error) {
	var out []T
	d := json.NewDecoder(in)
	for {
		var v T
		if err := d.Decode(&v); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return out, fault.Wrap(fault.Corrupt, op, "", err)
		}
		out = append(out, v)
	}
}

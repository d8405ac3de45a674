package load

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
)

func webPages() WebPages { return WebPages{Count: 3, Bytes: 3000, Seed: 7} }

func TestWeb_NotesWhatEachProxyAnswered(t *testing.T) {
	pages := webPages()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var answered atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answered.Add(1) == 20 {
			stop()
		}
		switch r.URL.String() {
		case "http://origin.test:80/page-00000":
			w.Header().Set("X-Cache", "HIT from here")
			_, _ = w.Write(content(pages.Seed, 0, pages.Bytes))
		case "http://origin.test:80/page-00001":
			http.Error(w, "the origin does not answer", http.StatusGatewayTimeout)
		default:
			w.Header().Set("X-Cache", "MISS from here")
			_, _ = w.Write(content(pages.Seed, 1, pages.Bytes)) // of another page
		}
	}))
	defer proxy.Close()
	at := strings.TrimPrefix(proxy.URL, "http://")
	var log bytes.Buffer
	o := WebOptions{WebPages: pages, Origin: "origin.test:80", Proxies: []string{at}, AtOnce: 4, For: time.Minute, Limit: time.Minute}
	if err := Web(ctx, o, &log); err != nil {
		t.Fatal(err)
	}
	events, err := ReadWebEvents(&log)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]int{}
	for _, e := range events {
		seen[e.Page]++
		want := WebEvent{Page: e.Page, Proxy: at, At: e.At, Took: e.Took, Status: http.StatusOK, Err: e.Err}
		switch e.Page {
		case 0:
			want.Hit, want.Err = true, ""
		case 1:
			want.Status = http.StatusGatewayTimeout
		case 2:
			want.Wrong = true
		}
		if e != want || (e.Err == "") != (e.Page == 0) {
			t.Fatalf("got %+v, want %+v", e, want)
		}
	}
	if len(seen) != 3 {
		t.Errorf("got %v, want requests for all three pages", seen)
	}
}

func TestWeb_RefusesNonsense(t *testing.T) {
	good := WebOptions{WebPages: webPages(), Origin: "origin.test:80", Proxies: []string{"127.0.0.1:1"}, AtOnce: 1, For: time.Second, Limit: time.Second}
	for name, spoil := range map[string]func(o *WebOptions){
		"no page": func(o *WebOptions) { o.Count = 0 }, "no byte": func(o *WebOptions) { o.Bytes = 0 }, "no proxy": func(o *WebOptions) { o.Proxies = nil },
		"no request": func(o *WebOptions) { o.AtOnce = 0 }, "no limit": func(o *WebOptions) { o.Limit = 0 },
	} {
		o := good
		spoil(&o)
		if err := Web(t.Context(), o, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestOrigin_ServesItsPagesAndNotesWhoAsked(t *testing.T) {
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var log bytes.Buffer
	done := make(chan error, 1)
	o := OriginOptions{WebPages: webPages(), Age: time.Hour}
	go func() { done <- Origin(ctx, at, o, &log) }()
	base := "http://" + at.Addr().String()
	ask := func(path, since string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-Modified-Since", since)
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer
	}
	first := ask(o.path(2), "")
	if first.StatusCode != http.StatusOK || first.ContentLength != int64(o.Bytes) || first.Header.Get("Cache-Control") != "max-age=3600" {
		t.Errorf("got %v, %v", first.Status, first.Header)
	}
	if again := ask(o.path(2), first.Header.Get("Last-Modified")); again.StatusCode != http.StatusNotModified {
		t.Errorf("asked whether it changed, it says %v", again.Status)
	}
	for _, path := range []string{"/", "/page-3", "/page-00003", "/page--0001", "/page-1"} {
		if got := ask(path, ""); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %v, want none", path, got.Status)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	events, err := ReadOriginEvents(&log)
	var pages []int
	for _, e := range events {
		pages = append(pages, e.Page)
	}
	if err != nil || !slices.Equal(pages, []int{2, 2}) {
		t.Errorf("got %+v, %v; want both requests for page 2 and no other", events, err)
	}
}

func TestFetch_ComparesWhatCame(t *testing.T) {
	o := OriginOptions{WebPages: webPages(), Age: time.Hour}
	var log bytes.Buffer
	site := httptest.NewServer(o.handler(&eventLog{w: bufio.NewWriter(&log)}))
	defer site.Close()
	f := FetchOptions{WebPages: webPages(), Origin: strings.TrimPrefix(site.URL, "http://"), Page: 2}
	got, err := Fetch(t.Context(), f)
	if err != nil || got.Bytes != int64(f.Bytes) || len(got.Read) != 1 || got.Ended < got.Began {
		t.Errorf("got %+v, %v", got, err)
	}
	other := f
	other.Seed++
	if _, err := Fetch(t.Context(), other); !fault.Is(err, fault.Corrupt) {
		t.Errorf("other bytes than expected: %v", err)
	}
	f.Page = 9
	if _, err := Fetch(t.Context(), f); err == nil {
		t.Error("a page that is not there: no error")
	}
}

func TestWeb_ClientsAskForDifferentPages(t *testing.T) {
	pages := WebPages{Count: 1000, Bytes: 10, Seed: 7}
	first := func(client int) []int {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex // guards asked
		var asked []int
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/page-"))
			if asked = append(asked, n); len(asked) == 3 {
				stop()
			}
			if err == nil {
				_, _ = w.Write(content(pages.Seed, uint64(n), pages.Bytes))
			}
		}))
		defer proxy.Close()
		at := []string{strings.TrimPrefix(proxy.URL, "http://")}
		o := WebOptions{WebPages: pages, Client: client, Origin: "origin.test:80", Proxies: at, AtOnce: 1, For: time.Minute, Limit: time.Minute}
		if err := Web(ctx, o, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		return asked[:3]
	}
	if a, again, b := first(0), first(0), first(1); !slices.Equal(a, again) || slices.Equal(a, b) {
		t.Errorf("client 0 asked for %v and then for %v, client 1 for %v", a, again, b)
	}
}

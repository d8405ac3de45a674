package load

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// FetchOptions say which page of a web site is fetched.
type FetchOptions struct {
	WebPages
	Origin string // HOST:PORT
	Page   int
}

// Fetch downloads a page from the web site itself, and fails where it is not what
// the web site has.
func Fetch(ctx context.Context, o FetchOptions) (SetResult, error) {
	const op fault.Op = "load.Fetch"
	if err := o.check(op); err != nil {
		return SetResult{}, err
	}
	address := "http://" + o.Origin + o.path(o.Page)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return SetResult{}, fault.Wrap(fault.Usage, op, address, err)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	r := SetResult{Began: time.Now().UnixMicro()}
	var got bytes.Buffer
	got.Grow(o.Bytes)
	took, err := timed(func() error {
		answer, err := transport.RoundTrip(request)
		if err != nil {
			return fault.Wrap(fault.Unreachable, op, address, err)
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fault.E(fault.Other, op, address, answer.Status)
		}
		_, err = io.Copy(&got, answer.Body)
		return fault.Wrap(fault.IO, op, address, err)
	})
	if err != nil {
		return r, err
	}
	if !bytes.Equal(got.Bytes(), content(o.Seed, uint64(o.Page), o.Bytes)) {
		return r, fault.E(fault.Corrupt, op, address, "is not what the web site has")
	}
	r.Ended, r.Bytes, r.Read = time.Now().UnixMicro(), int64(got.Len()), []float64{milliseconds(took)}
	return r, nil
}

package wire

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestLazyContext_MadeWhenNeeded(t *testing.T) {
	cause := errors.New("nobody waits")
	l := bareLink(t)
	ask := func(age, left time.Duration) *Request {
		return &Request{link: l, received: l.host.now() - int64(age), left: left}
	}

	r := ask(0, time.Hour)
	if err := (lazyContext{r: r}).Err(); err != nil || r.ctx != nil {
		t.Errorf("got %v, and a context %v; want none of both", err, r.ctx)
	}
	child, stop := context.WithCancel(lazyContext{r: r})
	defer stop()
	if err := child.Err(); err != nil {
		t.Errorf("what is derived has ended at once: %v", err)
	}
	r.cancel(cause)
	<-child.Done()
	if err := (lazyContext{r: r}).Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(child), cause) {
		t.Errorf("cancelled: got %v for %v", err, context.Cause(child))
	}

	r = ask(0, 0)
	r.cancel(cause)
	if err := (lazyContext{r: r}).Err(); !errors.Is(err, context.Canceled) || !errors.Is(context.Cause(lazyContext{r: r}), cause) {
		t.Errorf("cancelled before it was made: got %v for %v", err, context.Cause(lazyContext{r: r}))
	}
	r = ask(0, 0)
	r.answered = true
	if err := (lazyContext{r: r}).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("answered: got %v", err)
	}
	r = ask(time.Minute, time.Second)
	for range 2 { // being cancelled as well changes nothing
		if err := (lazyContext{r: r}).Err(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("too late: got %v", err)
		}
		r.cancel(cause)
	}
	<-lazyContext{r: r}.Done()
}

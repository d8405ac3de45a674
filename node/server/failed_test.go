package server_test

import (
	"errors"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/servertest"
)

// TestClose_FailedNodeHandsNothingOver fails an active whose loop stands, before
// or while it hands its slice over. It must end at once: a hand-over would wait
// for the loop as long as a session lasts.
func TestClose_FailedNodeHandsNothingOver(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before it ends", "while it hands over"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			c := servertest.Start(t, servertest.Options{Sites: []string{"a", "b"}, Configure: func(_ int, c *server.Config) { c.Lease, c.Session = 30*time.Second, time.Minute }})
			s := c.Active(ids.RootSlice).Server()
			goOn := make(chan struct{})
			s.StallLoop(goOn)
			if when == "before it ends" {
				s.Fail(errors.New("a test"))
			}
			closed := make(chan error, 1)
			go func() { closed <- s.Close() }()
			select {
			case <-s.Ending():
				if when != "before it ends" {
					t.Error("it ended while it led a slice and had not failed: the test looks at nothing")
				}
			case <-time.After(time.Second):
				s.Fail(errors.New("a test"))
			}
			select {
			case <-s.Ending():
			case <-time.After(10 * time.Second):
				t.Error("the node still tries to hand its slice over")
			}
			close(goOn)
			if err := <-closed; err != nil {
				t.Error(err)
			}
		})
	}
}

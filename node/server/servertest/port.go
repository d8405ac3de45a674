package servertest

import (
	"fmt"
	"testing"

	"cartwheel.dev/geo-config/freeport"
)

// ports are those of this process's nodes. They are for services: connections that begin
// here get others from the kernel, so no connection has the port of a node that is stopped
// when that starts again. No node has the port of another, of this process or one beside
// it, between its choice and its listening.
var ports freeport.Pool

// freeAddress is where a node may listen that has not listened before.
func freeAddress(t testing.TB) string {
	t.Helper()
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)
}

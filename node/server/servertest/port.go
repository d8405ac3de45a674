package servertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports from firstPort to lastPort are for services. Connections that begin here get
// others from the kernel: so no connection has the port of a node that is stopped when
// that starts again.
const firstPort, lastPort = 10_000, 32_767

// portTries bounds the ports that are tried.
const portTries = 100

// freeAddress is where a node may listen that has not listened before.
func freeAddress(t testing.TB) string {
	t.Helper()
	var err error
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		var l net.Listener
		if l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)
		}
	}
	t.Fatalf("no port is free: %v", err)
	return ""
}

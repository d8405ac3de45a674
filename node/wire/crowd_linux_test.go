package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"cartwheel.dev/node/wire/framing"
)

// crowdEnv makes the test binary a crowd of strangers: the address of the host
// and how many they are.
const crowdEnv = "CARTWHEEL_TEST_CROWD"

// What the crowd says.
const (
	crowdIsThere = "all have knocked"
	crowdDid     = "the crowd: "
)

// TestStrangers_CrowdLeavesMemoryAndPlaces: half of the strangers never speak, half
// make a handshake and let a frame trickle in. They come from many addresses,
// and come again when they are cut.
func TestStrangers_CrowdLeavesMemoryAndPlaces(t *testing.T) {
	if at := os.Getenv(crowdEnv); at != "" {
		crowd(t, at)
		return
	}
	many := 400
	if os.Getenv("CARTWHEEL_LONG") != "" {
		many = 4096
	}
	d := keepDoor(t, func(o *Options) { o.Times.Hello = 3 * time.Second })
	friend := keepDoor(t, nil)
	if err := d.AddPeer(friend.id, friend.Addresses()); err != nil {
		t.Fatal(err)
	}
	before := residentBytes(t)
	whole, stop := startCrowd(t, fmt.Sprintf("%s %s %d", d.Addresses()[0], d.id, many))
	most, slowest, behind, slowestDial, clients := int64(0), time.Duration(0), time.Duration(0), time.Duration(0), 0
	for i, after := 0, 0; after < 10; i++ {
		select {
		case <-whole: // they all have knocked by now
			after++
		default:
		}
		began := time.Now()
		client := testHost(t)
		if err := client.AddPeer(d.id, d.Addresses()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a client to get in", func() bool {
			d.greet(client.id, "ann")
			err := ask(t, client, d.id, otherMethod)
			if err != nil {
				t.Logf("client %d, after %v, %d times behind the crowd: %v", i, time.Since(began), after, err)
			}
			return err == nil
		})
		if took := time.Since(began); after > 0 {
			behind = max(behind, took)
		} else {
			slowest = max(slowest, took)
		}
		began = time.Now()
		friend.greet(d.id, "node")
		eventually(t, "the host's own dial", func() bool { return ask(t, d.Host, friend.id, otherMethod) == nil })
		slowestDial, clients = max(slowestDial, time.Since(began)), i+1
		d.Disconnect(friend.id)
		most = max(most, residentBytes(t)-before)
	}
	if n := d.Strangers(); n > d.options.Limits.Handshakes {
		t.Errorf("%d strangers have places, of %d", n, d.options.Limits.Handshakes)
	}
	t.Logf("%d strangers: at most %d KiB more in memory; %d clients were in and answered, while the crowd came after %v at most, behind it after %v; the host's own dials after %v",
		many, most>>10, clients, slowest, behind, slowestDial)
	if most > memoryFactor*64<<20 {
		t.Errorf("the process grew by %d MiB", most>>20)
	}
	t.Log(stop())
}

func ask(t *testing.T, from *Host, id string, m Method) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	b, err := from.Call(ctx, id, Operation, m, nil, nil, nil)
	b.Release()
	return err
}

// residentBytes is what the process takes of memory.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(data))[1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// startCrowd runs the crowd in a process of its own, whose memory does not
// count. Whole is closed when all of it has knocked once; stop ends it and
// returns what it says.
func startCrowd(t *testing.T, at string) (whole <-chan struct{}, stop func() string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run", "^TestStrangers_CrowdLeavesMemoryAndPlaces$", "-test.v")
	c.Env = append(os.Environ(), crowdEnv+"="+at)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	there, said := make(chan struct{}), make(chan string, 1)
	go func() {
		last := ""
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch text := lines.Text(); {
			case text == crowdIsThere:
				close(there)
			case strings.HasPrefix(text, crowdDid):
				last = text
			}
		}
		said <- last
	}()
	end := sync.OnceValue(func() string {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		last := <-said
		if err := c.Wait(); err != nil {
			t.Errorf("the crowd: %v", err)
		}
		return last
	})
	t.Cleanup(func() { end() })
	return there, end
}

// crowd is the strangers' process; it ends with its standard input.
func crowd(t *testing.T, at string) {
	var address, id string
	var many int
	if _, err := fmt.Sscan(at, &address, &id, &many); err != nil {
		t.Fatal(err)
	}
	h := testHost(t)
	if err := h.AddPeer(id, []string{address}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); end() }() // the other process ends this one
	var all sync.WaitGroup
	var dials, shakes atomic.Int64
	knock := func() {
		if dials.Add(1) == int64(many) {
			fmt.Println("\n" + crowdIsThere)
		}
	}
	for i := range many {
		all.Add(1)
		go func() {
			defer all.Done()
			again := time.NewTicker(10 * time.Second)
			defer again.Stop()
			for ctx.Err() == nil {
				if intrude(ctx, h, address, id, i, knock) {
					shakes.Add(1)
				}
				select {
				case <-again.C:
				case <-ctx.Done():
				}
			}
		}()
	}
	all.Wait()
	fmt.Printf("\n%s%d connections, %d handshakes\n", crowdDid, dials.Load(), shakes.Load())
}

// intrude is one stranger with an address of its own, until it is cut.
func intrude(ctx context.Context, h *Host, address, id string, i int, knock func()) (shaken bool) {
	_, target, err := manet.DialArgs(ma.StringCast(address))
	if err != nil {
		return false
	}
	dialler := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i>>8), byte(i))}}
	c, err := dialler.DialContext(ctx, "tcp", target)
	knock()
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if i%2 == 0 {
		_, _ = io.Copy(io.Discard, c)
		return false
	}
	wrapped, err := manet.WrapNetConn(c)
	if err != nil {
		return false
	}
	scope, err := h.transport.limits.OpenConnection(network.DirOutbound, false, wrapped.RemoteMultiaddr())
	if err != nil {
		return false
	}
	defer scope.Done()
	h.mu.RLock()
	p := h.peers[id].peer
	h.mu.RUnlock()
	secured, err := h.transport.dial[direct(Operation)].Upgrade(ctx, h.transport, newRaw(wrapped), network.DirOutbound, p, scope)
	if err != nil {
		return false
	}
	var d *directConn
	if !secured.As(&d) {
		return false
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for _, b := range (&framing.Frame{Kind: framing.Call, Method: otherMethod, Body: 1 << 20, ID: 1}).Append(nil) {
		if _, err := d.Write([]byte{b}); err != nil {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return true
		}
	}
	return true
}

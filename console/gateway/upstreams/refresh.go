package upstreams

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"cartwheel.dev/geo-config/ids"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// follow looks at the nodes until the context ends.
func (s *Source) follow(ctx context.Context) {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	for rounds := 1; ; rounds++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if rounds%int(relearnEvery/refreshEvery) == 0 {
			s.relearn(ctx)
		}
		s.refresh(ctx)
	}
}

// relearn asks the nearest node that answers for all nodes, so that those that
// joined since are used too.
func (s *Source) relearn(ctx context.Context) {
	for i, id := range s.cluster.Nearest() {
		if i == maxUpstreams || ctx.Err() != nil {
			return
		}
		one, cancel := context.WithTimeout(ctx, probeLimit)
		err := s.cluster.Refresh(one, id)
		cancel()
		if err == nil {
			return
		}
	}
}

// refresh probes the nearest nodes at the same time and puts those that are ready
// first. The others stay behind them: a probe may be wrong.
func (s *Source) refresh(ctx context.Context) {
	var addresses []string
	for _, id := range s.cluster.Nearest() {
		if a := s.address(id); a != "" && len(addresses) < maxUpstreams {
			addresses = append(addresses, a)
		}
	}
	ready := make([]bool, len(addresses))
	var probes sync.WaitGroup
	for i, a := range addresses {
		probes.Go(func() { ready[i] = s.probe(ctx, a) })
	}
	probes.Wait()
	if ctx.Err() != nil {
		return
	}
	ordered := make([]*reverseproxy.Upstream, 0, len(addresses))
	for _, want := range []bool{true, false} {
		for i, a := range addresses {
			if ready[i] == want {
				ordered = append(ordered, &reverseproxy.Upstream{Dial: a})
			}
		}
	}
	s.now.Store(&ordered)
}

// probe reports whether the admin API at an address says that it is ready.
func (s *Source) probe(ctx context.Context, address string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return false
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection serves again
	_ = resp.Body.Close()                        // nothing is written to it
	return resp.StatusCode == http.StatusOK
}

// address is the host:port of a node's admin API; empty where it is not known.
func (s *Source) address(id ids.Node) string {
	if a := s.Nodes[string(id)]; a != "" || s.Port == 0 {
		return a
	}
	n, ok := s.cluster.Node(id)
	if !ok {
		return ""
	}
	for _, text := range n.Addresses {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue
		}
		if ip, err := manet.ToIP(m); err == nil {
			return net.JoinHostPort(ip.String(), strconv.Itoa(s.Port))
		}
	}
	return ""
}

// Package upstreams is the Caddy module that finds the nodes' admin APIs: the
// nearest healthy node first, the others behind it as fall-backs. It takes the
// nodes from the cluster itself, and proxies nothing. A Source is safe for use by
// many goroutines; Cleanup joins its one refresher.
package upstreams

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
)

const (
	// refreshEvery is the pause between two looks at the nodes: a dead node is
	// left after it and one probeLimit.
	refreshEvery = time.Second
	// relearnEvery is the time after which the cluster is asked for its nodes.
	relearnEvery = 10 * time.Second
	// probeLimit bounds one question to one node, and so does dialLimit the first
	// connection to the cluster.
	probeLimit = time.Second
	dialLimit  = 10 * time.Second
	// maxUpstreams bounds the nodes that are probed, the nearest first: beyond
	// that no node is used.
	maxUpstreams = 8
)

var (
	_ caddy.Provisioner           = (*Source)(nil)
	_ caddy.Validator             = (*Source)(nil)
	_ caddy.CleanerUpper          = (*Source)(nil)
	_ caddyfile.Unmarshaler       = (*Source)(nil)
	_ reverseproxy.UpstreamSource = (*Source)(nil)
)

// Source is the upstreams of a cluster's admin API, as module
// http.reverse_proxy.upstreams.cartwheel. Nodes do not publish the address of
// their admin API, so it is Nodes[ID] or, where that is not given, the node's own
// host with Port.
type Source struct {
	// Contact is the contact file of the cluster, with the user's key.
	Contact string `json:"contact"`
	// Site is where this gateway stands; empty: unknown.
	Site string `json:"site,omitempty"`
	// Port is the port of every node's admin API that Nodes does not name; 0: none.
	Port int `json:"port,omitempty"`
	// Nodes has the host:port of the admin API by node ID.
	Nodes map[string]string `json:"nodes,omitempty"`

	cluster *contact.Cluster
	client  *http.Client
	end     context.CancelFunc
	work    sync.WaitGroup
	now     atomic.Pointer[[]*reverseproxy.Upstream]
}

// CaddyModule implements caddy.Module.
func (*Source) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.reverse_proxy.upstreams.cartwheel", New: func() caddy.Module { return new(Source) }}
}

// UnmarshalCaddyfile reads the block behind `dynamic cartwheel`:
//
//	contact FILE
//	site NAME
//	port NUMBER
//	node ID HOST:PORT
func (s *Source) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the module's name
	if d.NextArg() {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		switch key := d.Val(); key {
		case "contact":
			if !d.AllArgs(&s.Contact) {
				return d.ArgErr()
			}
		case "site":
			if !d.AllArgs(&s.Site) {
				return d.ArgErr()
			}
		case "port":
			var text string
			if !d.AllArgs(&text) {
				return d.ArgErr()
			}
			port, err := strconv.Atoi(text)
			if err != nil {
				return d.Errf("port %q is no number", text)
			}
			s.Port = port
		case "node":
			var id, address string
			if !d.AllArgs(&id, &address) {
				return d.ArgErr()
			}
			if s.Nodes == nil {
				s.Nodes = map[string]string{}
			}
			s.Nodes[id] = address
		default:
			return d.Errf("%q is no option of cartwheel: use contact, site, port or node", key)
		}
	}
	return nil
}

// Provision implements caddy.Provisioner: it connects to the cluster and starts the
// refresher. It fails where no node of the contact file answers.
func (s *Source) Provision(ctx caddy.Context) error {
	const op fault.Op = "upstreams.Provision"
	if err := s.Validate(); err != nil {
		return err
	}
	file, err := contact.Load(s.Contact)
	if err != nil {
		return fault.Wrap(fault.Invalid, op, s.Contact, err)
	}
	s.cluster, err = contact.New(contact.Options{File: file, Site: ids.Site(s.Site), Name: "gateway", Logger: ctx.Slogger(), Measure: true})
	if err != nil {
		return fault.Wrap(fault.IO, op, s.Contact, err)
	}
	begin, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	if err := s.cluster.Connect(begin); err != nil {
		return fault.Wrap(fault.Unreachable, op, s.Contact, err) // Caddy calls Cleanup
	}
	s.client = &http.Client{Timeout: probeLimit, Transport: &http.Transport{MaxIdleConnsPerHost: 1, IdleConnTimeout: 30 * time.Second}}
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	s.refresh(run)
	s.work.Go(func() { s.follow(run) })
	return nil
}

// Validate implements caddy.Validator.
func (s *Source) Validate() error {
	const op fault.Op = "upstreams.Validate"
	switch {
	case s.Contact == "":
		return fault.E(fault.Invalid, op, "contact", "is missing: name the contact file of the cluster")
	case s.Port < 0 || s.Port > 65535:
		return fault.Errorf(fault.Invalid, op, "port", "%d is no port: use 1 to 65535", s.Port)
	case s.Port == 0 && len(s.Nodes) == 0:
		return fault.E(fault.Invalid, op, "port", "is missing: give the port of the nodes' admin API, or an address for each node")
	}
	return nil
}

// Cleanup implements caddy.CleanerUpper: it ends the refresher and the connections.
func (s *Source) Cleanup() error {
	if s.end != nil {
		s.end()
	}
	s.work.Wait()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	if s.cluster == nil {
		return nil
	}
	return s.cluster.Close()
}

// GetUpstreams implements reverseproxy.UpstreamSource. The slice is the caller's.
func (s *Source) GetUpstreams(*http.Request) ([]*reverseproxy.Upstream, error) {
	const op fault.Op = "upstreams.GetUpstreams"
	known := s.now.Load()
	if known == nil || len(*known) == 0 {
		return nil, fault.E(fault.Unreachable, op, s.Contact, "no node has an admin API that this gateway knows: check port and node")
	}
	out := make([]*reverseproxy.Upstream, len(*known))
	for i, u := range *known {
		out[i] = &reverseproxy.Upstream{Dial: u.Dial} // the proxy writes to it
	}
	return out, nil
}

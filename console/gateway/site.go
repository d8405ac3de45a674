package gateway

import (
	"bytes"
	_ "embed" // the Caddyfile
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/template"

	"cartwheel.dev/geo-config/fault"
)

//go:embed Caddyfile.tmpl
var caddyfileText string

var caddyfile = template.Must(template.New("Caddyfile").Parse(caddyfileText))

// site is what a Caddyfile is made of, as options of a command.
type site struct {
	Contact string            `help:"Contact file of the cluster, with the key of the user as whom the gateway reads the tree." type:"path"`
	Console string            `help:"Folder with the built console." type:"path"`
	Listen  string            `help:"Address to listen on." default:"127.0.0.1:8080"`
	Port    int               `help:"Port of every node's admin API that --node does not name."`
	Node    map[string]string `help:"Address of one node's admin API, as ID=HOST:PORT." placeholder:"ID=HOST:PORT"`
	At      string            `help:"The site where this gateway stands." name:"site"`
	TLS     string            `help:"off (loopback only), internal (a certificate authority of its own), or acme (certificates of Let's Encrypt)." enum:"off,internal,acme" default:"off" name:"tls"`
	Name    []string          `help:"Host name that browsers use."`
	Files   string            `help:"Folder of the tree that is shown below /files/; the word none: no files." default:"/"`
	Data    string            `help:"Folder for certificates and their keys; empty: Caddy's own." type:"path"`
	Log     string            `help:"text or json." enum:"text,json" default:"json" name:"log-format"`
}

// isGiven reports whether an option was given that has no default.
func (s *site) isGiven() bool {
	return s.Contact != "" || s.Console != "" || s.Port != 0 || len(s.Node) > 0 || s.At != "" || len(s.Name) > 0 || s.Data != ""
}

// page is what the template shows.
type page struct {
	site
	Addresses string // of the site block
	Bind      string // the host part of Listen; empty: all
	Others    string // the address that takes requests for other hosts; empty: none
	// IsStrict has browsers use TLS only, from now on. They would apply it to every
	// port of localhost, so that name is spared.
	IsStrict bool
}

// render makes the Caddyfile.
func (s *site) render() ([]byte, error) {
	const op fault.Op = "gateway.render"
	p, err := s.page()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := caddyfile.Execute(&out, p); err != nil {
		return nil, fault.Wrap(fault.Other, op, "", err)
	}
	return out.Bytes(), nil
}

// page checks the options and derives the addresses.
func (s *site) page() (page, error) {
	const op fault.Op = "gateway.page"
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return page{}, fault.Wrap(fault.Usage, op, "--listen", err)
	}
	p := page{site: *s, Bind: host}
	isLocal := isLoopback(host)
	switch {
	case s.Contact == "":
		return page{}, fault.E(fault.Usage, op, "--contact", "is missing: name the contact file of the cluster")
	case s.Console == "":
		return page{}, fault.E(fault.Usage, op, "--console", "is missing: name the folder with the built console")
	case s.Port == 0 && len(s.Node) == 0:
		return page{}, fault.E(fault.Usage, op, "--port", "is missing: give the port of the nodes' admin API, or an address for each node with --node")
	case s.TLS == "off" && !isLocal:
		return page{}, fault.Errorf(fault.Usage, op, "--tls", "is off, and %s can be reached from elsewhere: passwords would cross the network in the clear. Use --tls internal or acme", s.Listen)
	case s.TLS == "acme" && len(s.Name) == 0:
		return page{}, fault.E(fault.Usage, op, "--name", "is missing: a public certificate is for a host name")
	}
	if err := s.plain(); err != nil {
		return page{}, err
	}
	names := slices.Clone(s.Name)
	if isLocal && len(names) == 0 {
		names = []string{host, "localhost"}
	} else if address, err := netip.ParseAddr(host); err == nil && !address.IsUnspecified() && len(names) == 0 {
		names = []string{host}
	}
	if len(names) == 0 {
		return page{}, fault.Errorf(fault.Usage, op, "--name", "is missing: say by which host name browsers call %s", s.Listen)
	}
	p.IsStrict = s.TLS != "off" && !slices.Contains(names, "localhost")
	scheme := "https"
	if s.TLS == "off" {
		scheme, p.Others = "http", "http://:"+port
	}
	for i, n := range names {
		names[i] = scheme + "://" + net.JoinHostPort(n, port)
	}
	p.Addresses = strings.Join(slices.Compact(names), ", ")
	return p, nil
}

// plain refuses what would end a word of a Caddyfile or start a placeholder.
func (s *site) plain() error {
	const op fault.Op = "gateway.plain"
	given := []string{s.Contact, s.Console, s.Listen, s.At, s.Files, s.Data}
	for id, address := range s.Node {
		given = append(given, id, address)
	}
	for _, text := range append(given, s.Name...) {
		if strings.ContainsAny(text, "\"`{}\\\n\r") {
			return fault.E(fault.Usage, op, text, "has a quote, a brace, a backslash or a line's end: use a name without, or --config with a Caddyfile")
		}
	}
	for _, text := range s.Name {
		if text == "" || strings.ContainsAny(text, " ,/:*") {
			return fault.E(fault.Usage, op, text, "is no host name")
		}
	}
	return nil
}

func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

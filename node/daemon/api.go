package daemon

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/version"
	"cartwheel.dev/node/api"
	"cartwheel.dev/node/api/view"
	"cartwheel.dev/node/geo/join"
	"cartwheel.dev/node/geo/remote"
	"cartwheel.dev/node/people"
	"cartwheel.dev/node/people/issuer"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/wire"
)

// tokenName is the file below the data that administrators on the node's own
// machine show to the API.
const tokenName = "api.token"

// administration is the admin API of a node. The zero value serves none.
type administration struct {
	listener net.Listener
	auth     api.Authenticator
	// admin is the configuration as an administrator may change it, over host; nil:
	// the node has no administrator's key.
	host   *wire.Host
	admin  *remote.Store
	issuer *issuer.Client // nil: none
}

// listenAPI listens where the configuration asks for it, before the node starts: an
// address that is taken ends the start at once.
func listenAPI(c *server.Config) (administration, error) {
	const op fault.Op = "daemon.listenAPI"
	if c.API == "" {
		return administration{}, nil
	}
	a := administration{}
	var err error
	if a.auth, err = api.OpenTokenFile(filepath.Join(c.Data, tokenName)); err != nil {
		return administration{}, err
	}
	if a.issuer, err = providerOf(c); err != nil {
		return administration{}, err
	}
	if c.APIKey != "" {
		key, err := wire.LoadKey(c.APIKey)
		if err != nil {
			return administration{}, err
		}
		if a.host, err = wire.New(wire.Options{Key: key}); err != nil {
			return administration{}, fault.Wrap(fault.IO, op, "api_key", err)
		}
		if a.admin, err = join.Dial(a.host, c.GeoConfig); err != nil {
			return administration{}, errors.Join(err, a.host.Close())
		}
	}
	l, err := net.Listen("tcp", c.API)
	if err != nil {
		_ = a.leave() // nothing was asked
		return administration{}, &fault.Error{Kind: fault.Busy, Op: op, Subject: "api", Public: "the node cannot listen at " + c.API + ": choose another address", Cause: err}
	}
	a.listener = l
	return a, nil
}

// keeper is the configuration, in which accounts and sessions are kept. A node's
// own key may only read them: without an administrator's key people sign in at
// another node, and their sessions count here too.
func (a administration) keeper(s *server.Server) geoconfig.Store {
	if a.admin != nil {
		return a.admin
	}
	return s.GeoConfig()
}

// providerOf returns the OIDC provider of the configuration; nil: none.
func providerOf(c *server.Config) (*issuer.Client, error) {
	if c.OIDCIssuer == "" {
		return nil, nil
	}
	data, err := os.ReadFile(c.OIDCSecretFile)
	if err != nil {
		return nil, fault.FromOS("daemon.providerOf", c.OIDCSecretFile, err)
	}
	secret, _, _ := strings.Cut(string(data), "\n")
	return issuer.New(issuer.Options{Issuer: c.OIDCIssuer, ID: c.OIDCClient, Secret: strings.TrimSpace(secret), Rand: rand.Reader,
		Redirect: strings.TrimSuffix(c.ConsoleURL, "/") + api.CallbackPath}), nil
}

// proxiesOf returns the networks of the console's servers.
func proxiesOf(c *server.Config) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.APIProxies {
		if n, err := server.ParseNetwork(text); err == nil { // the configuration was checked
			out = append(out, n)
		}
	}
	return out
}

// show serves the API of a node that has started. stop ends it, before the node
// closes.
func (a administration) show(s *server.Server, c *server.Config, key wire.Key, log *slog.Logger) (stop func()) {
	if a.listener == nil {
		return func() {}
	}
	persons := people.New(people.Options{Store: a.keeper(s), Witness: witness{key, s.ID(), s.Directory()}})
	overseer := s.Overseer()
	options := api.Options{Self: s.ID(), Site: ids.Site(c.Site), Version: version.String(), Directory: s.Directory(), Store: s.GeoConfig(),
		Asker: overseer, Past: overseer.Past(), Auth: api.Sessions{People: persons, Programs: a.auth}, People: persons, Issuer: a.issuer, Hosts: c.APIHosts, Proxies: proxiesOf(c), Settings: settings(c), Experiments: c.Experiments, GeoConfig: c.GeoConfig, Logger: log}
	if a.admin != nil {
		options.Admin = a.admin
	}
	o := api.New(options)
	hide := serveHTTP(a.listener, o.Handler(), "api", log)
	return func() {
		_ = o.Close() // it ends the streams, and always succeeds
		hide()
		_ = a.leave() // no request is left
	}
}

// leave ends the administrator's connection.
func (a administration) leave() error {
	if a.admin == nil {
		return nil
	}
	return errors.Join(a.admin.Close(), a.host.Close())
}

// drop closes the listener of a node that did not start.
func (a administration) drop() error {
	if a.listener == nil {
		return nil
	}
	return errors.Join(a.listener.Close(), a.leave())
}

// settings lists the configuration for people.
func settings(c *server.Config) []view.Setting {
	var out []view.Setting
	standard := reflect.ValueOf(server.DefaultConfig())
	v := reflect.ValueOf(*c)
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous { // a group has no key of its own
			continue
		}
		value, usual := v.FieldByIndex(f.Index), standard.FieldByIndex(f.Index)
		out = append(out, view.Setting{Key: f.Tag.Get("yaml"), Value: fmt.Sprint(value.Interface()), Default: reflect.DeepEqual(value.Interface(), usual.Interface())})
	}
	return out
}

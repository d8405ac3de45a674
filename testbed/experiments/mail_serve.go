package experiments

import (
	"context"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/testbed/load"
)

// serve makes the mailboxes and starts the servers of all sites.
func (p mailPlan) serve(ctx context.Context, b *bed, w mailWay) ([]mailServer, error) {
	uid, gid, err := mailUser()
	if err != nil {
		return nil, err
	}
	servers, err := p.mailServers(b, w)
	if err != nil {
		return nil, err
	}
	if !w.divided {
		mount, err := b.Mount(servers[0].host)
		if err == nil {
			err = mkdir(ctx, filepath.Join(mount, mailFolder))
		}
		if err != nil {
			return nil, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, s := range servers {
		g.Go(func() error {
			if err := s.prepare(uid, gid); err != nil {
				return err
			}
			users := p.homes(s)
			at := s.account()
			if w.divided {
				if err := mkdir(gctx, at); err != nil {
					return err
				}
			}
			return load.MakeMailboxes(gctx, at, users, uid, gid)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, s := range servers {
		if err := s.start(ctx, b); err != nil {
			return nil, err
		}
	}
	return servers, nil
}

// homes are the users whose mailboxes a server makes: each user has one server at
// the site that is home.
func (p mailPlan) homes(s mailServer) (out []string) {
	for n := range p.users.Count {
		if p.users.Site(n) == s.site && p.users.Server(n, p.servers) == s.number {
			out = append(out, p.users.Name(n))
		}
	}
	return out
}

// mailServers describes the servers of a way.
func (p mailPlan) mailServers(b *bed, w mailWay) (out []mailServer, err error) {
	keeper := map[string]string{} // a user's server
	for _, site := range p.users.Sites {
		number := 0
		for _, h := range b.Topology().At(site) {
			if !h.Node {
				continue
			}
			s := mailServer{way: w, host: h.Name, number: number, site: site, address: h.Address.String(), sites: p.users.Sites, dir: filepath.Join(b.Dir(), "mail-"+w.key, h.Name), logs: filepath.Join(b.Dir(), "logs")}
			for _, u := range p.homes(s) {
				keeper[u] = s.address
			}
			if s.mail = filepath.Join(s.dir, "boxes"); !w.divided {
				mount, err := b.Mount(h.Name)
				if err != nil {
					return nil, err
				}
				s.mail = filepath.Join(mount, mailFolder, p.cues)
			}
			out = append(out, s)
			number++
		}
	}
	for i := range out {
		s := &out[i]
		if s.users = p.homes(*s); !w.divided {
			s.users = slices.Sorted(maps.Keys(keeper))
			continue
		}
		s.elsewhere = maps.Clone(keeper)
		for _, u := range s.users {
			delete(s.elsewhere, u)
		}
	}
	return out, nil
}

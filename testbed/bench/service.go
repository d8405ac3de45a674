package bench

import (
	"context"
	"os"
	"path/filepath"
	"syscall"

	"cartwheel.dev/clients/cartwheel"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/clients/content"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/testbed/trial"
	"golang.org/x/sync/errgroup"
)

// service is the cluster's chunk service, used by a client of its own the way
// files use it: the same nodes, connections, batches, questions and chain of
// members, but no names, no manifests, no commits and no kernel. It is what
// HydraFS calls the raw store.
type service struct {
	client  *cartwheel.Client
	chunks  content.Remote
	object  ids.Object // whose slice the chunks belong to
	batches []*batch   // of the large file, in order, without their bodies
}

// probeEvery is every how many batches a client asks what is there already,
// while nothing is.
const probeEvery = 16

// putFlights and getFlights are how many batches are on their way at once: no
// fewer bytes than a mount has on their way for one file, so that the service is
// not held back where files are not.
const (
	putFlights = 24
	getFlights = 10
)

// openService opens a client at the demo's first site. Its chunks go to the
// slice of a file made for it on that site's mount.
func openService(ctx context.Context, d *trial.Demo) (*service, error) {
	const op fault.Op = "bench.openService"
	path := filepath.Join(d.Sites[0].Mount, "service")
	if err := writeFile(path, nil); err != nil && !os.IsExist(err) {
		return nil, err
	}
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	where, err := contact.Load(d.Contact)
	if err != nil {
		return nil, err
	}
	c, err := cartwheel.Open(ctx, cartwheel.Options{Contact: where, Site: ids.Site(d.Sites[0].Name), Name: "bench"})
	if err != nil {
		return nil, err
	}
	return &service{client: c, chunks: c.Chunks(), object: ids.Object(st.Ino)}, nil
}

func (s *service) close() error { return s.client.Close() }

// write stores the large file's bytes; on the disks of all members when it
// returns.
func (s *service) write(ctx context.Context, p place, n int64) (err error) {
	s.batches, err = storeLarge(ctx, p, n, putFlights, s.put)
	return err
}

func (s *service) put(ctx context.Context, number int, full *batch) error {
	full.name()
	sizes := make([]uint32, len(full.lengths))
	for i, n := range full.lengths {
		sizes[i] = uint32(n)
	}
	if number%probeEvery == 0 {
		missing, err := s.chunks.HaveChunks(ctx, s.object, full.addresses, sizes, full.bodies)
		if err != nil {
			return err
		}
		for i, m := range missing {
			if !m {
				return fault.E(fault.Exists, "bench.service", full.addresses[i].String(), "the chunk is there already: nothing would be measured")
			}
		}
	}
	return s.chunks.PutChunks(ctx, s.object, full.addresses, sizes, full.bodies)
}

// read reads the large file's chunks, in order.
func (s *service) read(ctx context.Context, each func(body []byte)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(getFlights)
	for _, b := range s.batches {
		g.Go(func() error {
			parts := make([]content.Part, len(b.addresses))
			for i, a := range b.addresses {
				parts[i] = content.Part{Address: a, Length: uint32(b.lengths[i]), Size: uint32(b.lengths[i])}
			}
			body, err := s.chunks.GetChunks(ctx, s.object, parts, 0)
			if err == nil && len(body) != b.bytes {
				err = fault.Errorf(fault.Corrupt, "bench.service", "", "%d bytes came, want %d", len(body), b.bytes)
			}
			if err == nil && each != nil {
				each(body)
			}
			return err
		})
	}
	return g.Wait()
}

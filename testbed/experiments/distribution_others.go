package experiments

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cartwheel.dev/clients/supervisor"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/load"
)

// torrentScript is one member of a BitTorrent swarm.
//
//go:embed torrent.py
var torrentScript []byte

// torrentPython is the Python that Debian's libtorrent is for.
const torrentPython = "/usr/bin/python3"

// torrentNeeds says what is missing for BitTorrent, with the remedy.
func torrentNeeds(ctx context.Context) error {
	if out, err := exec.CommandContext(ctx, torrentPython, "-c", "import libtorrent").CombinedOutput(); err != nil {
		return fault.Errorf(fault.NotFound, "experiments.torrentNeeds", "libtorrent",
			"the library is missing, by which the way bittorrent runs (%v: %s): as root, run scripts/setup test (Debian's python3-libtorrent), or name other ways (--set ways=one,all,hotspot,direct)", err, out)
	}
	return nil
}

// address is a port of a reader's host.
func (p place) address(b *bed, port int) string {
	h, _ := b.Topology().Host(p.host)
	return fmt.Sprintf("%v:%d", h.Address, port)
}

// pageWords describe the file as the one page of a web site.
func (p distributionPlan) pageWords(seed uint64) []string {
	return []string{"--bytes", strconv.Itoa(p.bytes), "--seed", strconv.FormatUint(seed, 10)}
}

// direct has all readers download the file at once from a web server at the origin.
func (p distributionPlan) direct(ctx context.Context, b *bed, origin place, readers []place) ([]float64, error) {
	at := origin.address(b, webPort)
	words := append([]string{origin.programs.Testbed, "load", "origin", at, "--pages", "1", "--events", filepath.Join(b.Dir(), "direct.jsonl")}, p.pageWords(b.env.Seed)...)
	server, err := b.spawn(b.Command(context.WithoutCancel(ctx), origin.host, words...), origin.host, "origin")
	if err != nil {
		return nil, err
	}
	defer server.Kill()
	if _, err := server.Ready(ctx); err != nil {
		return nil, err
	}
	return everyReader(ctx, readers, func(ctx context.Context, _ int, r place, into *load.SetResult) error {
		return r.work(ctx, into, append([]string{"fetch", at}, p.pageWords(b.env.Seed)...)...)
	})
}

// everyReader has all readers do something at once, and returns how many
// milliseconds each took for the file.
func everyReader(ctx context.Context, readers []place, fn func(ctx context.Context, i int, r place, into *load.SetResult) error) ([]float64, error) {
	took := make([]float64, len(readers))
	g, ctx := errgroup.WithContext(ctx)
	for i, at := range readers {
		g.Go(func() error {
			var r load.SetResult
			err := fn(ctx, i, at, &r)
			if err == nil {
				took[i] = r.Read[0]
			}
			return err
		})
	}
	return took, g.Wait()
}

// torrentPort is where each member of the swarm listens.
const torrentPort = 6881

// swarm is a file that is shared by BitTorrent on local disks. The member 0 has it
// from the start.
type swarm struct {
	plan      distributionPlan
	dir       string
	members   []place
	addresses []string // of the members, HOST:PORT
	start     func(member place, argv ...string) (*supervisor.Child, error)
	children  []*supervisor.Child
}

// folder is what a member has, in the form of a set of files.
func (s *swarm) folder(i int) string { return filepath.Join(s.dir, fmt.Sprintf("member-%02d", i)) }

func (s *swarm) path(name string) string { return filepath.Join(s.dir, name) }

func (s *swarm) result(i int) string { return s.path(fmt.Sprintf("result-%02d.json", i)) }

// torrent has all readers bring the file by BitTorrent from the origin and from
// each other.
func (p distributionPlan) torrent(ctx context.Context, b *bed, origin place, readers []place) ([]float64, error) {
	s := &swarm{plan: p, dir: filepath.Join(b.Dir(), "torrent"), members: append([]place{origin}, readers...)}
	for _, m := range s.members {
		s.addresses = append(s.addresses, m.address(b, torrentPort))
	}
	s.start = func(m place, argv ...string) (*supervisor.Child, error) {
		return b.spawn(b.Command(context.WithoutCancel(ctx), m.host, argv...), m.host, "torrent")
	}
	return s.bring(ctx, b.env.Seed)
}

// bring has all members but the first bring the file, and returns how many
// milliseconds each took. Every one compares what it got with what was written.
func (s *swarm) bring(ctx context.Context, seed uint64) ([]float64, error) {
	defer os.RemoveAll(s.dir)
	if err := s.prepare(ctx, seed); err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range s.children {
			c.Kill()
		}
	}()
	if err := s.listen(ctx); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.path("start"), nil, 0o644); err != nil {
		return nil, fault.FromOS("experiments.bring", s.dir, err)
	}
	took, err := everyReader(ctx, s.members[1:], func(ctx context.Context, i int, _ place, into *load.SetResult) error { return s.wait(ctx, i+1, into) })
	if err != nil {
		return nil, err
	}
	return took, s.verify(ctx, seed)
}

// prepare makes the file and its torrent.
func (s *swarm) prepare(ctx context.Context, seed uint64) error {
	const op fault.Op = "experiments.prepare"
	for i := range s.members {
		if err := os.MkdirAll(filepath.Join(s.folder(i), load.SetFolder(0)), 0o755); err != nil {
			return fault.FromOS(op, s.dir, err)
		}
	}
	if err := s.members[0].work(ctx, nil, s.plan.words("plant", s.folder(0), 0, seed)...); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("torrent.py"), torrentScript, 0o644); err != nil {
		return fault.FromOS(op, s.dir, err)
	}
	entries, err := os.ReadDir(filepath.Join(s.folder(0), load.SetFolder(0)))
	if err != nil || len(entries) != 1 {
		return fault.Errorf(fault.Other, op, s.dir, "there is one file to share, not %d: %v", len(entries), err)
	}
	file := filepath.Join(s.folder(0), load.SetFolder(0), entries[0].Name())
	out, err := exec.CommandContext(ctx, torrentPython, s.path("torrent.py"), "make", file, s.path("file.torrent")).CombinedOutput()
	if err != nil {
		return fault.Errorf(fault.Other, op, file, "cannot make the torrent: %v: %s", err, out)
	}
	return nil
}

// listen starts all members, and returns when each listens.
func (s *swarm) listen(ctx context.Context) error {
	for i, m := range s.members {
		words := []string{
			torrentPython, s.path("torrent.py"), "share", s.path("file.torrent"), filepath.Join(s.folder(i), load.SetFolder(0)), s.addresses[i], s.result(i), s.path("start"),
		}
		c, err := s.start(m, slices.Concat(words, s.addresses[:i], s.addresses[i+1:])...)
		if err != nil {
			return err
		}
		s.children = append(s.children, c)
	}
	for _, c := range s.children {
		if _, err := c.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// torrentPoll is how often a member's result is looked for.
const torrentPoll = 200 * time.Millisecond

// wait waits for a member's result.
func (s *swarm) wait(ctx context.Context, i int, into *load.SetResult) error {
	const op fault.Op = "experiments.wait"
	for {
		data, err := os.ReadFile(s.result(i))
		if err == nil {
			return fault.Wrap(fault.Other, op, s.result(i), json.Unmarshal(data, into))
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fault.FromOS(op, s.result(i), err)
		}
		if c := s.children[i]; !c.Running() {
			return fault.Errorf(fault.Other, op, c.Name, "ended by itself (%s); log: %s", c.How(), c.LogFile())
		}
		if err := sleep(ctx, torrentPoll); err != nil {
			return err
		}
	}
}

// verify has every reader compare its file with what was written.
func (s *swarm) verify(ctx context.Context, seed uint64) error {
	for i, m := range s.members[1:] {
		if err := m.work(ctx, nil, s.plan.words("read", s.folder(i+1), 1, seed)...); err != nil {
			return err
		}
	}
	return nil
}

package desktops

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"cartwheel.dev/clients/cartwheel/destination"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server"
	"cartwheel.dev/node/server/allocation"
	"cartwheel.dev/node/server/identity"
)

// office is the only site where desktops are not sites of their own.
const office = "office"

// lan is the round trip between any two desktops: placement calls them equally far.
const lan = 300 * time.Microsecond

// cartwheel is the world of Cartwheel's own rules. A client decides by
// destination.StaysWith whether a file goes to its directory's slice, and else asks
// the node on its machine: allocation.Place, with an Allocator for each desktop.
// placement.Choose, which Place calls, gives a new slice its members. All of these
// ship. What is simulated is what they need to know, the disks, and that an
// operation is refused where the disk of a member is full: nothing that ships moves
// files away then. Each user has one directory, which is made at the user's desk.
type cartwheel struct {
	o          Options
	disks      []disk
	configured roster
	allocators []*allocation.Allocator
	home       []ids.Slice // by user: the slice of the user's directory
	files      []sliceFile
	slices     []slice // as the roster's rows
	answers    map[question]ids.Slice
	cues       *pb.Cues // of every user's directory
	elsewhere  int
}

// slice is what the simulator notes of a slice.
type slice struct {
	members []int // machines, the active's first
	files   int
	bytes   int64
}

// sliceFile is a file: which slice it is in, 0 for none, and its size.
type sliceFile struct {
	slice ids.Slice
	bytes int64
}

// question is what the answer of a node depends on, while there are the same slices.
type question struct {
	machine int
	parent  ids.Slice
}

func newCartwheel(o Options, p Policy) (*cartwheel, error) {
	w := &cartwheel{o: o, disks: newDisks(o), answers: map[question]ids.Slice{}}
	if o.Copies != geoconfig.DefaultLevel {
		w.cues = &pb.Cues{RepLevel: uint32(o.Copies)}
	}
	sites := map[ids.Site]bool{}
	for i := range o.Desktops {
		name := fmt.Sprintf("desktop-%04d", i+1)
		n := geoconfig.Node{ID: ids.Node(name), Site: ids.Site(name), Incarnation: 1}
		if p == CartcartwheelOffice {
			n.Site = office
		}
		w.configured.nodes = append(w.configured.nodes, n)
		if !sites[n.Site] {
			w.configured.sites = append(w.configured.sites, geoconfig.Site{Name: n.Site})
		}
		sites[n.Site] = true
	}
	for _, n := range w.configured.nodes {
		w.allocators = append(w.allocators, w.allocator(n))
	}
	w.allocators[0].MakeRoot(context.Background())
	for i := range o.Desktops {
		home, err := w.choose(i, ids.RootSlice)
		if err != nil {
			return nil, err
		}
		w.home = append(w.home, home)
	}
	return w, nil
}

// allocator is the shipped one of a node.
func (w *cartwheel) allocator(n geoconfig.Node) *allocation.Allocator {
	c := server.DefaultConfig()
	return allocation.New(allocation.Options{
		Self: n.ID, Site: n.Site, Roster: &w.configured,
		Sites:      func() []geoconfig.Site { return w.configured.sites },
		Generation: func() ids.Generation { return 1 },
		Connected:  func(ids.Node) bool { return true },
		Distance:   func(_, _ ids.Node) (time.Duration, bool) { return lan, true },
		Measure: func(_ context.Context, _ ids.Node, to []ids.Node) map[ids.Node]time.Duration {
			out := map[ids.Node]time.Duration{}
			for _, n := range to {
				out[n] = lan
			}
			return out
		},
		Returns:       func(ids.Slice) bool { return false },
		Serves:        func(ids.Slice) bool { return true },
		Apply:         func(context.Context, geoconfig.Batch) (ids.Revision, error) { return 1, nil },
		Key:           func(kind string) string { return kind },
		Learn:         w.learn,
		ExpectedNodes: w.o.Desktops, MaxNewSlices: c.MaxNewSlices, LeaderTimeout: c.Lease,
		Clock: func() time.Duration { return 0 }, Wall: func() time.Time { return time.Unix(0, 0) }, Random: func() uint64 { return w.o.Seed },
		Logger: slog.New(slog.DiscardHandler),
	})
}

// learn takes a new slice in. What nodes answered before may be different now.
func (w *cartwheel) learn(rows ...geoconfig.SliceRow) {
	for _, r := range rows {
		members := []int{w.configured.index(r.Active)}
		for _, m := range r.Members {
			if m.Node != r.Active {
				members = append(members, w.configured.index(m.Node))
			}
		}
		w.configured.rows = append(w.configured.rows, r)
		w.slices = append(w.slices, slice{members: members})
	}
	clear(w.answers)
}

// choose says to which slice an object goes that is made at a machine in a directory
// of some slice.
func (w *cartwheel) choose(machine int, parent ids.Slice) (ids.Slice, error) {
	row, ok := w.configured.Slice(parent)
	if !ok {
		return 0, fault.E(fault.NotFound, "desktops.choose", fmt.Sprint(parent), "there is no such slice")
	}
	active, _ := w.configured.Node(row.Active)
	if destination.StaysWith(row, cue.Policy(w.cues, w.configured.nodes[machine].Site), active.Site) {
		return parent, nil
	}
	q := question{machine, parent}
	if s, ok := w.answers[q]; ok {
		return s, nil
	}
	who := &identity.Who{User: ids.User(w.configured.nodes[machine].ID)}
	m, err := w.allocators[machine].Place(context.Background(), who, &pb.PlaceRequest{Parent: uint64(ids.NewObject(parent, 1)), Cues: w.cues})
	if err != nil {
		return 0, err
	}
	s := ids.Slice(m.(*pb.PlaceResponse).Slice)
	w.answers[q] = s
	return s, nil
}

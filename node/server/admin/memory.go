package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/replica"
	"cartwheel.dev/node/server/cluster"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/server/operate"
)

// slicesOfAnswer bounds the slices in one answer of Recall, so that it fits into a
// frame.
const slicesOfAnswer = 1000

// reachLimit bounds how long Recall waits for geo-config to see whether it is there.
const reachLimit = 500 * time.Millisecond

// Configuration is the node's copy of the configuration.
type Configuration interface {
	Promise(ids.Generation) error
	Floor() ids.Generation
	Copy() geoconfig.Rows
}

// Memory tells an administrator what this node remembers of the configuration. It is
// safe for concurrent use. Every field is needed, and none changes.
type Memory struct {
	Self          ids.Node
	Configuration Configuration
	// Held returns the rows by which the node acts in the slices that it has a copy of.
	// After a crash they may be newer than its copy of the configuration.
	Held func(context.Context) ([]geoconfig.SliceRow, error)
	// Records returns the records that the node knows.
	Records func() ([]geoconfig.Record, error)
	// Store is the configuration store, which may be away.
	Store interface {
		Read(context.Context, geoconfig.Query) (geoconfig.Rows, error)
	}
	// GeoConfig lists where the node looks for it.
	GeoConfig []string
	Logger    *slog.Logger
}

// Recall answers an administrator who rebuilds geo-config: docs/design.md, 3.1. The
// audit log is lost, so the node's own log tells of a promise. Errors: Permission,
// and those of Configuration.Promise.
func (m *Memory) Recall(ctx context.Context, w *identity.Who, req *pb.RecallRequest) (proto.Message, error) {
	const op fault.Op = "admin.Recall"
	if err := w.Order(op); err != nil {
		return nil, err
	}
	if g := ids.Generation(req.Generation); g != 0 {
		if err := m.Configuration.Promise(g); err != nil {
			return nil, err
		}
		m.Logger.Warn("geo-config is rebuilt: this node obeys no earlier one", slog.Uint64("generation", req.Generation), slog.String("by", string(w.User)))
	}
	held, err := m.Held(ctx)
	if err != nil {
		return nil, err
	}
	c := rebuild.Copy{Node: m.Self, GeoConfig: m.GeoConfig, Rows: m.Configuration.Copy()}
	c.Floor = m.Configuration.Floor()
	c.Rows.Slices = rebuild.Highest(append(c.Rows.Slices, held...))
	c.Rows.Slices, c.Rows.More = page(c.Rows.Slices, ids.Slice(req.SlicesFrom))
	if req.SlicesFrom == 0 {
		if c.Rows.Records, err = m.Records(); err != nil {
			return nil, err
		}
		c.Reaches = m.reaches(ctx, c.Floor)
	} else {
		c.Rows.Sites, c.Rows.Nodes, c.Rows.Users = nil, nil, nil
	}
	body, err := json.Marshal(c)
	return &pb.RecallResponse{Copy: body}, fault.Wrap(fault.Other, op, string(m.Self), err)
}

// reaches reports whether a store answers that this node obeys.
func (m *Memory) reaches(ctx context.Context, floor ids.Generation) bool {
	ctx, cancel := context.WithTimeout(ctx, reachLimit)
	defer cancel()
	rows, err := m.Store.Read(ctx, geoconfig.Query{})
	return err == nil && cluster.Obeyed(rows.Cluster, floor) == nil
}

// HeldRows returns the rows of the slices that a node has a copy of, as its replica
// core has them.
func HeldRows(ctx context.Context, loop Loop) ([]geoconfig.SliceRow, error) {
	var out []geoconfig.SliceRow
	err := loop.Ask(ctx, func(core *replica.Node, _ replica.Time) {
		loop.EachPublished(func(p *operate.Published) bool {
			if st, ok := core.Status(p.Slice); ok && st.Row != nil {
				out = append(out, st.Row.Clone())
			}
			return true
		})
	})
	return out, err
}

// page returns the rows from a slice on that one answer takes, and whether there are
// others. Rows are in the order of their slices.
func page(rows []geoconfig.SliceRow, from ids.Slice) ([]geoconfig.SliceRow, bool) {
	for len(rows) > 0 && rows[0].ID < from {
		rows = rows[1:]
	}
	if len(rows) > slicesOfAnswer {
		return rows[:slicesOfAnswer], true
	}
	return rows, false
}

package command

import (
	"context"
	"fmt"
	"io"
	gslices "slices"
	"time"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/whatif"
)

// statusLook is how often a waiting command looks how far it is.
const statusLook = time.Second

// waitView is what happened while `cartwheel status` waited.
type waitView struct {
	Seconds float64 `json:"seconds"`
	// Foreseen are the copies that were missing or under way when the command began,
	// ForeseenBytes their content, of known size; Unknown is how many are not.
	Foreseen      int   `json:"foreseen_copies"`
	ForeseenBytes int64 `json:"foreseen_bytes"`
	Unknown       int   `json:"foreseen_unknown,omitempty"`
	// MovedBytes is the content that nodes sent meanwhile to members that lacked it.
	MovedBytes int64 `json:"moved_bytes"`
}

func (v *waitView) text(w io.Writer) {
	took := time.Duration(v.Seconds * float64(time.Second)).Round(100 * time.Millisecond)
	if v.Foreseen == 0 && v.MovedBytes == 0 {
		fmt.Fprintf(w, "It took %v; no copy had to be made.\n", took)
		return
	}
	unknown := ""
	if v.Unknown > 0 {
		unknown = fmt.Sprintf(" and %d of unknown size", v.Unknown)
	}
	fmt.Fprintf(w, "It took %v; %s moved, %s in %d copies%s foreseen.\n", took, size(v.MovedBytes), size(v.ForeseenBytes), v.Foreseen, unknown)
}

// wait waits until all is well, and prints the status then. Errors: TimedOut, which
// says what is not well yet.
func (s statusCmd) wait(e *env, c *contact.Cluster) error {
	const op fault.Op = "command.wait"
	ctx, cancel := e.ctx, func() {}
	if s.Timeout > 0 {
		ctx, cancel = context.WithTimeout(e.ctx, s.Timeout)
	}
	defer cancel()
	began := time.Now()
	moved := movedBytes{}
	waited := foresee(e, c)
	said, before := "", "the nodes were not asked yet"
	for {
		v, views := survey(e, c)
		waited.MovedBytes = moved.add(v.Nodes)
		rest := unsettled(e, c, v, views)
		if rest == "" && before == "" { // twice: nodes hear of an order a moment after it
			waited.Seconds = time.Since(began).Seconds()
			v.Waited = &waited
			return e.print(v, v.text)
		}
		before = rest
		if rest != "" && rest != said {
			said = rest
			fmt.Fprintf(e.stdio.Err, "%s; %s moved\n", rest, size(waited.MovedBytes))
		}
		select {
		case <-ctx.Done():
			if e.ctx.Err() != nil {
				return fault.Wrap(fault.Canceled, op, "", e.ctx.Err())
			}
			return fault.Errorf(fault.TimedOut, op, "", "still after %v: %s", s.Timeout, said)
		case <-time.After(statusLook):
		}
		refresh(e, c, v.Nodes)
	}
}

// refresh learns from some node of nodes that joined or are drained.
func refresh(e *env, c *contact.Cluster, nodes []nodeView) {
	for _, n := range nodes {
		if !n.Reachable {
			continue
		}
		ctx, cancel := context.WithTimeout(e.ctx, askLimit)
		err := c.Refresh(ctx, n.ID)
		cancel()
		if err == nil {
			return
		}
	}
}

// movedBytes has by node what it had moved when it was first and last seen. A node
// that starts anew counts from zero.
type movedBytes map[ids.Node]struct{ last, sum int64 }

// add takes in what the nodes say now, and returns what they moved since the first time.
func (m movedBytes) add(nodes []nodeView) (total int64) {
	for _, n := range nodes {
		x, seen := m[n.ID]
		if n.Reachable {
			switch {
			case n.Moved < x.last:
				x.sum += n.Moved
			case seen:
				x.sum += n.Moved - x.last
			}
			x.last = n.Moved
			m[n.ID] = x
		}
		total += x.sum
	}
	return total
}

// foresee says what is to be copied, as far as the nodes tell: what members lack that
// are catching up, at most, and what the nodes will do next.
func foresee(e *env, c *contact.Cluster) (v waitView) {
	state, err := clusterState(e, c)
	if err != nil {
		return v
	}
	for i := range state.Slices {
		row := &state.Slices[i]
		for _, m := range row.Members {
			switch {
			case !m.State.Junior():
			case row.Bytes == whatif.UnknownSize:
				v.Foreseen, v.Unknown = v.Foreseen+1, v.Unknown+1
			default:
				v.Foreseen, v.ForeseenBytes = v.Foreseen+1, v.ForeseenBytes+row.Bytes
			}
		}
	}
	o, err := whatif.Predict(state, nil, whatif.Assumptions{})
	if err != nil {
		return v
	}
	for _, l := range o.Copies {
		v.Foreseen, v.ForeseenBytes, v.Unknown = v.Foreseen+l.Slices, v.ForeseenBytes+l.Bytes, v.Unknown+l.Unknown
	}
	return v
}

// unsettled says what is still to happen; empty: nothing.
func unsettled(e *env, c *contact.Cluster, v statusView, views []sliceView) string {
	if !v.Healthy {
		return v.Sentence
	}
	catching, drained := 0, 0
	for _, s := range views {
		if gslices.ContainsFunc(s.Members, func(m member) bool { return m.State != geoconfig.Normal.String() }) {
			catching++
		}
		if gslices.ContainsFunc(s.Members, func(m member) bool { row, _ := c.Node(m.Node); return row.Draining }) {
			drained++
		}
	}
	switch {
	case drained > 0:
		return fmt.Sprintf("%d slices have copies at nodes that are drained", drained)
	case catching > 0:
		return fmt.Sprintf("%d slices have members that catch up", catching)
	}
	state, err := clusterState(e, c)
	if err != nil {
		return explain(err)
	}
	o, err := whatif.Predict(state, nil, whatif.Assumptions{})
	if err != nil {
		return explain(err)
	}
	if len(o.Slices) > 0 {
		return fmt.Sprintf("%d slices have copies that are not where they should be", len(o.Slices))
	}
	return ""
}

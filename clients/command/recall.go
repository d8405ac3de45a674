package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"cartwheel.dev/clients/contact"
	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/rebuild"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/wire"
)

// recalled is what the nodes remember of the configuration.
type recalled struct {
	copies []rebuild.Copy
	// silent says why the other nodes gave no copy.
	silent map[ids.Node]error
}

// recall asks all nodes what they remember. A generation above 0 has them promise to
// obey no store of a lower one.
func recall(e *env, c *contact.Cluster, generation ids.Generation) (recalled, error) {
	out := recalled{silent: map[ids.Node]error{}}
	answers := askAll(e, c, func(ctx context.Context, c *contact.Cluster, id ids.Node) (rebuild.Copy, error) {
		return recallOne(ctx, c, id, generation)
	})
	var last error
	for _, a := range answers {
		switch fault.KindOf(a.err) {
		case fault.None:
			out.copies = append(out.copies, a.value)
		case fault.Conflict:
			return out, a.err // another rebuild runs
		default:
			out.silent[a.id], last = a.err, a.err
		}
	}
	if len(out.copies) == 0 {
		return out, fault.Wrap(fault.Unreachable, "command.recall", "the nodes", last)
	}
	return out, nil
}

// recallOne asks one node, page by page.
func recallOne(ctx context.Context, c *contact.Cluster, id ids.Node, generation ids.Generation) (rebuild.Copy, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var out rebuild.Copy
	req := &pb.RecallRequest{Generation: uint64(generation)}
	for {
		var a pb.RecallResponse
		if _, err := c.Call(ctx, id, wire.Operation, method.Recall, req, nil, &a); err != nil {
			return out, err
		}
		var page rebuild.Copy
		if err := json.Unmarshal(a.Copy, &page); err != nil {
			return out, fault.Wrap(fault.Corrupt, "command.recall", string(id), err)
		}
		if req.SlicesFrom == 0 {
			out = page
		} else {
			out.Rows.Slices = append(out.Rows.Slices, page.Rows.Slices...)
		}
		n := len(page.Rows.Slices)
		if !page.Rows.More || n == 0 {
			return out, nil
		}
		req.SlicesFrom = uint32(page.Rows.Slices[n-1].ID) + 1
	}
}

// acceptFlags name the slices whose loss an operator accepts.
type acceptFlags struct {
	AcceptLoss []string `help:"Number of a slice that goes on without its silent members, or all: what only these have is lost. May be repeated." placeholder:"SLICE"`
}

// accept says which slices the flags name.
func (f acceptFlags) accept() (func(ids.Slice) bool, error) {
	all, named := false, map[ids.Slice]bool{}
	for _, word := range f.AcceptLoss {
		if word == "all" {
			all = true
			continue
		}
		var id uint32
		if n, err := fmt.Sscanf(word, "%d", &id); n != 1 || err != nil || fmt.Sprint(id) != word || id == 0 || ids.Slice(id) > ids.MaxSlice {
			return nil, fault.E(fault.Usage, "command.accept", "--accept-loss", word+" is no slice: give its number, as `cartwheel slice ls` shows it, or all")
		}
		named[ids.Slice(id)] = true
	}
	return func(id ids.Slice) bool { return all || named[id] }, nil
}

// unknown refuses slices that the flags name and that there are none of.
func (f acceptFlags) unknown(known []rebuild.Slice) error {
	for _, word := range f.AcceptLoss {
		found := word == "all"
		for i := range known {
			found = found || fmt.Sprint(uint32(known[i].Was.ID)) == word
		}
		if !found {
			return fault.E(fault.NotFound, "command.accept", "slice "+word, "no node that answered knows this slice: give the number of one that waits")
		}
	}
	return nil
}

// trustOthers lists the nodes whose configuration names another geo-config server
// than the one with this identity.
func trustOthers(copies []rebuild.Copy, server string) []ids.Node {
	var out []ids.Node
	for i := range copies {
		for _, a := range copies[i].GeoConfig {
			if !strings.HasSuffix(a, "/p2p/"+server) {
				out = append(out, copies[i].Node)
				break
			}
		}
	}
	return out
}

// userOf names the user of a key.
func userOf(users []geoconfig.User, key string) string {
	for _, u := range users {
		if u.Key == key {
			return string(u.Name)
		}
	}
	return key
}

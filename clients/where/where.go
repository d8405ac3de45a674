// Package where describes where an object of the tree is and why, for people and for
// programs: the command line and the console's gateway show the same. It asks
// nobody: a client of the cluster answers Attribute. Views are plain values.
package where

import (
	"encoding/json"
	"strings"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/status"
)

// The extended attributes that a client answers for any object.
const (
	// Attribute has the JSON of status.Where.
	Attribute = "user.cartwheel.where"
	// Cues has the cues in force, as components of a path.
	Cues = "user.cartwheel.cues"
)

// Member is a node that has a copy of the object's slice.
type Member struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	// State is N of a full member, R or M of one that is being filled, F of one
	// that failed.
	State string `json:"state,omitempty"`
}

// Read is the copy that the client reads, and why that one.
type Read struct {
	Node ids.Node `json:"node"`
	Site ids.Site `json:"site"`
	Why  string   `json:"why"`
}

// View is where an object is. Its size is in bytes.
type View struct {
	Path     string            `json:"path"`
	Object   string            `json:"object"`
	Slice    ids.Slice         `json:"slice"`
	Epoch    ids.Epoch         `json:"epoch"`
	Cues     map[string]string `json:"cues"` // those that are kept with the object
	Policy   geoconfig.Policy  `json:"policy"`
	Active   Member            `json:"active"`
	Standbys []Member          `json:"standbys"`
	Read     Read              `json:"read"`
	Size     uint64            `json:"size"`
	Version  uint64            `json:"version"`
}

// Parse reads the value of Attribute of the object at a path. It answers Corrupt
// where that is not JSON of status.Where.
func Parse(path string, value []byte) (View, error) {
	const op fault.Op = "where.Parse"
	var r status.Where
	if err := json.Unmarshal(value, &r); err != nil {
		return View{}, fault.Wrap(fault.Corrupt, op, path, err)
	}
	v := View{
		Path: path, Object: r.Object.String(), Slice: r.Slice, Epoch: r.Epoch, Policy: r.Policy, Size: r.Size, Version: r.Version,
		Cues: map[string]string{}, Active: memberOf(r.Active), Standbys: []Member{}, Read: Read{Node: r.Read, Why: r.Why},
	}
	for _, c := range r.Cues {
		name, value, _ := strings.Cut(strings.TrimPrefix(c, "."), "=")
		v.Cues[name] = value
	}
	for _, m := range r.Others {
		v.Standbys = append(v.Standbys, memberOf(m))
	}
	for _, m := range append([]status.Member{r.Active}, r.Others...) {
		if m.Node == r.Read {
			v.Read.Site = m.Site
		}
	}
	return v, nil
}

func memberOf(m status.Member) Member { return Member{Node: m.Node, Site: m.Site, State: m.State} }

package plan

import (
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
)

const op fault.Op = "plan.Batch"

// Bounds of what a row may hold.
const (
	maxKeyBytes     = 128
	maxTextBytes    = 4096
	maxAddresses    = 32
	maxAddressBytes = 512
	maxGroups       = 1024
	maxMembers      = 64
	maxCoherence    = 24 * time.Hour
)

// Names may stand in a path component, a URL and a shell command as they are:
// letters and digits, and after the first byte also these.
const (
	siteMarks    = "_.-"
	userMarks    = "_.@-"
	idMarks      = "_-"
	maxNameBytes = 63
	maxIDBytes   = 128
)

func sane(name, marks string, most int) bool {
	for i, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || strings.IndexByte(marks, c) < 0) {
			return false
		}
	}
	return name != "" && len(name) <= most
}

func invalid(key geoconfig.RowKey, format string, args ...any) error {
	return fault.Errorf(fault.Invalid, op, key.String(), format, args...)
}

// CheckKey checks a batch's key.
func CheckKey(key string) error {
	if key == "" || len(key) > maxKeyBytes {
		return fault.Errorf(fault.Invalid, op, "", "a batch needs a key of 1 to %d bytes, this one has %d", maxKeyBytes, len(key))
	}
	return nil
}

// Shape checks what can be seen without the store.
func Shape(b geoconfig.Batch) error {
	if err := CheckKey(b.Key); err != nil {
		return err
	}
	n := b.Len()
	if n == 0 {
		return fault.E(fault.Invalid, op, "", "the batch is empty")
	}
	if n > geoconfig.MaxBatchRows {
		return fault.Errorf(fault.TooLarge, op, "", "the batch has %d rows, more than %d: split it", n, geoconfig.MaxBatchRows)
	}
	for _, a := range b.Audit {
		if a.Who == "" || a.Action == "" || len(a.Who)+len(a.Action)+len(a.Subject)+len(a.Detail) > maxTextBytes {
			return fault.Errorf(fault.Invalid, op, "audit", "an audit record needs who and what, in at most %d bytes", maxTextBytes)
		}
	}
	return nil
}

func checkCluster(c geoconfig.Cluster) error {
	if !sane(string(c.ID), idMarks, maxNameBytes) {
		return invalid(geoconfig.ClusterKey(), "%q is no cluster ID: letters, digits, - and _, 63 at most", c.ID)
	}
	if b, err := hex.DecodeString(c.Secret); err != nil || len(b) != 0 && len(b) != 32 {
		return invalid(geoconfig.ClusterKey(), "the secret is not 64 hexadecimal digits")
	}
	return nil
}

func checkSite(s geoconfig.Site) error {
	if !sane(string(s.Name), siteMarks, maxNameBytes) {
		return invalid(s.Key(), "%q is no site name: letters, digits, and ._- after the first, 63 at most", s.Name)
	}
	if strings.EqualFold(string(s.Name), "random") {
		return invalid(s.Key(), "%q has a meaning of its own in the cue .Site=: take another name", s.Name)
	}
	if len(s.Location) > maxTextBytes || !utf8.ValidString(s.Location) {
		return invalid(s.Key(), "the location is no text of at most %d bytes", maxTextBytes)
	}
	if len(s.First) > geoconfig.MaxFirst {
		return invalid(s.Key(), "%d slices are repaired first, more than %d", len(s.First), geoconfig.MaxFirst)
	}
	for i, id := range s.First {
		if id == 0 || id > ids.MaxSlice || i > 0 && s.First[i-1] >= id {
			return invalid(s.Key(), "slice %d is no slice, is there twice, or is out of order", id)
		}
	}
	if s.Balance != nil {
		if wrong := s.Balance.Check(); wrong != "" {
			return invalid(s.Key(), "%s", wrong)
		}
	}
	return checkBudgets(s)
}

// checkBudgets checks the budgets in a site's row. The other site may be gone: then
// nothing is sent there.
func checkBudgets(s geoconfig.Site) error {
	if len(s.Budgets) > geoconfig.MaxBudgets {
		return invalid(s.Key(), "%d budgets, more than %d", len(s.Budgets), geoconfig.MaxBudgets)
	}
	for i, b := range s.Budgets {
		if !sane(string(b.Other), siteMarks, maxNameBytes) {
			return invalid(s.Key(), "%q is no site name", b.Other)
		}
		if wrong := b.Check(s.Name); wrong != "" {
			return invalid(s.Key(), "%s", wrong)
		}
		if i > 0 && s.Budgets[i-1].Other >= b.Other {
			return invalid(s.Key(), "the budget with %s is there twice, or out of order", b.Other)
		}
	}
	return nil
}

func checkNode(n geoconfig.Node) error {
	if !sane(string(n.ID), idMarks, maxIDBytes) {
		return invalid(n.Key(), "%q is no peer ID", n.ID)
	}
	if len(n.Addresses) > maxAddresses {
		return invalid(n.Key(), "%d addresses, more than %d", len(n.Addresses), maxAddresses)
	}
	for _, a := range n.Addresses {
		if !strings.HasPrefix(a, "/") || len(a) > maxAddressBytes {
			return invalid(n.Key(), "%q is no multiaddress", a)
		}
	}
	for _, v := range append([]float64{n.Coordinate.Height, n.Coordinate.Error}, n.Coordinate.Vector...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return invalid(n.Key(), "the coordinate is not finite")
		}
	}
	if len(n.Together) > geoconfig.MaxNeighbours || len(n.Apart) > geoconfig.MaxNeighbours {
		return invalid(n.Key(), "%d and %d neighbours, more than %d", len(n.Together), len(n.Apart), geoconfig.MaxNeighbours)
	}
	for _, id := range append(slices.Clone(n.Together), n.Apart...) {
		if !sane(string(id), idMarks, maxIDBytes) {
			return invalid(n.Key(), "%q is no peer ID", id)
		}
	}
	if n.CapacityBytes < 0 || n.UsedBytes < 0 || len(n.Version) > maxKeyBytes {
		return invalid(n.Key(), "a size is negative or the version is no version")
	}
	if g := n.Giving; g != nil && (g.Slice == 0 || g.Slice > ids.MaxSlice || !sane(string(g.To), idMarks, maxIDBytes)) {
		return invalid(n.Key(), "the node gives away what is no slice, or to what is no node")
	}
	return nil
}

func checkUser(u geoconfig.User) error {
	if !sane(string(u.Name), userMarks, maxNameBytes) {
		return invalid(u.RowKey(), "%q is no user name: letters, digits, and ._@- after the first, 63 at most", u.Name)
	}
	if !sane(u.Key, idMarks, maxIDBytes) {
		return invalid(u.RowKey(), "%q is no peer ID of a public key", u.Key)
	}
	if len(u.GIDs) > maxGroups {
		return invalid(u.RowKey(), "%d groups, more than %d", len(u.GIDs), maxGroups)
	}
	if u.Join != nil {
		return checkToken(u)
	}
	if wrong := u.Check(); wrong != "" {
		return invalid(u.RowKey(), "%s", wrong)
	}
	return nil
}

// checkToken checks the row of a token, which has no rights of a user.
func checkToken(u geoconfig.User) error {
	switch {
	case u.Admin || u.TrustedHost || u.UID != 0 || len(u.GIDs) > 0:
		return invalid(u.RowKey(), "a token that joins has no uid, no gids and no other rights")
	case !sane(string(u.Join.Site), siteMarks, maxNameBytes):
		return invalid(u.RowKey(), "%q is no site name", u.Join.Site)
	case u.Join.ExpiresNS <= 0:
		return invalid(u.RowKey(), "a token that joins needs a time at which it expires")
	}
	return nil
}

// checkSlice checks a new slice row by itself.
func checkSlice(r geoconfig.SliceRow) error {
	key, p := geoconfig.SliceKey(r.ID), r.Policy
	switch {
	case r.ID == 0 || r.ID > ids.MaxSlice:
		return invalid(key, "slices are numbered 1 to %d", ids.MaxSlice)
	case r.Epoch == 0:
		return invalid(key, "the epoch is 0; the first is 1")
	case p.Level < 1 || p.Level > maxMembers:
		return invalid(key, "replication level %d is not within 1 to %d", p.Level, maxMembers)
	case p.Sites < 0 || p.Sites > p.Level:
		return invalid(key, "%d sites for %d replicas", p.Sites, p.Level)
	case p.Kind != geoconfig.Ordinary && p.Kind != geoconfig.WriteOnce:
		return invalid(key, "kind %d is unknown", p.Kind)
	case p.Coherence < 0 || p.Coherence > maxCoherence:
		return invalid(key, "time to coherence %v is not within 0 to %v", p.Coherence, maxCoherence)
	case p.Home != "" && !sane(string(p.Home), siteMarks, maxNameBytes):
		return invalid(key, "home %q is no site name", p.Home)
	case len(r.Members) == 0 || len(r.Members) > maxMembers:
		return invalid(key, "%d members are not within 1 to %d", len(r.Members), maxMembers)
	case r.Hear < 0 || r.Hear > len(r.Members):
		return invalid(key, "a takeover cannot hear %d of %d members", r.Hear, len(r.Members))
	}
	seen := make(map[ids.Node]bool, len(r.Members))
	for _, m := range r.Members {
		if m.State < geoconfig.Normal || m.State > geoconfig.Failed {
			return invalid(key, "member %s has state %d, which is unknown", m.Node, m.State)
		}
		if seen[m.Node] {
			return invalid(key, "member %s is there twice", m.Node)
		}
		seen[m.Node] = true
	}
	if active, ok := r.Member(r.Active); !ok || active.State != geoconfig.Normal {
		return invalid(key, "the active %q is no member in state N", r.Active)
	}
	return nil
}

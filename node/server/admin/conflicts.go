package admin

import (
	"context"
	"strings"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/identity"
	"cartwheel.dev/node/tree"
)

// Conflicts answers with what merges of side logs kept beside what won, and with what
// waits to be merged. It names files of all users: administrators, trusted hosts and
// nodes may ask.
func (s *Reports) Conflicts(_ context.Context, w *identity.Who, _ *pb.ConflictsRequest) (proto.Message, error) {
	const op fault.Op = "admin.Conflicts"
	if !w.Admin && !w.Trusted && !w.Node {
		return nil, fault.E(fault.Permission, op, "", "conflicts are listed for administrators")
	}
	out := &pb.ConflictsResponse{Waiting: s.o.Waiting()}
	for _, row := range s.o.Leading() {
		v := s.o.Committed(row.ID)
		list, err := tree.Conflicts(v)
		if err != nil {
			return nil, err
		}
		paths := map[ids.Object]string{}
		for _, c := range list {
			dir := ids.Object(c.Dir)
			if _, known := paths[dir]; !known {
				paths[dir] = pathIn(v, dir)
			}
			c.Slice, c.Path = uint32(row.ID), paths[dir]
		}
		out.Conflicts = append(out.Conflicts, list...)
	}
	return out, nil
}

// pathIn is the path of a directory as far as its slice knows it.
func pathIn(v tree.View, dir ids.Object) string {
	names, top, err := tree.Way(v, dir)
	if err != nil || top != ids.RootObject {
		return strings.Join(append([]string{"…"}, names...), "/")
	}
	return "/" + strings.Join(names, "/")
}

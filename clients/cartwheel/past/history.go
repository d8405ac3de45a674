package past

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"cartwheel.dev/clients/cartwheel/calls"
	"cartwheel.dev/clients/history"
	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/cue"
	"cartwheel.dev/node/hlc"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/protocol/pb"
)

const (
	// maxMeanings bounds the objects of a name whose versions are asked for.
	maxMeanings = 64
	// maxLines bounds the versions of one answer, which must fit an extended attribute.
	maxLines = 256
)

// answer is a HistoryResponse as Ask takes it: it is never of a copy.
type answer struct{ *pb.HistoryResponse }

// GetCopy implements calls.Answer.
func (answer) GetCopy() *pb.Copy { return nil }

// historyOf answers the attribute with the versions of a name of a directory, of the
// present or below .Snapshot. What this mount made in the present is sent first.
func historyOf(ctx context.Context, f *FileSystem, who mount.Caller, id mount.Inode, name string) ([]byte, error) {
	const op fault.Op = "past.historyOf"
	n := f.table.get(id)
	if !isPast(id) {
		o, cues, ok := f.opt.Find(id)
		if !ok {
			return nil, staleNode
		}
		if err := f.Inner.FsyncDir(ctx, who, id, 0, false); err != nil {
			return nil, err
		}
		n = &node{place: place{object: o, cues: cues}}
	}
	if n == nil {
		return nil, staleNode
	}
	if name == "" {
		return nil, fault.E(fault.NoAttribute, op, history.Attribute, "the attribute ends with a name of the directory")
	}
	ctx, done := within(ctx, n)
	defer done()
	meant, err := versions(ctx, f, who, n, name)
	if err != nil {
		return nil, err
	}
	out := history.History{Versions: []history.Version{}, More: meant.More, Since: wallOf(meant.Since)}
	end := uint64(0) // until when the name meant that; 0: it does
	for i, v := range meant.Versions {
		older := uint64(0)
		if i+1 < len(meant.Versions) {
			older = meant.Versions[i+1].Object
		}
		if v.Object == older && older != 0 {
			continue // the entry was written again
		}
		if i >= maxMeanings || len(out.Versions) >= maxLines {
			out.More = true
			break
		}
		lines, err := meaning(ctx, f, who, n, v, end, meant.Since)
		if err != nil {
			return nil, err
		}
		out.Versions = append(out.Versions, lines...)
		end = v.Hlc
	}
	if len(out.Versions) > maxLines {
		out.Versions, out.More = out.Versions[:maxLines], true
	}
	return json.Marshal(out)
}

// versions asks for the versions of a name of a directory or, without a name, of an
// object.
func versions(ctx context.Context, f *FileSystem, who mount.Caller, n *node, name string) (resp *pb.HistoryResponse, err error) {
	err = calls.AsCaller(who, func(p *pb.Principal) error {
		_, err := f.opt.Ask.Ask(ctx, n.object.Slice(), p, method.History, func(h *pb.ReadHeader) (proto.Message, calls.Answer) {
			resp = &pb.HistoryResponse{}
			return &pb.HistoryRequest{Header: asOf(h, n, f.ticketOf(n)), Object: uint64(n.object), Name: []byte(name)}, answer{resp}
		})
		return err
	})
	return resp, err
}

// meaning is the versions of an object from when a name came to mean it, until an end,
// newest first.
func meaning(ctx context.Context, f *FileSystem, who mount.Caller, dir *node, v *pb.HistoryResponse_Version, end, since uint64) ([]history.Version, error) {
	if v.Object == 0 {
		return []history.Version{{Time: wallOf(v.Hlc), What: history.Removed}}, nil
	}
	o := &node{place: place{object: ids.Object(v.Object), at: dir.at}}
	if end != 0 {
		o.at = hlc.Time(end - 1)
	}
	records, err := versions(ctx, f, who, o, "")
	switch {
	case fault.Is(err, fault.Invalid) || fault.Is(err, fault.Stale):
		records = &pb.HistoryResponse{} // its slice retains less than the directory's
	case err != nil:
		return nil, err
	}
	return lines(records.Versions, v, end, since), nil
}

// lines tells what became of an object from when a name came to mean it, until an end.
func lines(records []*pb.HistoryResponse_Version, v *pb.HistoryResponse_Version, end, since uint64) (out []history.Version) {
	first := history.Version{Time: wallOf(v.Hlc), What: history.Created, Object: ids.Object(v.Object).String(), Snapshot: cueOf(max(v.Hlc, since))}
	line := func(r *pb.HistoryResponse_Version, what string) history.Version {
		x := first
		x.Time, x.What, x.Snapshot = wallOf(r.Hlc), what, cueOf(max(r.Hlc, since))
		if r.Mode&mount.TypeMask == mount.TypeRegular {
			x.Size = r.Size
		}
		return x
	}
	began := false
	for i, r := range records {
		switch {
		case end != 0 && r.Hlc >= end || r.Object == 0:
		case r.Hlc > v.Hlc:
			if i+1 == len(records) || records[i+1].Version != r.Version {
				out = append(out, line(r, history.Written))
			}
		case !began:
			began = true
			at := first.Time
			// A rename changes the object, too; one that was made apart is as it was.
			if first = line(r, history.Created); r.Hlc == v.Hlc && i+1 < len(records) {
				first.What = history.Renamed
			}
			first.Time, first.Snapshot = at, cueOf(max(v.Hlc, since))
		}
	}
	if v.Hlc < since {
		first.What = history.Earlier
	}
	out = append(out, first)
	slices.SortStableFunc(out, func(a, b history.Version) int { return cmp.Compare(b.Time.UnixNano(), a.Time.UnixNano()) })
	return out
}

func wallOf(t uint64) time.Time { return hlc.Time(t).Wall().UTC() }

// cueOf is the cue that shows the tree as of a time.
func cueOf(t uint64) string {
	return cue.Cue{Name: cue.Snapshot, Text: wallOf(t).Format(time.RFC3339Nano)}.String()
}

// isHistory reports whether an attribute is a name's history, and of which name.
func isHistory(attribute string) (name string, is bool) {
	return strings.CutPrefix(attribute, history.Attribute)
}

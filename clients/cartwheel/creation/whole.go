package creation

import (
	"context"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
)

// WholeLimit is up to how many bytes a file is made with all of its content in one
// operation.
const WholeLimit = 64 << 10

// Whole makes a write-once file with all of its content, at most WholeLimit bytes, in
// one operation: others see it complete, or not at all. It makes nothing and returns
// false where the file belongs in another slice than its directory.
func (k *Maker) Whole(ctx context.Context, m Request, content []byte) (Made, bool, error) {
	if err := CheckName(m.Name); err != nil {
		return Made{}, false, err
	}
	out, cancel := k.opt.Remotely(ctx)
	defer cancel()
	dir, err := k.opt.Calls.Attr(out, m.Dir)
	if err != nil {
		return Made{}, false, err
	}
	own := m.Cues.Only(m.Call).Persistent()
	slice, err := k.opt.Destination.Choose(out, dir, own)
	if err != nil || slice != m.Dir.Slice() {
		return Made{}, false, nil // the ordinary way says what is wrong, if anything is
	}
	m.Create.Cues, m.Create.Dir, m.Create.Name, m.Create.Umask = own, uint64(m.Dir), []byte(m.Name), m.Who.Umask
	m.Create.Exclusive, m.Create.Commit = true, &pb.Commit{Seal: true}
	if len(content) > 0 {
		m.Create.Commit.Extents = []*pb.Extent{{Length: uint64(len(content)), Source: &pb.Extent_BodyOffset{}}}
		m.Body = [][]byte{content}
	}
	made, err := k.makeIn(out, m, dir, ids.Object(dir.Object).Slice())
	return made, true, err
}

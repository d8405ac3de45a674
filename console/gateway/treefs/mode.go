package treefs

import (
	"context"
	"fmt"
	"strconv"

	"cartwheel.dev/clients/mount"
	"cartwheel.dev/geo-config/fault"
)

const (
	// permissions are the bits that the gateway changes; it keeps the others.
	permissions = 0o777
	// special are the set-id and sticky bits.
	special = 0o7000
)

// parseMode reads an octal mode of one to four digits.
func parseMode(text string) (uint32, error) {
	const op fault.Op = "treefs.parseMode"
	mode, err := strconv.ParseUint(text, 8, 12)
	if err != nil || len(text) > 4 {
		return 0, fault.E(fault.Invalid, op, "mode", "has to be one to four octal digits, like 0640")
	}
	return uint32(mode), nil
}

// setMode gives the file or folder at a path below Root a mode, as its owner may.
// The set-id and sticky bits stay as they are: a mode that gives others than the
// object has is refused, and one that gives none keeps them.
func (f *FS) setMode(ctx context.Context, name string, mode uint32) error {
	const op fault.Op = "treefs.setMode"
	e, err := f.walk(name)
	if err != nil {
		return untranslated(op, name, err)
	}
	defer f.client.Forget(e.Node, 1)
	if f.who.UID != 0 && f.who.UID != e.Attr.UID {
		return fault.Errorf(fault.Permission, op, name, "belongs to uid %d, and the gateway acts as uid %d: only the owner may change the mode", e.Attr.UID, f.who.UID)
	}
	kept := e.Attr.Mode & special
	if given := mode & special; given != 0 && given != kept {
		return fault.E(fault.Invalid, op, "mode", fmt.Sprintf("may not change the set-id and sticky bits, which are %04o: change those at a mount", kept))
	}
	_, err = f.client.SetAttr(ctx, f.who, e.Node, mount.SetAttr{Valid: mount.SetMode, Mode: mode&permissions | kept})
	return fault.Wrap(fault.Other, op, name, err)
}

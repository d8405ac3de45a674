package content

import (
	"context"

	"cartwheel.dev/geo-config/fault"
)

// movedOn reports whether a read failed only because its version is no more: the
// members drop what no version names, and a member whose state was copied never
// had it. The file is then at another version, which is to be read instead.
// Where it is at the same version still, something was lost, and the error stands.
func (f *file) movedOn(ctx context.Context, read *version, err error) bool {
	if read == nil || !fault.Is(err, fault.Missing) {
		return false
	}
	f.invalidate()
	if f.lockKnown(ctx) != nil {
		return false
	}
	defer f.mu.Unlock()
	return f.base.serial != read.serial
}

// versionsRead bounds the versions that one call tries to read.
const versionsRead = 10

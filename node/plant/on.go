//go:build plants

package plant

import "os"

// Built says whether this program can make the mistakes.
const Built = true

// chosen is the mistake that this process makes, for all its life.
var chosen = Name(os.Getenv("CARTWHEEL_PLANT")) //nolint:gochecknoglobals // it is set once, in programs that are never shipped

// On reports whether the process makes a mistake.
func On(n Name) bool { return n == chosen }

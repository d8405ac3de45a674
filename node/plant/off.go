//go:build !plants

package plant

// Built says whether this program can make the mistakes.
const Built = false

// On is false: this program makes none.
func On(Name) bool { return false }

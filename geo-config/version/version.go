// Package version says which version of Cartwheel a program is. The build sets
// it, for all programs at once. It is constant while a program runs, and so good
// for use by many goroutines.
package version

import "runtime/debug"

// set is what the build says; empty: it said nothing.
var set string

// String returns the version: what the build said, else that of the module that
// the program was built from, else "development".
func String() string {
	if set != "" {
		return set
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "development"
}

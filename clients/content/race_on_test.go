//go:build race

package content_test

// Under the race detector a property test is tried fewer times.
const checks = "25"

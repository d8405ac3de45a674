//go:build !race

package store

// raced tells that the race detector runs, under which everything is several
// times slower: the tests then try fewer seeds.
const raced = false

// Package plan decides what a batch does to the rows of a store: whether every
// row still is what its writer read, whether the new rows make sense, and what
// is to be written. All stores share it, so that they agree. It is pure: no
// I/O of its own, no clock, no goroutine; the store calls it within its
// transaction and serialises those.
package plan

//go:build !windows

package database

// anyMode: a file's mode says nothing here about who may read it.
const anyMode = false

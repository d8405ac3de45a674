//go:build !race

package content_test

const checks = "100"

// Command house measures the structure of the code and the documents; see
// package house.
package main

import (
	"fmt"
	"os"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/tidy/house"
)

func main() {
	if err := house.Main(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(fault.KindOf(err).ExitCode())
	}
}

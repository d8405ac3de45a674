package command

import "cartwheel.dev/geo-config/fault"

// explain writes an error for people.
func explain(err error) string { return fault.Explain(err) }

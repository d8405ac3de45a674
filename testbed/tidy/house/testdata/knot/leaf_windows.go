package knot

var _ = (&Client{}).Lookup

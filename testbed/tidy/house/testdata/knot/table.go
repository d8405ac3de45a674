package knot

type table [most]int

func (t table) size() int { return most }

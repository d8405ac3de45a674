// Package bug lists the mistakes that the simulator's tests plant in the core,
// to show that its checkers find them. It is internal to package replica, so
// that nothing else can switch one on; a Set is a plain value, and the empty
// one, which every product uses, is no bug at all.
package bug

// Set says which mistakes to make.
type Set struct {
	AckBeforeSync    bool // acknowledge what is not on disk
	NoEpochCheck     bool // take messages of any epoch
	LeaseFromAnswer  bool // count a lease from the answer's arrival
	TakeoverHearsOne bool // take over without hearing the members that the row demands
	TakesOverAlone   bool // take over without asking the others what they have
	TrustsMatch      bool // believe that a new life has what the one before acknowledged
	LeadsAtOnce      bool // act by a row that an earlier life swapped in, in spite of promises
	KeepsRemoved     bool // keep the log of a slice whose row lists this node not
}

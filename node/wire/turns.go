package wire

import "runtime"

// turns bounds how many handshakes of strangers compute at once: as many as half
// of the processors can, so that a crowd leaves the other half to everybody
// else, and above all to who accepts connections, whose queue is in the kernel
// and knows no difference between strangers and others. Whoever waits for its
// peer gives its turn up meanwhile. Nil: no bound.
type turns chan struct{}

func newTurns() turns { return make(turns, max(1, runtime.GOMAXPROCS(0)/2)) }

// inTurn runs the handshake of an accepted connection, in turn where it is a
// stranger's. One that gave way to another meanwhile does not begin.
func (r *raw) inTurn(handshake func() error) error {
	o := r.stranger
	if o == nil || o.listed || o.pool.turns == nil {
		return handshake()
	}
	o.pool.turns <- struct{}{}
	defer func() { <-o.pool.turns }()
	if o.gone() {
		return errCrowded
	}
	r.turns = o.pool.turns
	defer func() { r.turns = nil }()
	return handshake()
}

// readInTurn reads, and lets others compute meanwhile.
func (r *raw) readInTurn(b []byte) (int, error) {
	<-r.turns
	defer func() { r.turns <- struct{}{} }()
	return r.Conn.Read(b)
}

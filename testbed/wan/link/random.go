package link

// random is a stream of chance (Steele, Lea, Flood: splitmix64): 64 bits of
// state, so that each path has its own and traffic of one does not move the
// fate of another's.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	return finish(uint64(*r))
}

func finish(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// mix makes one seed of two.
func mix(a, b uint64) uint64 { return finish(a + 0x9e3779b97f4a7c15*(b+1)) }

// share returns a number from 0 to just below 1.
func (r *random) share() float64 { return float64(r.next()>>11) / (1 << 53) }

// below reports true with that probability.
func (r *random) below(share float64) bool { return r.share() < share }

package simulation

import "math/rand/v2"

// newChance returns chance that nothing else draws from.
func newChance(seed, stream uint64) source { return source{rand.New(rand.NewPCG(seed, stream))} }

// source makes chance readable.
type source struct{ r *rand.Rand }

// Read implements io.Reader.
func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

// drift draws the rate of a clock: half of them are at one bound or the other,
// where what is promised by one clock and counted by another is shortest.
func drift(chance *rand.Rand, most float64) float64 {
	switch chance.IntN(4) {
	case 0:
		return 1 - most
	case 1:
		return 1 + most
	}
	return 1 - most + 2*most*chance.Float64()
}

package coordinates

import (
	"math"
	"math/rand/v2"
	"time"

	"cartwheel.dev/node/vivaldi"
)

// Lie is a way to lie in a network of coordinates (docs/coordinates.md, Liars).
type Lie string

// The lies.
const (
	// Nonsense: NaN, infinite, 1e12 ms, negative heights and errors.
	Nonsense Lie = "nonsense"
	// Far: a place of chance within seconds, without any error, anew each time.
	Far Lie = "far"
	// Delay: the true coordinate, but each pong waits 50 to 500 ms.
	Delay Lie = "delay"
	// Mirror: the asker's own coordinate, without any error: "I am where you are".
	Mirror Lie = "mirror"
	// Drag: all liars say that they drift the same way, 2 ms a round.
	Drag Lie = "drag"
	// Mixed: each liar one of the others.
	Mixed Lie = "mixed"
)

// Lies lists them.
func Lies() []Lie { return []Lie{Nonsense, Far, Delay, Mirror, Drag, Mixed} }

// tell returns what a liar answers instead of its coordinate of so many
// dimensions, and how much later.
func (l Lie) tell(honest, asker vivaldi.Coordinate, dimensions, liar, round int, chance *rand.Rand) (vivaldi.Coordinate, time.Duration) {
	if l == Mixed {
		l = Lies()[liar%7%(len(Lies())-1)] // 7: liars stand 10 apart, and 10 is a multiple of 5
	}
	c := honest
	c.Error = 0
	switch l {
	case Nonsense:
		bad := [...]float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 1e12, -1e12}
		v := bad[chance.IntN(len(bad))]
		switch chance.IntN(3) {
		case 0:
			c.Vector[chance.IntN(dimensions)] = v
		case 1:
			c.Height = v
		default:
			c.Error = v
		}
	case Far:
		for i := range dimensions {
			c.Vector[i] = float32(4000 * (2*chance.Float64() - 1))
		}
	case Delay:
		return honest, time.Duration(50+chance.IntN(450)) * time.Millisecond
	case Mirror:
		c = asker
		c.Error = 0
	case Drag:
		c.Vector[0] += float32(min(2*round, vivaldi.MaxPosition/2))
	}
	return c, 0
}

package coordinates

import (
	"math"
	"math/rand/v2"
	"time"

	"cartwheel.dev/node/vivaldi"
)

// member is one simulated node: the library's, or the plain algorithm to
// compare with.
type member interface {
	Next(now time.Duration) (string, bool)
	Observe(id string, rtt time.Duration, at vivaldi.Coordinate, now time.Duration) vivaldi.Verdict
	Meet(id string, at vivaldi.Coordinate, now time.Duration) bool
	Coordinate() vivaldi.Coordinate
	Estimate(id string, at vivaldi.Coordinate, now time.Duration) vivaldi.Estimate
}

var (
	_ member = (*vivaldi.Node)(nil)
	_ member = (*plain)(nil)
)

// plain is the algorithm as it was published (Dabek et al., section 2.5, with
// heights where wanted): fixed random neighbours, no filter, no defence. It is
// the twin that the library is compared with.
type plain struct {
	config     vivaldi.Config
	neighbours []string
	chance     *rand.Rand
	vector     [vivaldi.MaxDimensions]float64
	height     float64
	err        float64
}

func (p *plain) Next(time.Duration) (string, bool) {
	if len(p.neighbours) == 0 {
		return "", false
	}
	return p.neighbours[p.chance.IntN(len(p.neighbours))], true
}

// Meet takes the first that come, which the simulator draws by chance.
func (p *plain) Meet(id string, _ vivaldi.Coordinate, _ time.Duration) bool {
	for _, have := range p.neighbours {
		if have == id {
			return true
		}
	}
	if len(p.neighbours) < p.config.Neighbours {
		p.neighbours = append(p.neighbours, id)
	}
	return true
}

func (p *plain) Coordinate() vivaldi.Coordinate {
	c := vivaldi.Coordinate{Height: float32(p.height), Error: float32(p.err)}
	for i := range p.config.Dimensions {
		c.Vector[i] = float32(p.vector[i])
	}
	return c
}

func (p *plain) Estimate(_ string, at vivaldi.Coordinate, _ time.Duration) vivaldi.Estimate {
	return vivaldi.Estimate{RTT: p.Coordinate().Predict(at)}
}

func (p *plain) Observe(_ string, took time.Duration, at vivaldi.Coordinate, _ time.Duration) vivaldi.Verdict {
	rtt := float64(took) / float64(time.Millisecond)
	var u [vivaldi.MaxDimensions]float64
	var sum float64
	for i := range p.config.Dimensions {
		u[i] = p.vector[i] - float64(at.Vector[i])
		if p.err == 1 { // everybody begins at the origin
			u[i] += 1e-3 * p.chance.NormFloat64()
		}
		sum += u[i] * u[i]
	}
	length := max(math.Sqrt(sum), 1e-9)
	d := length + p.height + float64(at.Height)
	w := p.err / (p.err + float64(at.Error))
	p.err = min(1, math.Abs(d-rtt)/rtt*w*p.config.StepError+p.err*(1-w*p.config.StepError))
	force := p.config.StepPosition * w * (rtt - d)
	for i := range p.config.Dimensions {
		p.vector[i] += force * u[i] / length
	}
	if !p.config.NoHeight {
		p.height = max(0, p.height+force)
	}
	return vivaldi.Accepted
}

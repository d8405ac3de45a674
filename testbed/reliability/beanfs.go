package reliability

import "math"

// Failures are failures of one kind: how often one replica has them, and how long
// it is gone.
type Failures struct {
	Rate     float64 `json:"rate_per_s"`
	Recovery float64 `json:"recovery_s"`
}

// Volume is a volume with three replicas, as in section 6 of BeanFS's paper. A
// transient failure ends when the server is back and synchronized, a permanent one
// when another server has the replica.
type Volume struct {
	Transient Failures `json:"transient"`
	Permanent Failures `json:"permanent"`
}

// Paths are the rates at which a volume dies, that is, has no normal replica left:
// by the number of permanent failures among the three.
type Paths [4]float64

// Sum is the rate of all.
func (p Paths) Sum() float64 { return p[0] + p[1] + p[2] + p[3] }

// Paper is what the paper's Table 3 has: the second and the third failure fall into
// the recovery from the first.
func (v Volume) Paper() Paths {
	t, p := v.Transient.Rate, v.Permanent.Rate
	tt, pp := square(v.Transient.Recovery), square(v.Permanent.Recovery)
	return Paths{3 * t * t * t * tt, 3 * p * t * t * (pp + 2*tt), 3 * p * p * t * (2*pp + tt), 3 * p * p * p * pp}
}

// Overlap is the rate at which all three are gone at the same time. It is below the
// paper's where the recoveries differ: a second server may be back before a third
// one fails, although the first is still gone.
func (v Volume) Overlap() Paths {
	t, p := v.Transient.Rate, v.Permanent.Rate
	q, r := v.Transient.Recovery, v.Permanent.Recovery
	return Paths{3 * t * t * t * q * q, 3 * p * t * t * (q*q + 2*q*r), 3 * p * p * t * (r*r + 2*q*r), 3 * p * p * p * r * r}
}

// Dead is the share of volumes that die within a time.
func Dead(rate, within float64) float64 { return -math.Expm1(-rate * within) }

// TransientFor is the recovery from transient failures with which a share of
// volumes dies within a time by the paper's formulas, all else as it is. It is
// false where the permanent failures alone kill more.
func (v Volume) TransientFor(share, within float64) (float64, bool) {
	wanted := -math.Log1p(-share) / within
	v.Transient.Recovery = 0
	left := wanted - v.Paper().Sum()
	t, p := v.Transient.Rate, v.Permanent.Rate
	each := 3*t*t*t + 6*p*t*t + 3*p*p*t // by the square of the recovery
	if left < 0 || each == 0 {
		return 0, false
	}
	return math.Sqrt(left / each), true
}

func square(x float64) float64 { return x * x }

package reliability

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
	"gonum.org/v1/gonum/stat/distuv"

	"cartwheel.dev/geo-config/fault"
)

// Limits of a fleet.
const (
	maxServers  = 10_000
	maxReplicas = 8
	// maxExpected bounds the failures of one run, and maxAway the servers that are
	// gone at once.
	maxExpected = 1e8
	maxAway     = 64
)

// Fleet are servers that fail, and volumes with replicas on them. A server that fails
// for good is gone until its volumes are on another one, which takes its place in
// all its groups. Recoveries take as long as they say.
type Fleet struct {
	Servers  int     `json:"servers"`
	Volumes  int     `json:"volumes"`
	Replicas int     `json:"replicas"`
	Length   float64 `json:"length_s"`
	Volume
	// Scatter is with how many others a server shares volumes, at least: groups are
	// copysets, made by Scatter / (Replicas-1) permutations. 0: any servers make a
	// group.
	Scatter int `json:"scatter"`
}

// Validate names what is wrong. Its errors are Usage.
func (f Fleet) Validate() error {
	const op fault.Op = "reliability.Validate"
	rate := f.Transient.Rate + f.Permanent.Rate
	switch {
	case f.Replicas < 2 || f.Replicas > maxReplicas:
		return fault.Errorf(fault.Usage, op, "replicas", "%d: there are 2 to %d", f.Replicas, maxReplicas)
	case f.Servers < f.Replicas || f.Servers > maxServers:
		return fault.Errorf(fault.Usage, op, "servers", "%d: as many as replicas at least, and %d at most", f.Servers, maxServers)
	case f.Volumes < 1:
		return fault.E(fault.Usage, op, "volumes", "there is one at least")
	case f.Scatter < 0 || f.Scatter >= f.Servers:
		return fault.Errorf(fault.Usage, op, "scatter", "%d: 0 for any servers, and less than there are servers", f.Scatter)
	case f.Scatter > 0 && f.Scatter < f.Replicas-1:
		return fault.Errorf(fault.Usage, op, "scatter", "%d: a group alone has %d others", f.Scatter, f.Replicas-1)
	case !(f.Length > 0) || !(f.Transient.Rate >= 0) || !(f.Permanent.Rate >= 0) || !(f.Transient.Recovery >= 0) || !(f.Permanent.Recovery >= 0):
		return fault.E(fault.Usage, op, "rates", "rates and times are not negative, and the length is above 0")
	case rate*f.Length*float64(f.Servers) > maxExpected:
		return fault.Errorf(fault.Usage, op, "rates", "%.0g failures in one run: %.0g at most", rate*f.Length*float64(f.Servers), float64(maxExpected))
	}
	return nil
}

// PerGroup is how many volumes a group has, in the mean.
func (f Fleet) PerGroup() float64 {
	if f.Scatter > 0 {
		return float64(f.Volumes) / float64(f.permutations()*((f.Servers+f.Replicas-1)/f.Replicas))
	}
	return float64(f.Volumes) / math.Exp(combin.LogGeneralizedBinomial(float64(f.Servers), float64(f.Replicas)))
}

// permutations are as many as give the scatter width.
func (f Fleet) permutations() int { return (f.Scatter + f.Replicas - 2) / (f.Replicas - 1) }

// Deaths is what one run of a fleet came to.
type Deaths struct {
	Failures [2]int `json:"failures"` // transient and permanent
	// Groups is how many times all servers of a group were gone, whether or not it
	// had volumes, and Volumes is how many volumes died, by the number of permanent
	// failures among their servers.
	Groups  [maxReplicas + 1]int `json:"groups"`
	Volumes [maxReplicas + 1]int `json:"volumes"`
}

// Dead is the number of volumes that died.
func (d Deaths) Dead() int { return sum(d.Volumes) }

// Hits is the number of times that a group was gone.
func (d Deaths) Hits() int { return sum(d.Groups) }

func sum(v [maxReplicas + 1]int) int {
	n := 0
	for _, x := range v {
		n += x
	}
	return n
}

// away is a server that is gone.
type away struct {
	server int
	until  float64
	isGone bool // for good
}

// queue has the servers that are gone, by their return.
type queue []away

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].until < q[j].until }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(away)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// Run plays one run. Errors: Usage, as those of Validate; Invalid, where so many
// servers are gone at once that the groups cannot be gone through; that of ctx.
func (f Fleet) Run(ctx context.Context, seed uint64) (Deaths, error) {
	if err := f.Validate(); err != nil {
		return Deaths{}, err
	}
	chance := rand.New(rand.NewPCG(seed, 1))
	g := newGroups(f, chance)
	var (
		d    Deaths
		gone queue
		now  float64
		rate = f.Transient.Rate + f.Permanent.Rate
	)
	isGone := make([]bool, f.Servers)
	for n := 0; rate > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return d, ctx.Err()
		}
		next := now + chance.ExpFloat64()/(rate*float64(f.Servers-len(gone)))
		if len(gone) > 0 && gone[0].until <= next {
			// The time to the next failure has no memory: it is drawn anew.
			back := heap.Pop(&gone).(away)
			now, isGone[back.server] = back.until, false
			continue
		}
		if now = next; now > f.Length {
			break
		}
		x := away{server: chance.IntN(f.Servers), until: now + f.Transient.Recovery}
		for isGone[x.server] {
			x.server = chance.IntN(f.Servers)
		}
		if x.isGone = chance.Float64()*rate < f.Permanent.Rate; x.isGone {
			x.until = now + f.Permanent.Recovery
			d.Failures[1]++
		} else {
			d.Failures[0]++
		}
		if len(gone) >= maxAway {
			return d, fault.Errorf(fault.Invalid, "reliability.Run", "rates", "%d servers are gone at once: give lower rates or shorter recoveries", len(gone)+1)
		}
		g.count(x, gone, &d)
		isGone[x.server] = true
		heap.Push(&gone, x)
	}
	return d, nil
}

// group is a set of servers, in order; those beyond its number are 0.
type group [maxReplicas]int

// groups knows how many volumes a group has. Volumes choose their groups at random,
// and of few groups that are ever looked at the numbers are drawn when they are.
type groups struct {
	replicas int
	sets     map[group]bool // the groups there are; nil: all
	volumes  map[group]int  // of those that were looked at
	poisson  distuv.Poisson
}

func newGroups(f Fleet, chance *rand.Rand) *groups {
	g := &groups{replicas: f.Replicas, volumes: map[group]int{}}
	mean := f.PerGroup()
	if f.Scatter > 0 {
		g.sets = copysets(f, chance)
		mean = float64(f.Volumes) / float64(len(g.sets))
	}
	g.poisson = distuv.Poisson{Lambda: mean, Src: chance}
	return g
}

// copysets divides permutations of the servers into groups (Cidon and others, 2013).
// Servers that are left over join a group with the first of the permutation.
func copysets(f Fleet, chance *rand.Rand) map[group]bool {
	sets := map[group]bool{}
	for range f.permutations() {
		order := chance.Perm(f.Servers)
		for at := 0; at < len(order); at += f.Replicas {
			var members []int
			for i := range f.Replicas {
				members = append(members, order[(at+i)%len(order)])
			}
			sets[grouped(members)] = true
		}
	}
	return sets
}

func grouped(members []int) group {
	slices.Sort(members)
	var g group
	copy(g[:], members)
	return g
}

// of is how many volumes a group has, and whether there is such a group.
func (g *groups) of(x group) (int, bool) {
	if g.sets != nil && !g.sets[x] {
		return 0, false
	}
	n, known := g.volumes[x]
	if !known {
		n = int(g.poisson.Rand())
		g.volumes[x] = n
	}
	return n, true
}

// count notes the groups that lose their last server with x, where others are gone.
func (g *groups) count(x away, gone []away, d *Deaths) {
	if len(gone) < g.replicas-1 {
		return
	}
	for _, others := range combin.Combinations(len(gone), g.replicas-1) {
		members, permanent := []int{x.server}, 0
		if x.isGone {
			permanent++
		}
		for _, i := range others {
			members = append(members, gone[i].server)
			if gone[i].isGone {
				permanent++
			}
		}
		if n, ok := g.of(grouped(members)); ok {
			d.Groups[permanent]++
			d.Volumes[permanent] += n
		}
	}
}

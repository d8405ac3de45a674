package disk

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// plain is what pages is to be: bytes, copied whole.
type plain []byte

func (p *plain) grow(size int) {
	if n := size - len(*p); n > 0 {
		*p = append(*p, make([]byte, n)...)
	}
}

// TestPages_EqualPlainBytes does the same to pages and to a plain slice: writes,
// growth and copies, each of which then changes by itself.
func TestPages_EqualPlainBytes(t *testing.T) {
	for seed := range uint64(50) {
		chance := rand.New(rand.NewPCG(seed, 1))
		type pair struct {
			p pages
			b plain
		}
		all := []*pair{{}}
		for range 200 {
			x := all[chance.IntN(len(all))]
			off, n := chance.IntN(5*pageBytes), chance.IntN(2*pageBytes)
			switch chance.IntN(5) {
			case 0:
				x.p.grow(int64(off))
				x.b.grow(off)
			case 1:
				if len(all) < 6 {
					all = append(all, &pair{x.p.clone(), bytes.Clone(x.b)})
				}
			case 2:
				y := all[chance.IntN(len(all))]
				s := off / sectorBytes
				x.p.copySector(int64(s), &y.p)
				if from := s * sectorBytes; from < len(y.b) {
					to := min(from+sectorBytes, len(y.b))
					x.b.grow(to)
					copy(x.b[from:to], y.b[from:to])
				}
			default:
				what := bytes.Repeat([]byte{byte(1 + chance.IntN(255))}, n)
				x.p.write(what, int64(off))
				x.b.grow(off + n)
				copy(x.b[off:], what)
			}
			for i, y := range all {
				from, most := chance.IntN(6*pageBytes), 1+chance.IntN(6*pageBytes)
				got := bytes.Repeat([]byte{0xff}, most)
				got = got[:y.p.read(got, int64(from))]
				if want := y.b[min(from, len(y.b)):min(from+most, len(y.b))]; int64(len(y.b)) != y.p.size || !bytes.Equal(got, want) {
					t.Fatalf("seed %d: copy %d differs from %d on", seed, i, from)
				}
			}
		}
	}
}

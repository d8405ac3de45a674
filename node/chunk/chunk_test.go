package chunk

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	chunkers "github.com/PlakarKorp/go-cdc-chunkers"
	_ "github.com/PlakarKorp/go-cdc-chunkers/chunkers/fastcdc" // which the twin is
	"pgregory.net/rapid"

	"cartwheel.dev/geo-config/fault"
)

// randomBytes returns n bytes that depend on the seed only.
func randomBytes(seed uint64, n int) []byte {
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	out := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(out)
	return out
}

func cuts(data []byte) []int {
	var out []int
	_ = Split(data, func(piece []byte) error {
		out = append(out, len(piece))
		return nil
	})
	return out
}

// TestSplit_EqualsTheLibrary compares our streaming loop with the reader of
// go-cdc-chunkers at our parameters.
func TestSplit_EqualsTheLibrary(t *testing.T) {
	inputs := map[string][]byte{
		"empty":        nil,
		"short":        randomBytes(1, 100),
		"minimum":      randomBytes(2, MinSize),
		"over minimum": randomBytes(3, MinSize+1),
		"random":       randomBytes(4, 6<<20),
		"zeros":        make([]byte, 1<<20+17),
		"text":         bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog\n"), 50000),
	}
	for name, data := range inputs {
		twin, err := chunkers.NewChunker("fastcdc-v1.0.0", bytes.NewReader(data),
			&chunkers.ChunkerOpts{MinSize: MinSize, NormalSize: AverageSize, MaxSize: MaxSize})
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for {
			piece, err := twin.Next()
			if len(piece) > 0 {
				want = append(want, len(piece))
			}
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if got := cuts(data); !equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestSplit_KeepsTheFormat pins boundaries and an address: equal content must
// have equal names in every version.
func TestSplit_KeepsTheFormat(t *testing.T) {
	data := randomBytes(7, 600<<10)
	want := []int{90655, 129813, 67102, 87224, 67099, 66833, 73221, 17062, 15391}
	if got := cuts(data); !equal(got, want) {
		t.Errorf("got boundaries %#v, want %#v", got, want)
	}
	if got, want := Sum(nil).String(), "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"; got != want {
		t.Errorf("the address of nothing is %s, want %s", got, want)
	}
}

func TestSplitter_PiecesSplitAsTheWhole(t *testing.T) {
	data := append(randomBytes(9, 2<<20), make([]byte, 700<<10)...)
	want := cuts(data)
	rapid.Check(t, func(t *rapid.T) {
		s := NewSplitter()
		var got []int
		pending := 0
		for rest := data; len(rest) > 0; {
			most := rapid.SampledFrom([]int{1, 100, 5000, 70000, 400000}).Draw(t, "most")
			piece := rest[:min(len(rest), rapid.IntRange(1, most).Draw(t, "piece")+most/2)]
			rest = rest[len(piece):]
			for len(piece) > 0 {
				n, boundary := s.Next(piece)
				pending += n
				if s.Pending() != pending && !boundary {
					t.Fatalf("%d bytes pending, want %d", s.Pending(), pending)
				}
				if boundary {
					got, pending = append(got, pending), 0
				}
				piece = piece[n:]
			}
		}
		if pending > 0 {
			got = append(got, pending)
		}
		if !equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestSplit_KeepsSizesInTheLimits(t *testing.T) {
	sizes := cuts(randomBytes(11, 64<<20))
	for i, n := range sizes[:len(sizes)-1] {
		if n < MinSize || n > MaxSize {
			t.Errorf("chunk %d has %d bytes", i, n)
		}
	}
	if mean := 64 << 20 / len(sizes); mean < 48<<10 || mean > 96<<10 {
		t.Errorf("the mean chunk has %d bytes, want about %d", mean, AverageSize)
	}
}

func TestSplit_InsertionChangesFewChunks(t *testing.T) {
	data := randomBytes(13, 16<<20)
	changed := append(append(append([]byte(nil), data[:5<<20]...), "inserted"...), data[5<<20:]...)
	names := map[Address]bool{}
	_ = Split(data, func(p []byte) error { names[Sum(p)] = true; return nil })
	fresh := 0
	_ = Split(changed, func(p []byte) error {
		if !names[Sum(p)] {
			fresh++
		}
		return nil
	})
	if fresh > 4 {
		t.Errorf("8 bytes inserted made %d new chunks", fresh)
	}
}

func TestAddress_ReadsBackAndVerifies(t *testing.T) {
	a, b := Sum([]byte("a")), Sum([]byte("b"))
	back, err := Addresses(AppendAddresses(nil, a, b))
	if err != nil || len(back) != 2 || back[0] != a || back[1] != b {
		t.Errorf("got %v, %v", back, err)
	}
	if _, err := Addresses(a[:31]); !fault.Is(err, fault.Invalid) {
		t.Errorf("31 bytes: got %v, want Invalid", err)
	}
	if got, err := ParseAddress(a.String()); got != a || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "xyz", a.String()[1:], a.String() + "00"} {
		if _, err := ParseAddress(bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseAddress(%q): got %v, want Invalid", bad, err)
		}
	}
	if _, err := AddressOf(a[:5]); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v, want Invalid", err)
	}
	if SumParts([]byte("he"), nil, []byte("llo")) != Sum([]byte("hello")) || SumParts([]byte("x")) != Sum([]byte("x")) {
		t.Error("parts have another address than the whole")
	}
	if Verify(a, []byte("a")) != nil || !fault.Is(Verify(a, []byte("b")), fault.Corrupt) {
		t.Error("Verify does not tell content apart")
	}
	if !a.IsZero() == (Address{}).IsZero() == false || a.Compare(b) == 0 || a.Compare(a) != 0 {
		t.Error("comparison is wrong")
	}
}

func BenchmarkSplit(b *testing.B) {
	data := randomBytes(1, 16<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		_ = Split(data, func([]byte) error { return nil })
	}
}

func BenchmarkSplitAndSum(b *testing.B) {
	data := randomBytes(1, 16<<20)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		_ = Split(data, func(p []byte) error { Sum(p); return nil })
	}
}

func BenchmarkSum4K(b *testing.B) {
	data := randomBytes(1, 4<<10)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		Sum(data)
	}
}

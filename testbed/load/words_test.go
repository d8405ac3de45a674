package load

import (
	"os"
	"path/filepath"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// planted are texts in a new directory, and what a count of them must give.
func plantedWords(t *testing.T) (WordOptions, WordResult) {
	t.Helper()
	o := WordOptions{Dir: t.TempDir(), Out: t.TempDir(), Files: 5, Bytes: 20_000, Seed: 3, Workers: 2}
	right, err := PlantWords(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return o, right
}

func countBoth(t *testing.T, o WordOptions) (words int64) {
	t.Helper()
	for o.Worker = range o.Workers {
		r, err := CountWords(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		words += r.Words
	}
	return words
}

func TestWords_WorkersCountWhatWasPlanted(t *testing.T) {
	o, right := plantedWords(t)
	words := countBoth(t, o)
	r, err := MergeWords(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Digest != right.Digest || r.Words != right.Words || words != right.Words || r.Distinct != right.Distinct {
		t.Errorf("got %+v and %d words, want %+v", r, words, right)
	}
	if right.Words < 15_000 || right.Distinct < 500 || right.Distinct > vocabulary {
		t.Errorf("the texts have %d words, %d of them different: that is no language", right.Words, right.Distinct)
	}
}

func TestWords_MergeSeesWhatIsWrong(t *testing.T) {
	o, right := plantedWords(t)
	countBoth(t, o)
	part := o.part(3)
	good, err := os.ReadFile(part)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		kind fault.Kind
	}{
		"cut off":       {good[:len(good)-1], fault.Corrupt},
		"no count":      {[]byte("ba\n"), fault.Corrupt},
		"another count": {append([]byte("ba 1\n"), good...), fault.None},
	} {
		if err := os.WriteFile(part, c.data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(filepath.Join(o.Out, "result")) // of the one before
		if r, err := MergeWords(t.Context(), o); fault.KindOf(err) != c.kind || err == nil && r.Digest == right.Digest {
			t.Errorf("%s: got %+v, %v; want kind %v, or another digest", name, r, err, c.kind)
		}
	}
	if err := os.Remove(part); err != nil {
		t.Fatal(err)
	}
	if _, err := MergeWords(t.Context(), o); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing part: got %v", err)
	}
	o.Worker = 2
	if _, err := CountWords(t.Context(), o); !fault.Is(err, fault.Usage) {
		t.Errorf("worker 2 of 2: got %v, want an error of usage", err)
	}
}

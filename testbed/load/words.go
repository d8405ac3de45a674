package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// WordOptions say which texts' words are counted, and where the results go.
type WordOptions struct {
	Dir   string // there already; holds the texts
	Out   string // there already; takes the partial results and the merged one
	Files int    // texts
	Bytes int    // of each text, about
	Seed  uint64 // draws the texts
	// Worker counts the words of every Workers-th text, from its own number on.
	Worker, Workers int
}

// WordResult is what one step of a word count did. Times are microseconds since 1970.
type WordResult struct {
	Began int64   `json:"began_us"`
	Ended int64   `json:"ended_us"`
	Ends  []int64 `json:"ends_us,omitempty"` // of each text, when its result was acknowledged
	Words int64   `json:"words"`
	// Distinct words, and a digest of all words with their counts: of the planted texts
	// and of the merged result.
	Distinct int    `json:"distinct,omitempty"`
	Digest   string `json:"digest,omitempty"`
}

// wordCounts is how often each word occurs.
type wordCounts map[string]int64

func (o WordOptions) text(i int) string { return filepath.Join(o.Dir, fmt.Sprintf("text-%05d", i)) }

func (o WordOptions) part(i int) string { return filepath.Join(o.Out, fmt.Sprintf("part-%05d", i)) }

// vocabulary is how many different words texts have.
const vocabulary = 5000

// word is the word of a number: syllables, the shortest words first.
func word(n uint64) string {
	const consonants, vowels = "bdfgklmnprst", "aeiou"
	var out []byte
	for more := true; more; more = n > 0 {
		out = append(out, consonants[n%12], vowels[n/12%5])
		n /= 60
	}
	return string(out)
}

// draw makes a text, whose words are as unevenly frequent as those of a language.
func (o WordOptions) draw(i int) []byte {
	r := rand.New(rand.NewPCG(o.Seed, uint64(i)))
	zipf := rand.NewZipf(r, 1.1, 2, vocabulary-1)
	var out bytes.Buffer
	for n := 1; out.Len() < o.Bytes; n++ {
		out.WriteString(word(zipf.Uint64()))
		if n%12 == 0 {
			out.WriteByte('\n')
		} else {
			out.WriteByte(' ')
		}
	}
	return out.Bytes()
}

// PlantWords writes the texts, and returns what a count of their words must give.
func PlantWords(ctx context.Context, o WordOptions) (WordResult, error) {
	all := wordCounts{}
	r := WordResult{Began: time.Now().UnixMicro()}
	for i := range o.Files {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		data := o.draw(i)
		if err := write(o.text(i), 0o644, data); err != nil {
			return r, fault.FromOS("load.PlantWords", o.text(i), err)
		}
		if err := all.count(bufio.NewScanner(bytes.NewReader(data))); err != nil {
			return r, err
		}
	}
	return all.finish(r), nil
}

// CountWords counts the words of the worker's texts, and writes a partial result for
// each.
func CountWords(ctx context.Context, o WordOptions) (WordResult, error) {
	const op fault.Op = "load.CountWords"
	r := WordResult{Began: time.Now().UnixMicro()}
	if o.Workers < 1 || o.Worker < 0 || o.Worker >= o.Workers {
		return r, fault.Errorf(fault.Usage, op, "worker", "there is no worker %d of %d", o.Worker, o.Workers)
	}
	for i := o.Worker; i < o.Files; i += o.Workers {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		counts, err := countFile(o.text(i))
		if err != nil {
			return r, err
		}
		if err := write(o.part(i), 0o644, counts.encode()); err != nil {
			return r, fault.FromOS(op, o.part(i), err)
		}
		r.Words += counts.sum()
		r.Ends = append(r.Ends, time.Now().UnixMicro())
	}
	r.Ended = time.Now().UnixMicro()
	return r, nil
}

// MergeWords adds the partial results of all texts up, and writes the merged result. It
// fails where one is missing or damaged.
func MergeWords(ctx context.Context, o WordOptions) (WordResult, error) {
	const op fault.Op = "load.MergeWords"
	all := wordCounts{}
	r := WordResult{Began: time.Now().UnixMicro()}
	for i := range o.Files {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		data, err := os.ReadFile(o.part(i))
		if err == nil {
			err = all.decode(data)
		}
		if err != nil {
			return r, fault.FromOS(op, o.part(i), err)
		}
	}
	path := filepath.Join(o.Out, "result")
	if err := write(path, 0o644, all.encode()); err != nil {
		return r, fault.FromOS(op, path, err)
	}
	return all.finish(r), nil
}

func countFile(path string) (wordCounts, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.FromOS("load.countFile", path, err)
	}
	defer f.Close()
	counts := wordCounts{}
	return counts, fault.FromOS("load.countFile", path, counts.count(bufio.NewScanner(f)))
}

func (c wordCounts) count(words *bufio.Scanner) error {
	words.Buffer(make([]byte, 1<<16), 1<<20)
	words.Split(bufio.ScanWords)
	for words.Scan() {
		c[words.Text()]++
	}
	return words.Err()
}

func (c wordCounts) sum() (n int64) {
	for _, k := range c {
		n += k
	}
	return n
}

// encode writes a line for each word, in the order of the words.
func (c wordCounts) encode() []byte {
	var out []byte
	for _, w := range slices.Sorted(maps.Keys(c)) {
		out = fmt.Appendf(out, "%s %d\n", w, c[w])
	}
	return out
}

// decode adds what encode wrote.
func (c wordCounts) decode(data []byte) error {
	for line := range bytes.Lines(data) {
		w, count, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		n, err := strconv.ParseInt(string(count), 10, 64)
		if err != nil || n < 1 || len(w) == 0 || !bytes.HasSuffix(line, []byte("\n")) {
			return fault.Errorf(fault.Corrupt, "load.decode", string(line), "is no word with its count")
		}
		c[string(w)] += n
	}
	return nil
}

// finish completes a result with what was counted.
func (c wordCounts) finish(r WordResult) WordResult {
	digest := sha256.Sum256(c.encode())
	r.Words, r.Distinct, r.Digest, r.Ended = c.sum(), len(c), hex.EncodeToString(digest[:]), time.Now().UnixMicro()
	return r
}

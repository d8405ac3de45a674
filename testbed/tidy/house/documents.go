package house

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cartwheel.dev/geo-config/fault"
)

// longSentence is the most words that doc-long does not count.
const longSentence = 30

// documents measures the sentences of every document, and of all together.
func (t *tree) documents() ([]Figure, error) {
	const op fault.Op = "house.documents"
	var out []Figure
	var every []sentence
	for _, rel := range t.docs {
		data, err := os.ReadFile(filepath.Join(t.root, rel))
		if err != nil {
			return nil, fault.FromOS(op, rel, err)
		}
		in := sentences(string(data))
		if len(in) == 0 {
			continue
		}
		every = append(every, in...)
		out = append(out, mean(rel, in))
		if f := tooLong(rel, in); f.Value > 0 {
			out = append(out, f)
		}
	}
	if len(every) > 0 {
		all := mean("all", every)
		all.Where, all.Line = "", 0
		out = append(out, all)
	}
	return out, nil
}

// mean is the figure of a document's mean sentence. Its place is the longest.
func mean(subject string, in []sentence) Figure {
	sum, long := 0, 0
	lengths := make([]int, len(in))
	longest := in[0]
	for i, s := range in {
		sum += s.words
		lengths[i] = s.words
		if s.words > longSentence {
			long++
		}
		if s.words > longest.words {
			longest = s
		}
	}
	slices.Sort(lengths)
	return Figure{
		Measure: "doc-mean", Subject: subject, Value: tenths(float64(sum) / float64(len(in))), Where: subject, Line: longest.line,
		Detail: fmt.Sprintf("%s, %d of over %d words, p90 %d, longest %d", counted(len(in), "sentence"), long, longSentence, lengths[len(lengths)*9/10], longest.words),
	}
}

// tooLong is the figure of a document's long sentences.
func tooLong(rel string, in []sentence) Figure {
	f := Figure{Measure: "doc-long", Subject: rel, Where: rel, Detail: "of " + counted(len(in), "sentence")}
	for _, s := range in {
		if s.words > longSentence {
			f.Value++
			f.Places = append(f.Places, fmt.Sprintf("%s:%d: %d words: %s", rel, s.line, s.words, start(s.text)))
		}
	}
	return f
}

// start is the beginning of a sentence, for people to find it by.
func start(text string) string {
	letters := []rune(text)
	if len(letters) <= 60 {
		return text
	}
	return string(letters[:57]) + "..."
}

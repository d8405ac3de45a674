package house

import (
	"regexp"
	"strings"
	"unicode"
)

// A sentence is one sentence of a document.
type sentence struct {
	line  int
	words int
	text  string
}

var (
	image    = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	code     = regexp.MustCompile("``[^`]+(`[^`]+)*``|`[^`]*`")
	marker   = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s+`)
	heading  = regexp.MustCompile(`^#{1,6}\s`)
	fence    = regexp.MustCompile("^\\s*(```|~~~)")
	tableRow = regexp.MustCompile(`^\s*\|`)
)

// glue stands for a space inside inline code, so that it stays one word.
const glue = "\x01"

// A word of a document, with its line.
type word struct {
	text    string
	line    int
	lineEnd bool
}

// sentences splits a Markdown document.
func sentences(text string) []sentence {
	var out []sentence
	var block []string
	start, fenced, inList := 1, false, false
	flush := func() {
		out = append(out, split(strings.Join(block, "\n"), start)...)
		block = nil
	}
	blank := true
	for i, l := range strings.Split(text, "\n") {
		item := marker.FindString(l)
		switch {
		case fence.MatchString(l):
			flush()
			fenced = !fenced
			continue
		case fenced:
			continue
		case strings.TrimSpace(l) == "":
			flush()
			blank = true
			continue
		case heading.MatchString(l), tableRow.MatchString(l), strings.HasPrefix(l, "<"):
			flush()
			inList = false
			continue
		case item != "":
			flush()
			inList, l = true, l[len(item):]
		case blank && !strings.HasPrefix(l, " "):
			inList = false
		case blank && !inList && strings.HasPrefix(l, "    "):
			continue // an indented code block
		}
		if len(block) == 0 {
			start = i + 1
		}
		blank = false
		block = append(block, strings.TrimPrefix(strings.TrimSpace(l), "> "))
	}
	flush()
	return out
}

// split divides one paragraph or list item into sentences.
func split(text string, line int) []sentence {
	text = code.ReplaceAllStringFunc(text, func(s string) string {
		return strings.NewReplacer(" ", glue, "\n", glue+"\n"+glue).Replace(s)
	})
	text = link.ReplaceAllString(image.ReplaceAllString(text, ""), "$1")
	var words []word
	for i, l := range strings.Split(strings.ReplaceAll(text, glue+"\n"+glue, glue), "\n") {
		fields := strings.Fields(l)
		for at, f := range fields {
			words = append(words, word{f, line + i, at == len(fields)-1})
		}
	}
	var out []sentence
	var now []word
	for i, w := range words {
		now = append(now, w)
		if i+1 == len(words) || ends(w, words[i+1]) {
			if s := joined(now); s.words > 0 {
				out = append(out, s)
			}
			now = nil
		}
	}
	return out
}

// ends says whether a sentence ends after a word. An abbreviation does not end
// one: a small letter follows it.
func ends(w, next word) bool {
	if w.lineEnd && strings.HasSuffix(w.text, ":") {
		return true
	}
	bare := strings.TrimRight(w.text, "\"')*_”’")
	if !strings.HasSuffix(bare, ".") && !strings.HasSuffix(bare, "?") && !strings.HasSuffix(bare, "!") {
		return false
	}
	for _, c := range strings.TrimLeft(next.text, "\"'(*_“‘") {
		return !unicode.IsLower(c)
	}
	return true
}

// joined makes a sentence of its words. Signs alone are no words.
func joined(words []word) sentence {
	s := sentence{line: words[0].line}
	var text []string
	for _, w := range words {
		text = append(text, w.text)
		if strings.ContainsFunc(w.text, func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) || c == '`' }) {
			s.words++
		}
	}
	s.text = strings.ReplaceAll(strings.Join(text, " "), glue, " ")
	return s
}

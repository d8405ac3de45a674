package house

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// A Limit is one line of limits.txt: the most that a figure may be. Subject *
// is for every subject without a line of its own. Reach is what the limit is to
// come down to.
type Limit struct {
	Measure, Subject string
	Most, Reach      float64
	Reason           string
}

// everything is the subject of the limits that no exception names.
const everything = "*"

// Limits are the lines of a limits file, with its comments.
type Limits struct {
	lines []string
	at    map[[2]string]int // the line of a measure and subject
	all   map[[2]string]Limit
}

// ReadLimits reads a limits file. Each line has a measure, a subject, the
// limit, what to reach, and an optional reason; # begins a comment.
func ReadLimits(name string) (*Limits, error) {
	const op fault.Op = "house.ReadLimits"
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fault.FromOS(op, name, err)
	}
	l := &Limits{at: map[[2]string]int{}, all: map[[2]string]Limit{}}
	for s := bufio.NewScanner(strings.NewReader(string(data))); s.Scan(); {
		l.lines = append(l.lines, s.Text())
		words := strings.Fields(s.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		at := fmt.Sprintf("%s:%d", name, len(l.lines))
		if len(words) < 4 {
			return nil, fault.E(fault.Invalid, op, at, "want: measure subject limit reach [reason]")
		}
		most, err1 := strconv.ParseFloat(words[2], 64)
		reach, err2 := strconv.ParseFloat(words[3], 64)
		key := [2]string{words[0], words[1]}
		switch _, twice := l.all[key]; {
		case err1 != nil || err2 != nil:
			return nil, fault.E(fault.Invalid, op, at, "the limit and what to reach are numbers")
		case twice:
			return nil, fault.E(fault.Invalid, op, at, "this measure and subject have a limit already")
		}
		l.at[key] = len(l.lines) - 1
		l.all[key] = Limit{words[0], words[1], most, reach, strings.Join(words[4:], " ")}
	}
	return l, nil
}

// of returns the limit of a figure: its own, or that of its measure.
func (l *Limits) of(f Figure) (Limit, bool) {
	if own, ok := l.all[[2]string{f.Measure, f.Subject}]; ok {
		return own, true
	}
	general, ok := l.all[[2]string{f.Measure, everything}]
	return general, ok
}

// Over returns the figures that are over their limits.
func (l *Limits) Over(figures []Figure) []Figure {
	var out []Figure
	for _, f := range figures {
		if limit, ok := l.of(f); ok && f.Value > limit.Most {
			out = append(out, f)
		}
	}
	return out
}

// Loose returns the limits that are above today's figures, or of nothing that
// exists. Limits of everything are never loose.
func (l *Limits) Loose(figures []Figure) []Limit {
	today := map[[2]string]float64{}
	for _, f := range figures {
		today[[2]string{f.Measure, f.Subject}] = f.Value
	}
	var out []Limit
	for key, limit := range l.all {
		if limit.Subject != everything && today[key] < limit.Most {
			out = append(out, limit)
		}
	}
	slices.SortFunc(out, func(a, b Limit) int { return l.at[key(a)] - l.at[key(b)] })
	return out
}

func key(l Limit) [2]string { return [2]string{l.Measure, l.Subject} }

// Lower returns the text of the limits file with every loose limit brought down
// to today's figure. A limit goes where the general one is as good. No limit
// becomes higher.
func (l *Limits) Lower(figures []Figure) string {
	today := map[[2]string]float64{}
	for _, f := range figures {
		today[[2]string{f.Measure, f.Subject}] = f.Value
	}
	lines := slices.Clone(l.lines)
	gone := map[int]bool{}
	for _, limit := range l.Loose(figures) {
		value := today[key(limit)] // 0 where nothing is left to count
		general, ok := l.all[[2]string{limit.Measure, everything}]
		if ok && value <= general.Most {
			gone[l.at[key(limit)]] = true
			continue
		}
		limit.Most = value
		lines[l.at[key(limit)]] = limit.String()
	}
	var out strings.Builder
	for i, line := range lines {
		if !gone[i] {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// String is the limit as a line of the file.
func (l Limit) String() string {
	return strings.TrimRight(fmt.Sprintf("%-10s %-48s %6s %6s  %s", l.Measure, l.Subject, number(l.Most), number(l.Reach), l.Reason), " ")
}

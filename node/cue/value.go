package cue

import (
	"strconv"
	"strings"
	"time"
)

// parseValue checks a value against what its cue allows, and says what is wrong
// with it: nothing where problem is empty.
func parseValue(n Name, value string, valued bool) (c Cue, problem string) {
	r := n.row()
	switch {
	case r.shape == noValue && valued:
		return Cue{}, "it takes no value, got " + quote(value)
	case r.shape == noValue:
		return Cue{Name: n}, ""
	case !valued || value == "":
		return Cue{}, "its value is missing"
	case len(value) > MaxValue:
		return Cue{}, "its value has " + strconv.Itoa(len(value)) + " bytes, more than " + strconv.Itoa(MaxValue)
	case r.shape == numberValue:
		return parseNumber(n, value)
	case n == Site:
		return parseSite(value)
	}
	return parseSnapshot(value)
}

// parseNumber takes decimal digits only: no sign, no space, no leading zero.
func parseNumber(n Name, value string) (c Cue, problem string) {
	r := n.row()
	if n == SyncLevel && strings.EqualFold(value, "quorum") {
		return Cue{Name: n, Number: Quorum}, ""
	}
	for i := range len(value) {
		if value[i] < '0' || value[i] > '9' || (value[0] == '0' && len(value) > 1) {
			return Cue{}, quote(value) + " is not a whole number"
		}
	}
	v, err := strconv.ParseInt(value, 10, 64)
	if err != nil || v < r.least || v > r.most {
		return Cue{}, quote(value) + " is out of range"
	}
	return Cue{Name: n, Number: v}, ""
}

func numberText(v int64) string {
	if v == Quorum {
		return "quorum"
	}
	return strconv.FormatInt(v, 10)
}

// parseSite takes a site's name; whether there is such a site, the caller asks
// geo-config.
func parseSite(value string) (c Cue, problem string) {
	if strings.EqualFold(value, RandomSite) {
		return Cue{Name: Site, Text: RandomSite}, ""
	}
	if !plainName(value) {
		return Cue{}, quote(value) + " is no site's name"
	}
	return Cue{Name: Site, Text: value}, ""
}

// plainName reports whether s is letters, digits and -_. with a letter or
// digit first.
func plainName(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case i > 0 && (c == '-' || c == '_' || c == '.'):
		default:
			return false
		}
	}
	return s != ""
}

// parseSnapshot takes a name, a time or an age; which it is, Moment says.
func parseSnapshot(value string) (c Cue, problem string) {
	if value[0] == '-' {
		if _, ok := parseAge(value[1:]); !ok {
			return Cue{}, quote(value) + " is no age"
		}
		return Cue{Name: Snapshot, Text: value}, ""
	}
	if _, ok := parseTime(value, time.UTC); !ok && !plainName(value) {
		return Cue{}, quote(value) + " is no time"
	}
	return Cue{Name: Snapshot, Text: value}, ""
}

// Moment tells what a Snapshot cue names: a time, or an age counted back from
// the caller's now, or, where both are zero, a snapshot by its name. A time that
// names no zone is one of the location.
func (c Cue) Moment(in *time.Location) (at time.Time, age time.Duration) {
	if c.Name != Snapshot || c.Text == "" {
		return time.Time{}, 0
	}
	if c.Text[0] == '-' {
		age, _ = parseAge(c.Text[1:])
		return time.Time{}, age
	}
	at, _ = parseTime(c.Text, in)
	return at, 0
}

// parseAge takes a whole number and one unit: s, m, h, d or w; 10 years at most.
func parseAge(s string) (time.Duration, bool) {
	if len(s) < 2 {
		return 0, false
	}
	var unit time.Duration
	switch s[len(s)-1] {
	case 's':
		unit = time.Second
	case 'm':
		unit = time.Minute
	case 'h':
		unit = time.Hour
	case 'd':
		unit = 24 * time.Hour
	case 'w':
		unit = 7 * 24 * time.Hour
	default:
		return 0, false
	}
	v, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
	const longest = 10 * 365 * 24 * time.Hour
	if err != nil || v == 0 || v > uint64(longest/unit) {
		return 0, false
	}
	return time.Duration(v) * unit, true
}

// parseTime takes RFC 3339, with the seconds or without, or a date with or without a
// time of day in a location. Windows has no colons in names: there a time of day may
// have dots instead.
func parseTime(s string, in *time.Location) (time.Time, bool) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04",
		"2006-01-02T15.04.05", "2006-01-02T15.04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, in); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// quote shows a value in a message, cut where it is long.
func quote(s string) string {
	if len(s) > 40 {
		return strconv.QuoteToASCII(s[:40]) + "..."
	}
	return strconv.QuoteToASCII(s)
}

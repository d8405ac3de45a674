package auditlog

import (
	"strings"
	"time"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
)

// clockSlack is how far the clocks of two writers may be apart. Records are in the
// order of their numbers, and nearly in that of their times: a search by time looks
// at this much more on either side.
const clockSlack = time.Hour

// Query says which records. Empty fields leave none out.
type Query struct {
	// Before leaves only records with lower numbers.
	Before uint64
	// Who is all of an account's or a node's name.
	Who string
	// Action is how the action begins.
	Action string
	// Subject is all of a subject, its kind, or its name.
	Subject string
	// Text is in one of the record's words; capital letters do not matter.
	Text string
	// From is the earliest time, and To the first one behind the latest.
	From, To time.Time
}

// Check refuses a range in which no time lies. Errors: Invalid.
func (q Query) Check() error {
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		return fault.Errorf(fault.Invalid, "auditlog.Check", "from", "%s is not before to, %s: name an earlier from or a later to",
			q.From.Format(time.RFC3339), q.To.Format(time.RFC3339))
	}
	return nil
}

// isNarrowed says whether some records do not match.
func (q Query) isNarrowed() bool {
	q.Before = 0
	return q != Query{}
}

func (q Query) matches(r *geoconfig.AuditRecord) bool {
	at := time.Unix(0, r.AtNS)
	return (q.Who == "" || r.Who == q.Who) &&
		strings.HasPrefix(r.Action, q.Action) &&
		isAbout(r.Subject, q.Subject) &&
		contains(r, strings.ToLower(q.Text)) &&
		(q.From.IsZero() || !at.Before(q.From)) &&
		(q.To.IsZero() || at.Before(q.To))
}

// isAbout says whether a subject is the wanted one, or of its kind or name.
func isAbout(subject, wanted string) bool {
	kind, name, _ := strings.Cut(subject, "/")
	return wanted == "" || subject == wanted || kind == wanted || name == wanted
}

func contains(r *geoconfig.AuditRecord, text string) bool {
	if text == "" {
		return true
	}
	for _, word := range []string{r.Who, r.Action, r.Subject, r.Detail} {
		if strings.Contains(strings.ToLower(word), text) {
			return true
		}
	}
	return false
}

// isTooOld says whether no record before this one can match.
func (q Query) isTooOld(r *geoconfig.AuditRecord) bool {
	return !q.From.IsZero() && time.Unix(0, r.AtNS).Before(q.From.Add(-clockSlack))
}

// isTooNew says whether no record after this one can match.
func (q Query) isTooNew(r *geoconfig.AuditRecord) bool {
	return !q.To.IsZero() && time.Unix(0, r.AtNS).After(q.To.Add(clockSlack))
}

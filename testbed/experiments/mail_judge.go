package experiments

import (
	"slices"

	"cartwheel.dev/testbed/load"
)

// mailKept is what became of the messages.
type mailKept struct {
	Acknowledged int `json:"acknowledged"`
	Removed      int `json:"removed"` // by IMAP
	Found        int `json:"found"`   // files in mailboxes at the end
	Lost         int `json:"lost"`
	Twice        int `json:"twice"`
	// Again are messages that are there twice because the SMTP server delivered them
	// again, as it does after an error: the first time was not known to be done.
	Again     int `json:"again"`
	Misplaced int `json:"misplaced"` // at another user
	Wrong     int `json:"wrong"`     // not what was sent
	// Returned are messages that IMAP had removed, and that were found.
	Returned int `json:"returned"`
	// Some are the first few IDs of what is bad.
	Some []string `json:"some,omitempty"`
}

// bad counts what must not be.
func (k mailKept) bad() int { return k.Lost + k.Twice + k.Misplaced + k.Wrong }

// somes bounds mailKept.Some.
const somes = 5

func (k *mailKept) note(n *int, what string) {
	if *n++; len(k.Some) < somes {
		k.Some = append(k.Some, what)
	}
}

// mailFate is what is known of one message.
type mailFate struct {
	user             string
	acked, deferred  bool
	removed, perhaps bool // by a session of IMAP
	found            int
}

// judgeMail compares what the clients were told with what the mailboxes hold. A
// message that SMTP did not take may be there once all the same, and one whose
// delivery was deferred, twice.
func judgeMail(users load.MailUsers, events []load.MailEvent, deferred map[string]bool, boxes []load.Mailbox) (k mailKept) {
	fates := map[string]*mailFate{}
	for _, e := range events {
		if e.Kind == load.MailSend {
			fates[e.ID] = &mailFate{user: users.Name(e.User), acked: e.Err == "", deferred: deferred[e.ID]}
		}
	}
	for _, e := range events {
		if e.Kind == load.MailRead {
			k.session(users.Name(e.User), e, fates)
		}
	}
	for _, b := range boxes {
		for _, name := range b.Wrong {
			k.note(&k.Wrong, b.User+"/"+name)
		}
		for _, id := range b.IDs {
			k.Found++
			f := fates[id]
			switch {
			case f == nil:
				k.note(&k.Wrong, id)
			case f.user != b.User:
				k.note(&k.Misplaced, id)
			default:
				f.found++
			}
		}
	}
	for id, f := range fates {
		k.fate(id, f)
	}
	slices.Sort(k.Some)
	return k
}

// session notes what a session of IMAP fetched and removed.
func (k *mailKept) session(user string, e load.MailEvent, fates map[string]*mailFate) {
	if e.Wrong > 0 {
		k.note(&k.Wrong, "fetched by "+user)
	}
	seen := map[string]bool{}
	for _, id := range e.Seen {
		f := fates[id]
		switch {
		case f == nil:
			k.note(&k.Wrong, id)
			continue
		case f.user != user:
			k.note(&k.Misplaced, id)
		case seen[id]:
			k.double(id, f)
		}
		seen[id] = true
		f.removed = f.removed || e.Removed
		f.perhaps = true
	}
}

func (k *mailKept) double(id string, f *mailFate) {
	if f.deferred {
		k.Again++
		return
	}
	k.note(&k.Twice, id)
}

func (k *mailKept) fate(id string, f *mailFate) {
	if f.acked {
		k.Acknowledged++
	}
	if f.removed {
		k.Removed++
	}
	switch {
	case f.found > 1:
		k.double(id, f)
	case f.found == 1 && f.removed:
		k.Returned++
	case f.found == 0 && f.acked && !f.perhaps:
		k.note(&k.Lost, id)
	}
}

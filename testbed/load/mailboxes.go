package load

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// mailboxReaders is how many mailboxes are read at once.
const mailboxReaders = 32

// Mailbox is what one user's maildir holds.
type Mailbox struct {
	User string   `json:"user"`
	IDs  []string `json:"ids"`
	// Wrong are the files that are no message as it was sent.
	Wrong []string `json:"wrong,omitempty"`
}

// maildir is the maildir of a user's folder, with its parts.
const maildir = "Mail"

// MaildirParts are the folders of a maildir. A message is in new or cur.
func MaildirParts() []string { return []string{"new", "cur", "tmp"} }

// Mailboxes reads the maildirs of all users whose folders are in dir.
func Mailboxes(ctx context.Context, dir string) ([]Mailbox, error) {
	const op fault.Op = "load.Mailboxes"
	users, err := os.ReadDir(dir)
	if err != nil {
		return nil, fault.FromOS(op, dir, err)
	}
	out := make([]Mailbox, len(users))
	err = each(ctx, mailboxReaders, len(users), func(_ context.Context, i int) (err error) {
		out[i], err = readMailbox(filepath.Join(dir, users[i].Name()))
		return err
	})
	return out, fault.FromOS(op, dir, err)
}

// readMailbox reads a user's maildir. A message that is moved from new to cur
// meanwhile may be read twice, so nobody may use it.
func readMailbox(folder string) (Mailbox, error) {
	b := Mailbox{User: filepath.Base(folder)}
	for _, part := range MaildirParts()[:2] {
		at := filepath.Join(folder, maildir, part)
		files, err := os.ReadDir(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return b, err
		}
		for _, f := range files {
			text, err := os.ReadFile(filepath.Join(at, f.Name()))
			if err != nil {
				return b, err
			}
			id, right, err := parseMessage(text)
			if err != nil || !right {
				b.Wrong = append(b.Wrong, filepath.Join(part, f.Name()))
				continue
			}
			b.IDs = append(b.IDs, id)
		}
	}
	return b, nil
}

// MakeMailboxes makes the empty maildirs of users below dir, for a user of the
// operating system to use.
func MakeMailboxes(ctx context.Context, dir string, users []string, uid, gid int) error {
	const op fault.Op = "load.MakeMailboxes"
	err := each(ctx, mailboxReaders, len(users), func(_ context.Context, i int) error {
		return makeMailbox(filepath.Join(dir, users[i], maildir), uid, gid)
	})
	return fault.FromOS(op, dir, err)
}

func makeMailbox(at string, uid, gid int) error {
	for _, part := range MaildirParts() {
		if err := os.MkdirAll(filepath.Join(at, part), 0o755); err != nil {
			return err
		}
		if err := os.Chown(filepath.Join(at, part), uid, gid); err != nil {
			return err
		}
	}
	return os.Chown(at, uid, gid)
}

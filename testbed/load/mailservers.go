package load

import (
	"context"
	"fmt"
	"net"
	"net/smtp"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"cartwheel.dev/geo-config/fault"
)

// dial connects, and ends what goes on there when ctx does.
func dial(ctx context.Context, address string) (conn net.Conn, done func(), err error) {
	var d net.Dialer
	if conn, err = d.DialContext(ctx, "tcp", address); err != nil {
		return nil, nil, err
	}
	return conn, bound(ctx, conn), nil
}

// bound ends what goes on at a connection when ctx does, until done is called.
func bound(ctx context.Context, conn net.Conn) (done func()) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) }) // a closed one needs none
	return func() { stop() }
}

// smtpLine is a connection to a server that takes several messages.
type smtpLine struct {
	conn   net.Conn
	client *smtp.Client
}

// close says goodbye without waiting for more than a moment.
func (l *smtpLine) close() {
	_ = l.conn.SetDeadline(time.Now().Add(time.Second)) // a closed one needs none
	_ = l.client.Quit()                                 // every message was answered
	l.conn.Close()
}

// line is the client's connection to a server.
func (c *mailClient) line(ctx context.Context, server string) (*smtpLine, error) {
	if l := c.lines[server]; l != nil {
		return l, nil
	}
	conn, done, err := dial(ctx, at(server, c.o.SMTP))
	if err != nil {
		return nil, err
	}
	defer done()
	client, err := smtp.NewClient(conn, server)
	if err == nil {
		err = client.Hello(c.o.Sites[c.o.Home])
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.lines[server] = &smtpLine{conn: conn, client: client}
	return c.lines[server], nil
}

// send hands a message to a server. Without error the server has taken it.
func (c *mailClient) send(ctx context.Context, e *MailEvent) error {
	l, err := c.line(ctx, e.Server)
	if err != nil {
		return err
	}
	defer bound(ctx, l.conn)()
	if err := l.deliver(c.o.Address(e.User), message(e.ID, c.o.Address(e.User), e.Bytes)); err != nil {
		delete(c.lines, e.Server)
		l.conn.Close()
		return err
	}
	return nil
}

func (l *smtpLine) deliver(to string, text []byte) error {
	if err := l.client.Mail("load@load"); err != nil {
		return err
	}
	if err := l.client.Rcpt(to); err != nil {
		return err
	}
	w, err := l.client.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.Close() // waits for the server's answer
}

// read is one session of IMAP: it fetches all messages and removes them.
func (c *mailClient) read(ctx context.Context, e *MailEvent) error {
	conn, done, err := dial(ctx, at(e.Server, c.o.IMAP))
	if err != nil {
		return err
	}
	defer done()
	client := imapclient.New(conn, nil)
	defer client.Close()
	if err := client.Login(c.o.Address(e.User), "any").Wait(); err != nil {
		return err
	}
	box, err := client.Select("INBOX", nil).Wait()
	if err != nil {
		return err
	}
	if box.NumMessages > 0 {
		if err := fetchAll(client, e); err != nil {
			return err
		}
	}
	return client.Logout().Wait()
}

// fetchAll fetches and removes the messages of the mailbox that is selected.
func fetchAll(client *imapclient.Client, e *MailEvent) error {
	var all imap.SeqSet
	all.AddRange(1, 0)
	whole := &imap.FetchItemBodySection{Peek: true}
	got, err := client.Fetch(all, &imap.FetchOptions{UID: true, BodySection: []*imap.FetchItemBodySection{whole}}).Collect()
	if err != nil {
		return err
	}
	var uids imap.UIDSet
	for _, m := range got {
		text := m.FindBodySection(whole)
		id, right, err := parseMessage(text)
		if err != nil {
			return fault.Wrap(fault.Corrupt, "load.fetchAll", fmt.Sprint("UID ", m.UID), err)
		}
		if !right {
			e.Wrong++
		}
		e.Bytes += len(text)
		e.Seen = append(e.Seen, id)
		uids.AddNum(m.UID)
	}
	deleted := &imap.StoreFlags{Op: imap.StoreFlagsAdd, Silent: true, Flags: []imap.Flag{imap.FlagDeleted}}
	if err := client.Store(uids, deleted, nil).Close(); err != nil {
		return err
	}
	if err := client.UIDExpunge(uids).Close(); err != nil {
		return err
	}
	e.Removed = true
	return nil
}

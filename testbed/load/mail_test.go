package load

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"

	"cartwheel.dev/geo-config/fault"
)

func TestMailUsers_AreSpreadEvenly(t *testing.T) {
	u := MailUsers{Sites: []string{"a", "b", "c"}, Count: 11}
	per := map[string]int{}
	for n := range u.Count {
		per[fmt.Sprint(u.Site(n), u.Server(n, 2))]++
	}
	if len(per) != 6 || per["a0"] != 2 || per["c1"] != 1 {
		t.Errorf("got %v of each server", per)
	}
	if u.at(0) != 4 || u.at(1) != 4 || u.at(2) != 3 {
		t.Errorf("%d, %d and %d users at the sites, want 4, 4 and 3", u.at(0), u.at(1), u.at(2))
	}
	if got := u.Address(4); got != "u00004@b" {
		t.Errorf("got %s", got)
	}
}

func TestMessage_TellsWhetherItIsWhatWasSent(t *testing.T) {
	text := message("x.1.2", "u00001@b", 3000)
	if len(text) < 3000 || len(text) > 3300 {
		t.Errorf("%d bytes of a message of 3000", len(text))
	}
	for what, got := range map[string][]byte{"as sent": text, "as a maildir has it": bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))} {
		if id, right, err := parseMessage(append([]byte("Received: by a\r\n"), got...)); err != nil || id != "x.1.2" || !right {
			t.Errorf("%s: got %q, %v, %v", what, id, right, err)
		}
	}
	text[len(text)-10] ^= 1
	if _, right, err := parseMessage(text); err != nil || right {
		t.Errorf("a bit of the body is wrong: got %v, %v", right, err)
	}
	if _, right, err := parseMessage([]byte("Subject: empty\n\n")); err != nil || right {
		t.Errorf("a message without an ID: got %v, %v", right, err)
	}
}

func TestMailSizes_HaveTheirMean(t *testing.T) {
	chance, sum := rand.New(rand.NewPCG(1, 2)), 0
	for range 20000 {
		sum += MailSizes{Mean: 6900}.draw(chance)
	}
	if got := sum / 20000; got < 6600 || got > 7200 {
		t.Errorf("the mean is %d, want about 6900", got)
	}
	if got := (MailSizes{List: []int{7}, Mean: 6900}).draw(chance); got != 7 {
		t.Errorf("got %d of a list of 7", got)
	}
}

func TestReadMailSizes_ReadsTheFirstColumn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sizes.csv")
	for text, want := range map[string][]int{"bytes,class\n5247,spam\n2035\n": {5247, 2035}, "12\n13\n": {12, 13}, "bytes\n": nil, "1\nmany\n": nil, "0\n": nil, "": nil} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadMailSizes(path)
		if !slices.Equal(got, want) || (want == nil) != fault.Is(err, fault.Usage) {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
}

func TestMailboxes_FindsEveryMessage(t *testing.T) {
	dir := t.TempDir()
	if err := MakeMailboxes(t.Context(), dir, []string{"u00000", "u00001"}, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	for at, text := range map[string][]byte{
		"u00000/Mail/new/1": message("a", "x", 200), "u00000/Mail/cur/2:2,S": message("b", "x", 200), "u00000/Mail/tmp/3": message("half", "x", 200),
		"u00001/Mail/new/4": message("a", "x", 200)[:150],
	} {
		if err := os.WriteFile(filepath.Join(dir, at), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Mailboxes(t.Context(), dir)
	if err != nil || len(got) != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if got[0].User != "u00000" || !slices.Equal(got[0].IDs, []string{"a", "b"}) || got[0].Wrong != nil {
		t.Errorf("the first mailbox: %+v", got[0])
	}
	if got[1].IDs != nil || !slices.Equal(got[1].Wrong, []string{"new/4"}) {
		t.Errorf("the second, of which a message is cut short: %+v", got[1])
	}
}

// mailService is a small mail service in memory. SMTP refuses the recipient u00001.
type mailService struct {
	mu    sync.Mutex // guards boxes and whole
	boxes map[string]*imapmemserver.User
	whole []string
}

func (s *mailService) listen(t *testing.T) (port int, l net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port, l
}

func (s *mailService) smtp(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go s.talk(textproto.NewConn(conn))
	}
}

func (s *mailService) talk(c *textproto.Conn) {
	defer c.Close()
	_ = c.PrintfLine("220 test") // the client notices
	to := ""
	for {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		answer := "250 fine"
		switch {
		case strings.HasPrefix(line, "RCPT"):
			to = strings.Trim(line[len("RCPT TO:"):], "<>")
			if strings.HasPrefix(to, "u00001") {
				answer = "550 no such user"
			}
		case line == "DATA":
			_ = c.PrintfLine("354 go on")
			text, err := c.ReadDotBytes()
			if err != nil || s.keep(to, text) != nil {
				return
			}
		}
		_ = c.PrintfLine("%s", answer)
	}
}

func (s *mailService) keep(to string, text []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = append(s.whole, string(text))
	_, err := s.boxes[to].Append("INBOX", bytes.NewReader(bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n"))), &imap.AppendOptions{})
	return err
}

func TestMail_NotesWhatTheServersTook(t *testing.T) {
	users := MailUsers{Sites: []string{"a"}, Count: 3}
	s := &mailService{boxes: map[string]*imapmemserver.User{}}
	memory := imapmemserver.New()
	for n := range users.Count {
		u := imapmemserver.NewUser(users.Address(n), "any")
		if err := u.Create("INBOX", nil); err != nil {
			t.Fatal(err)
		}
		memory.AddUser(u)
		s.boxes[users.Address(n)] = u
	}
	reads := imapserver.New(&imapserver.Options{InsecureAuth: true, NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
		return memory.NewSession(), nil, nil
	}})
	defer reads.Close()
	smtpPort, smtp := s.listen(t)
	imapPort, imaps := s.listen(t)
	go s.smtp(smtp)
	go func() { _ = reads.Serve(imaps) }() // ends with Close
	var log bytes.Buffer
	o := MailOptions{MailUsers: users, Servers: []string{"127.0.0.1"}, SMTP: smtpPort, IMAP: imapPort, Client: "c", AtOnce: 2, Reads: 0.3, Only: -1, Requests: 40,
		For: time.Minute, Limit: time.Minute, Sizes: MailSizes{Mean: 500}, Seed: 4}
	if err := Mail(t.Context(), o, &log); err != nil {
		t.Fatal(err)
	}
	events, err := ReadMailEvents(&log)
	if err != nil || len(events) != 80 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	sent, removed := map[string]bool{}, map[string]bool{}
	for _, e := range events {
		switch {
		case e.Kind == MailSend && (e.User == 1) != (e.Err != ""):
			t.Errorf("a message to the user %d: %q", e.User, e.Err)
		case e.Kind == MailSend && e.Err == "":
			sent[e.ID] = true
		case e.Kind == MailRead && (e.Err != "" || e.Wrong > 0 || e.Removed != (len(e.Seen) > 0)):
			t.Errorf("a session: %+v", e)
		case e.Kind == MailRead:
			for _, id := range e.Seen {
				removed[id] = true
			}
		}
	}
	if len(sent) == 0 || len(sent) != len(s.whole) {
		t.Errorf("%d messages were acknowledged, and the server has had %d", len(sent), len(s.whole))
	}
	if len(removed) == 0 {
		t.Error("no session fetched anything")
	}
	for id := range removed {
		if !sent[id] {
			t.Errorf("a session fetched %s, which was not sent", id)
		}
	}
}

func TestMail_RefusesNonsense(t *testing.T) {
	good := MailOptions{MailUsers: MailUsers{Sites: []string{"a", "b"}, Count: 4}, Servers: []string{"x"}, Client: "c", AtOnce: 1, Limit: time.Second, Only: -1}
	for what, spoil := range map[string]func(*MailOptions){
		"no server": func(o *MailOptions) { o.Servers = nil }, "no such site": func(o *MailOptions) { o.Home = 2 }, "too few users": func(o *MailOptions) { o.Count = 1 },
		"no such user": func(o *MailOptions) { o.Only = 4 }, "more than all": func(o *MailOptions) { o.Reads = 1.1 }, "no client": func(o *MailOptions) { o.AtOnce = 0 },
	} {
		o := good
		spoil(&o)
		if err := Mail(t.Context(), o, io.Discard); !fault.Is(err, fault.Usage) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

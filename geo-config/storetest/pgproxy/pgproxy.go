// Package pgproxy stands between a client and a PostgreSQL or CockroachDB in
// tests, and does to single requests what networks and databases do: it loses an
// answer after the server has acted, loses the request, cuts the connection,
// delays, or answers with an error of the database. It speaks the wire protocol
// without TLS and passwords, one request at a time for each connection, and
// keeps an answer in memory. It is safe for concurrent use.
package pgproxy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// Fault is what happens to a request.
type Fault int

// The faults.
const (
	None Fault = iota
	// LoseAnswer lets the server act, and breaks the connection before its
	// answer.
	LoseAnswer
	// LoseRequest breaks the connection before the server has the request.
	LoseRequest
	// CutAnswer breaks the connection in the middle of the answer.
	CutAnswer
	// Stall delays the answer by Proxy.Delay.
	Stall
	// Restart answers 40001. The server rolls a commit back, and does not get
	// another request.
	Restart
	// UnknownDone answers a commit with 40003 after it was done. Of another
	// request it is None.
	UnknownDone
	// UnknownUndone answers a commit with 40003 after a rollback. Of another
	// request it is None.
	UnknownUndone
	// Faults is how many there are.
	Faults
)

// Request is what a client asks of the server.
type Request struct {
	// Text is the statement of a simple request, in lower case; empty: requests
	// with parameters.
	Text string
}

// IsCommit reports whether the request ends a transaction that writes or reads.
func (r Request) IsCommit() bool { return r.Text == "commit" }

// Proxy is a running proxy.
type Proxy struct {
	// Delay is how long Stall lasts; set it before the first connection.
	Delay    time.Duration
	target   string
	listener net.Listener
	choose   func(Request) Fault
	tasks    sync.WaitGroup
	life     context.Context
	end      context.CancelFunc

	mu    sync.Mutex // guards all below
	count [Faults]int
}

// Start starts a proxy to the server of a URL, until the test ends. choose is
// called for every request, by many goroutines at once. Start returns the URL
// of the proxy.
func Start(t testing.TB, target string, choose func(Request) Fault) (*Proxy, string) {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Delay: 50 * time.Millisecond, target: u.Host, listener: listener, choose: choose}
	p.life, p.end = context.WithCancel(context.Background())
	p.tasks.Go(p.accept)
	t.Cleanup(func() {
		p.end()
		listener.Close()
		p.tasks.Wait()
	})
	u.Host = listener.Addr().String()
	return p, u.String()
}

// Count returns how many requests met a fault.
func (p *Proxy) Count(f Fault) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count[f]
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.tasks.Go(func() { p.serve(client) })
	}
}

// serve passes requests on until one side ends.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	stop := context.AfterFunc(p.life, func() { client.Close() })
	defer stop()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	stopServer := context.AfterFunc(p.life, func() { server.Close() })
	defer stopServer()
	l := &link{proxy: p, client: client, server: server, status: 'I'}
	if err := l.greet(); err != nil {
		return
	}
	for l.exchange() == nil {
	}
}

// link is one client's connection with its own to the server.
type link struct {
	proxy          *Proxy
	client, server net.Conn
	// status is what the server last said: I idle, T in a transaction, E in one
	// that failed.
	status byte
}

// Codes of a client's first message.
const (
	cancelCode = 80877102
	tlsCode    = 80877103
	gssCode    = 80877104
)

// errEnd ends a connection without a failure.
var errEnd = errors.New("the connection ends")

// greet passes the start of a session on.
func (l *link) greet() error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(l.client, head[:]); err != nil {
			return err
		}
		rest, err := readBody(l.client, int(binary.BigEndian.Uint32(head[:4]))-8)
		if err != nil {
			return err
		}
		switch binary.BigEndian.Uint32(head[4:]) {
		case tlsCode, gssCode:
			if _, err := l.client.Write([]byte{'N'}); err != nil {
				return err
			}
			continue
		case cancelCode:
			if _, err := l.server.Write(append(head[:], rest...)); err != nil {
				return err
			}
			return errEnd
		}
		if _, err := l.server.Write(append(head[:], rest...)); err != nil {
			return err
		}
		answer, err := l.answer()
		if len(answer) > 0 {
			if _, err := l.client.Write(answer); err != nil {
				return err
			}
		}
		return err
	}
}

// maxMessage bounds one message.
const maxMessage = 64 << 20

func readBody(r io.Reader, n int) ([]byte, error) {
	if n < 0 || n > maxMessage {
		return nil, fmt.Errorf("a message of %d bytes", n)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(r, body)
	return body, err
}

// message reads one message with its type and length.
func message(r io.Reader) (kind byte, whole []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	body, err := readBody(r, int(binary.BigEndian.Uint32(head[1:]))-4)
	return head[0], append(head, body...), err
}

// request reads messages up to the one that the server answers as a whole.
func (l *link) request() (Request, []byte, error) {
	var all []byte
	for {
		kind, whole, err := message(l.client)
		if err != nil {
			return Request{}, nil, err
		}
		all = append(all, whole...)
		switch kind {
		case 'Q':
			var q pgproto3.Query
			if err := q.Decode(whole[5:]); err != nil {
				return Request{}, nil, err
			}
			return Request{Text: strings.ToLower(q.String)}, all, nil
		case 'S':
			return Request{}, all, nil
		case 'X':
			return Request{}, nil, errEnd
		}
	}
}

// answer reads the server's messages up to ReadyForQuery. It returns what came
// even with an error.
func (l *link) answer() ([]byte, error) {
	var all []byte
	for {
		kind, whole, err := message(l.server)
		if err != nil {
			return all, err
		}
		all = append(all, whole...)
		if kind == 'Z' {
			l.status = whole[5]
			return all, nil
		}
	}
}

// exchange passes one request and its answer on, or does the fault to it.
func (l *link) exchange() error {
	request, text, err := l.request()
	if err != nil {
		return err
	}
	fault := l.proxy.choose(request)
	if !request.IsCommit() && (fault == UnknownDone || fault == UnknownUndone) {
		fault = None
	}
	l.proxy.note(fault)
	switch fault {
	case LoseRequest:
		return errEnd
	case Restart, UnknownUndone:
		return l.refuse(request, code(fault))
	case UnknownDone:
		if _, err := l.ask(text); err != nil {
			return err
		}
		return l.fail(code(fault))
	}
	answer, err := l.ask(text)
	switch fault {
	case LoseAnswer:
		return errEnd
	case CutAnswer:
		_, _ = l.client.Write(answer[:len(answer)/2]) // the connection ends anyway
		return errEnd
	case Stall:
		l.proxy.wait()
	}
	if len(answer) > 0 {
		if _, err := l.client.Write(answer); err != nil {
			return err
		}
	}
	return err
}

func code(f Fault) string {
	if f == Restart {
		return "40001"
	}
	return "40003"
}

func (l *link) ask(text []byte) ([]byte, error) {
	if _, err := l.server.Write(text); err != nil {
		return nil, err
	}
	return l.answer()
}

// refuse answers with an error. The server rolls a commit back, and another
// request it never sees; the client has to roll back then.
func (l *link) refuse(request Request, code string) error {
	if request.IsCommit() {
		rollback, err := (&pgproto3.Query{String: "rollback"}).Encode(nil)
		if err != nil {
			return err
		}
		if _, err := l.ask(rollback); err != nil {
			return err
		}
	}
	return l.fail(code)
}

// fail sends an error and that the session goes on.
func (l *link) fail(code string) error {
	text, err := (&pgproto3.ErrorResponse{Severity: "ERROR", Code: code, Message: "made up by a test"}).Encode(nil)
	if err != nil {
		return err
	}
	status := l.status
	if status == 'T' {
		status = 'E'
	}
	text, err = (&pgproto3.ReadyForQuery{TxStatus: status}).Encode(text)
	if err != nil {
		return err
	}
	_, err = l.client.Write(text)
	return err
}

func (p *Proxy) note(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count[f]++
}

func (p *Proxy) wait() {
	timer := time.NewTimer(p.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.life.Done():
	}
}

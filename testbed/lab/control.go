package lab

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// What can be asked of a lab.
const (
	AskStatus = "status"
	AskFault  = "fault"
	AskDown   = "down"
)

// Request is one question to a lab: a JSON object on a connection of its own,
// answered by one Reply.
type Request struct {
	Do    string `json:"do"`
	Fault *Fault `json:"fault,omitempty"`
}

// Reply is its answer.
type Reply struct {
	Fault  []byte  `json:"fault"` // fault.Encode
	Status *Status `json:"status,omitempty"`
}

// controlLimit bounds one request with its answer; the longest starts a node.
const controlLimit = readyLimit + 30*time.Second

// control serves the socket by which other processes steer the lab.
type control struct {
	listener net.Listener
	done     sync.WaitGroup
	ctx      context.Context // ends with close
	cancel   context.CancelFunc
}

func listen(l *Lab) (*control, error) {
	path := socketPath(l.opt.Name)
	_ = os.Remove(path) // of a lab that crashed
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fault.FromOS("lab.Up", path, err)
	}
	c := &control{listener: listener}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.done.Add(1)
	go func() {
		defer c.done.Done()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // closed
			}
			c.done.Add(1)
			go func() { defer c.done.Done(); c.one(conn, l) }()
		}
	}()
	return c, nil
}

func (c *control) one(conn net.Conn, l *Lab) {
	defer conn.Close()
	stop := context.AfterFunc(c.ctx, func() { conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	var r Request
	if err := json.NewDecoder(conn).Decode(&r); err != nil {
		return // whoever asked has gone
	}
	ctx, cancel := context.WithTimeout(c.ctx, controlLimit)
	defer cancel()
	var a Reply
	var err error
	switch r.Do {
	case AskStatus:
		var s Status
		s, err = l.Status(ctx)
		a.Status = &s
	case AskFault:
		if r.Fault == nil {
			err = fault.E(fault.Usage, "lab.control", r.Do, "names no fault")
		} else {
			err = l.Do(ctx, *r.Fault)
		}
	case AskDown: // below: going down closes this connection
	default:
		err = fault.E(fault.Usage, "lab.control", r.Do, "is nothing that a lab does")
	}
	a.Fault = fault.Encode(nil, err)
	_ = json.NewEncoder(conn).Encode(a) // whoever asked may have gone
	if r.Do == AskDown {
		l.once.Do(func() { close(l.asked) })
	}
}

func (c *control) close() {
	c.cancel()
	_ = c.listener.Close() // nobody is served any more
	c.done.Wait()
}

// Ask sends a request to the lab of that name, which another process holds.
func Ask(ctx context.Context, name string, r Request) (Reply, error) {
	const op fault.Op = "lab.Ask"
	var a Reply
	if _, runs, err := Load(name); err != nil {
		return a, err
	} else if !runs {
		return a, fault.Errorf(fault.Unreachable, op, name, "this lab's process is gone: `cartwheel-testbed down --name %s` cleans up after it", name)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socketPath(name))
	if err != nil {
		return a, &fault.Error{Kind: fault.Unreachable, Op: op, Subject: name, Public: "this lab does not answer: it is still coming up, or going down", Cause: err}
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_ = conn.SetDeadline(time.Now().Add(controlLimit)) // a socket that cannot have one fails below
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return a, fault.Wrap(fault.Unreachable, op, name, err)
	}
	if err := json.NewDecoder(conn).Decode(&a); err != nil {
		return a, fault.Wrap(fault.Unreachable, op, name, err)
	}
	failed, err := fault.Decode(a.Fault)
	if err != nil {
		return a, fault.Wrap(fault.Corrupt, op, name, err)
	}
	return a, failed
}

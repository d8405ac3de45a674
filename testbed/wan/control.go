package wan

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"syscall"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/testbed/netns"
)

// Ask is what a Request wants.
type Ask string

// What can be asked of an emulator.
const (
	AskStart  Ask = "start"  // with Config, once
	AskChange Ask = "change" // with Config and the Version it was made from
	AskConfig Ask = "config"
	AskStats  Ask = "stats"
)

// LifelineEnv tells the emulator's process to end when its standard input does.
const LifelineEnv = "CARTWHEEL_WAN_LIFELINE"

// Listener is the descriptor on which the emulator's process finds its
// listening socket.
const Listener = 3

// callTimeout bounds a call to the emulator, which answers in milliseconds.
const callTimeout = 20 * time.Second

// Request is one question to the emulator: a JSON object on a connection of
// its own, answered by one Reply.
type Request struct {
	Do      Ask     `json:"do"`
	Config  *Config `json:"config,omitempty"`
	Version uint64  `json:"version,omitempty"`
}

// Reply is its answer.
type Reply struct {
	Kind    fault.Kind `json:"kind,omitempty"` // none if it was done
	Subject string     `json:"subject,omitempty"`
	Error   string     `json:"error,omitempty"`
	Config  *Config    `json:"config,omitempty"`
	Version uint64     `json:"version,omitempty"`
	Stats   *Stats     `json:"stats,omitempty"`
}

func call(ctx context.Context, run netns.Run, r Request) (*Reply, error) {
	const op fault.Op = "wan.call"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket(run))
	if err != nil {
		return nil, fault.E(fault.Unreachable, op, run.String(), "the emulator of this run does not answer: bring the run down and up again")
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return nil, fault.Wrap(fault.Unreachable, op, run.String(), errors.Join(err, ctx.Err()))
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return nil, fault.Wrap(fault.Unreachable, op, run.String(), errors.Join(err, ctx.Err()))
	}
	if reply.Kind != fault.None {
		return nil, fault.E(reply.Kind, "", reply.Subject, reply.Error)
	}
	return &reply, nil
}

// call asks the emulator, and gives up at once when it has ended.
func (n *Network) call(ctx context.Context, r Request) (*Reply, error) {
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-n.gone:
			cancel()
		case <-done:
		}
	}()
	reply, err := call(ctx, n.run, r)
	if errors.Is(err, context.DeadlineExceeded) && asked.Err() == nil && n.cmd != nil {
		// It stands still, and will not go on: its stacks tell why.
		do := standstill(n.cmd.Process.Pid)
		_ = n.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended meanwhile
		return nil, fault.E(fault.Unreachable, "wan.call", n.run.String(), "the emulator does not answer, and was ended: see the stacks that it wrote; "+do)
	}
	select {
	case <-n.gone:
		if err != nil {
			return nil, fault.E(fault.Closed, "wan.call", n.run.String(), "the emulator has ended: see what it wrote to its standard error")
		}
	default:
	}
	return reply, err
}

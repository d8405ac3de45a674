package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
)

// Stdio is what the process reads and writes, and its environment.
type Stdio struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
}

// readiness is the one line on standard output, once the process serves.
type readiness struct {
	Ready     bool     `json:"ready"`
	ID        string   `json:"id"`
	Cluster   string   `json:"cluster,omitempty"`
	Addresses []string `json:"addresses"` // with /p2p/ID
}

// ready says that the process serves: by the line on standard output, and to the
// service manager.
func (s Stdio) ready(host *wire.Host, cluster string) error {
	r := readiness{Ready: true, ID: host.KeyID(), Cluster: cluster}
	for _, a := range host.Addresses() {
		r.Addresses = append(r.Addresses, a+"/p2p/"+host.KeyID())
	}
	if err := json.NewEncoder(s.Out).Encode(r); err != nil {
		return err
	}
	return s.notify(isReady)
}

// logger returns the process's logger.
func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fault.Wrap(fault.Usage, "daemon.logger", "log_level", err)
	}
	o := &slog.HandlerOptions{Level: l}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return slog.New(slog.NewTextHandler(w, o)), nil
}

// first returns the first error that is not merely the asked-for end.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// LatencyOptions say how often the two operations are timed.
type LatencyOptions struct {
	Dir    string // made if it is not there
	Rounds int
	Bytes  int // of each file
	Seed   uint64
}

// LatencyResult is how long single operations took, in milliseconds, in order.
type LatencyResult struct {
	// Create is making an empty file.
	Create []float64 `json:"create_ms"`
	// Write is the close of that file once a little was written to it.
	Write []float64 `json:"write_ms"`
	// Read is reading it for the first time, in a folder that is known already.
	Read []float64 `json:"read_ms"`
}

// Latency writes small files and reads each again, with nothing of it cached, one
// operation at a time. It fails where a file does not hold what was written.
func Latency(ctx context.Context, o LatencyOptions) (LatencyResult, error) {
	const op fault.Op = "load.Latency"
	var r LatencyResult
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return r, fault.FromOS(op, o.Dir, err)
	}
	for i := range o.Rounds {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		file, data := filepath.Join(o.Dir, fmt.Sprintf("file-%06d", i)), content(o.Seed, uint64(i), o.Bytes)
		if err := r.save(file, data); err != nil {
			return r, fault.FromOS(op, file, err)
		}
		if err := Cold(o.Dir); err != nil {
			return r, err
		}
		if _, err := os.Stat(o.Dir); err != nil {
			return r, fault.FromOS(op, o.Dir, err)
		}
		var got []byte
		took, err := timed(func() (err error) { got, err = os.ReadFile(file); return err })
		if err != nil {
			return r, fault.FromOS(op, file, err)
		}
		if !bytes.Equal(got, data) {
			return r, fault.E(fault.Corrupt, op, file, "does not hold what was written")
		}
		r.Read = append(r.Read, milliseconds(took))
	}
	return r, nil
}

// save makes a file, and times its parts.
func (r *LatencyResult) save(file string, data []byte) error {
	var f *os.File
	took, err := timed(func() (err error) { f, err = os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644); return err })
	if err != nil {
		return err
	}
	r.Create = append(r.Create, milliseconds(took))
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	took, err = timed(f.Close)
	r.Write = append(r.Write, milliseconds(took))
	return err
}

package load

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// piece is how much is written or read at a time, and interval how often the
// progress is noted.
const (
	piece    = 1 << 20
	interval = 250 * time.Millisecond
)

// StreamResult is what streaming one file did.
type StreamResult struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// At and Done are seconds since the start, and bytes done by then.
	At   []float64 `json:"at_s"`
	Done []int64   `json:"done_bytes"`
}

// Mbit is the speed in millions of bits a second.
func (r StreamResult) Mbit() float64 { return float64(r.Bytes) * 8 / 1e6 / r.Seconds }

// progress notes how far a stream is.
type progress struct {
	r     *StreamResult
	start time.Time
	next  time.Duration
}

func (p *progress) note(n int) {
	p.r.Bytes += int64(n)
	if at := time.Since(p.start); at >= p.next {
		p.r.At, p.r.Done = append(p.r.At, at.Seconds()), append(p.r.Done, p.r.Bytes)
		p.next = at + interval
	}
}

func (p *progress) end() {
	p.r.Seconds = time.Since(p.start).Seconds()
	p.r.At, p.r.Done = append(p.r.At, p.r.Seconds), append(p.r.Done, p.r.Bytes)
}

func noise(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// WriteStream makes a file of noise and returns when all of it is
// acknowledged: fsync and close are part of the time.
func WriteStream(ctx context.Context, file string, size int64, seed uint64) (StreamResult, error) {
	const op fault.Op = "load.WriteStream"
	var r StreamResult
	bytes := noise(seed)
	buf := make([]byte, piece)
	p := progress{r: &r, start: time.Now()}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return r, fault.FromOS(op, file, err)
	}
	for err == nil && r.Bytes < size {
		n := min(int64(len(buf)), size-r.Bytes)
		_, _ = bytes.Read(buf[:n]) // it never fails
		if _, err = f.Write(buf[:n]); err == nil {
			p.note(int(n))
			err = ctx.Err()
		}
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	p.end()
	return r, fault.FromOS(op, file, err)
}

// ReadStream reads the file that WriteStream made with that seed from start to
// end, and fails where it holds something else.
func ReadStream(ctx context.Context, file string, size int64, seed uint64) (StreamResult, error) {
	const op fault.Op = "load.ReadStream"
	var r StreamResult
	bytes := noise(seed)
	buf, want := make([]byte, piece), make([]byte, piece)
	p := progress{r: &r, start: time.Now()}
	f, err := os.Open(file)
	if err != nil {
		return r, fault.FromOS(op, file, err)
	}
	defer f.Close()
	for {
		n, err := io.ReadFull(f, buf)
		_, _ = bytes.Read(want[:n]) // it never fails
		if string(buf[:n]) != string(want[:n]) {
			return r, fault.Errorf(fault.Corrupt, op, file, "does not hold what was written, at or behind byte %d", r.Bytes)
		}
		p.note(n)
		if err == nil {
			err = ctx.Err()
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return r, fault.FromOS(op, file, err)
		}
	}
	p.end()
	if r.Bytes != size {
		return r, fault.Errorf(fault.Corrupt, op, file, "holds %d bytes, want %d", r.Bytes, size)
	}
	return r, nil
}

package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"sync"

	"cartwheel.dev/geo-config/fault"
)

// ReadEvents reads what Writers wrote. A last line that was cut off is left
// out: what it told of is then unknown.
func ReadEvents(r io.Reader) ([]Event, error) {
	var events []Event
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	var bad error
	for s.Scan() {
		if bad != nil {
			return events, fault.Wrap(fault.Corrupt, "load.ReadEvents", "", bad)
		}
		var e Event
		if bad = json.Unmarshal(s.Bytes(), &e); bad == nil {
			events = append(events, e)
		}
	}
	return events, fault.Wrap(fault.IO, "load.ReadEvents", "", s.Err())
}

// Verdict is what became of all that was acknowledged.
type Verdict struct {
	Acknowledged int      `json:"acknowledged"` // changes
	Unknown      int      `json:"unknown"`      // changes that were answered by an error
	Reads        int      `json:"reads"`        // that were answered
	Files        int      `json:"files"`        // that were looked for at the end
	Lost         []string `json:"lost"`         // what is not as it was acknowledged
}

// fate is what may be found under a name at the end.
type fate struct {
	versions []uint64 // any of these
	absent   bool     // or nothing
}

// fates follows each name through its events.
func fates(events []Event, v *Verdict) map[string]fate {
	all := map[string]fate{}
	for _, e := range events {
		if e.Wrong {
			v.Lost = append(v.Lost, fmt.Sprintf("%s: a read at %d did not give version %x: %s", e.Name, e.At, e.Version, e.Err))
		}
		if e.Op == OpRead {
			if e.Err == "" {
				v.Reads++
			}
			continue
		}
		f, known := all[e.Name]
		if !known {
			f.absent = true
		}
		switch {
		case e.Err == "" && e.Op == OpDelete:
			f = fate{absent: true}
		case e.Err == "":
			f = fate{versions: []uint64{e.Version}}
		case e.Op == OpDelete:
			f.absent = true
		default:
			f.versions = append(f.versions, e.Version)
		}
		if e.Err == "" {
			v.Acknowledged++
		} else {
			v.Unknown++
		}
		all[e.Name] = f
	}
	return all
}

// Verify looks below dir, maybe at another site, for all that events say was
// acknowledged. An operation that was answered by an error may have happened or
// not; a file that it was making may be incomplete.
func Verify(ctx context.Context, dir string, events []Event, o WriterOptions) (Verdict, error) {
	v := Verdict{Lost: []string{}}
	all := fates(events, &v)
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	sort.Strings(names)
	v.Files = len(names)
	failed := map[uint64]bool{} // versions whose writing was not acknowledged
	for _, e := range events {
		failed[e.Version] = failed[e.Version] || e.Err != "" && e.Op != OpRead
	}
	var mu sync.Mutex // guards v.Lost
	err := each(ctx, max(4, o.Workers), len(names), func(_ context.Context, i int) error {
		lost, err := check(filepath.Join(dir, names[i]), all[names[i]], failed, o)
		if lost != "" {
			mu.Lock()
			defer mu.Unlock()
			v.Lost = append(v.Lost, names[i]+": "+lost)
		}
		return err
	})
	sort.Strings(v.Lost)
	return v, fault.FromOS("load.Verify", dir, err)
}

// check compares one name with its fate; what is lost is told, not an error.
func check(path string, f fate, failed map[uint64]bool, o WriterOptions) (string, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && f.absent:
		return "", nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Sprintf("is not there, acknowledged as version %x", f.versions), nil
	case err != nil:
		return "", err
	case len(f.versions) == 0:
		return "is there, but its removal was acknowledged", nil
	}
	for _, version := range f.versions {
		want := content(o.Seed, version, o.Bytes)
		if bytes.Equal(data, want) || failed[version] && bytes.HasPrefix(want, data) {
			return "", nil
		}
	}
	return fmt.Sprintf("holds %d bytes that are none of the versions %x", len(data), f.versions), nil
}

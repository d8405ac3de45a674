package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// SetOptions describe sets of files: one folder for each owner, all with the same
// number of files.
type SetOptions struct {
	Dir    string // holds the folders of all owners
	Owners int
	Own    int // the owner that plants its files, or does not read them
	Files  int // in each folder
	Bytes  int // of each file
	Reads  int // files that one reader reads
	Seed   uint64
}

// SetFolder is the folder of one owner, from Dir.
func SetFolder(owner int) string { return fmt.Sprintf("owner-%03d", owner) }

// path and data are where a file stands and what it holds. Files have numbers
// across all owners.
func (o SetOptions) path(n int) string {
	return filepath.Join(o.Dir, SetFolder(n/o.Files), fmt.Sprintf("file-%03d", n%o.Files))
}

func (o SetOptions) data(n int) []byte { return content(o.Seed, uint64(n), o.Bytes) }

func (o SetOptions) check(op fault.Op) error {
	if o.Files < 1 || o.Bytes < 1 || o.Own < 0 || o.Own >= o.Owners {
		return fault.E(fault.Usage, op, o.Dir, "a set has a file of a byte at least, and an owner")
	}
	return nil
}

// PlantSet makes the files of one owner, whose folder is there.
func PlantSet(ctx context.Context, o SetOptions) error {
	const op fault.Op = "load.PlantSet"
	if err := o.check(op); err != nil {
		return err
	}
	for i := range o.Files {
		n := o.Own*o.Files + i
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := write(o.path(n), 0o644, o.data(n)); err != nil {
			return fault.FromOS(op, o.path(n), err)
		}
	}
	return nil
}

// SetResult is what one reader did.
type SetResult struct {
	Began int64     `json:"began_us"` // since 1970
	Ended int64     `json:"ended_us"`
	Bytes int64     `json:"bytes"`
	Read  []float64 `json:"read_ms"` // how long each file took, in order
}

// ReadSet reads random files of the other owners, one after another and none
// twice, and fails where one holds something else.
func ReadSet(ctx context.Context, o SetOptions) (SetResult, error) {
	const op fault.Op = "load.ReadSet"
	if err := o.check(op); err != nil {
		return SetResult{}, err
	}
	others := (o.Owners - 1) * o.Files
	if o.Reads < 1 || o.Reads > others {
		return SetResult{}, fault.Errorf(fault.Usage, op, o.Dir, "%d files cannot be read of the %d that others own", o.Reads, others)
	}
	order := rand.New(rand.NewPCG(o.Seed, uint64(o.Own))).Perm(others)[:o.Reads]
	r := SetResult{Began: time.Now().UnixMicro()}
	for _, n := range order {
		if n >= o.Own*o.Files { // behind its own files
			n += o.Files
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		var got []byte
		took, err := timed(func() (err error) { got, err = os.ReadFile(o.path(n)); return err })
		if err != nil {
			return r, fault.FromOS(op, o.path(n), err)
		}
		if string(got) != string(o.data(n)) {
			return r, fault.E(fault.Corrupt, op, o.path(n), "does not hold what was written")
		}
		r.Bytes, r.Read = r.Bytes+int64(len(got)), append(r.Read, milliseconds(took))
	}
	r.Ended = time.Now().UnixMicro()
	return r, nil
}

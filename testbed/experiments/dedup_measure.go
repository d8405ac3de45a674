package experiments

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/chunk"
)

// dedupWay is how trees are stored.
type dedupWay string

// The ways.
const (
	dedupFiles    dedupWay = "files"    // each file is cut by itself, as the product does
	dedupArchives dedupWay = "archives" // the files of a tree are joined to one, as a backup would be
)

func dedupWays() []dedupWay { return []dedupWay{dedupFiles, dedupArchives} }

// dedupCut is a way to cut content.
type dedupCut struct {
	Name  string `json:"cut"`
	Fixed int    `json:"fixed_bytes,omitempty"` // 0: the product's
}

// split calls fn with each chunk of the content, which aliases it.
func (c dedupCut) split(data []byte, fn func(piece []byte) error) error {
	if c.Fixed == 0 {
		return chunk.Split(data, fn)
	}
	for len(data) > 0 {
		n := min(len(data), c.Fixed)
		if err := fn(data[:n:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// dedupRow is all trees, stored one way, cut one way.
type dedupRow struct {
	dedupCut
	Way    dedupWay `json:"stored_as"`
	Bytes  int64    `json:"bytes"`        // of all content
	Stored int64    `json:"stored_bytes"` // of the chunks that differ
	Chunks int      `json:"chunks"`       // of all content
	Unique int      `json:"unique"`       // chunks that differ
	// Cutting is how long the boundaries took to find, Naming how long the chunks took
	// to hash, by one goroutine.
	Cutting time.Duration `json:"cutting_ns"`
	Naming  time.Duration `json:"naming_ns"`

	seen map[chunk.Address]struct{}
}

// dedupTree is what one tree adds to those before it, cut as the product does.
type dedupTree struct {
	Tree  string   `json:"tree"`
	Way   dedupWay `json:"stored_as"`
	Files int      `json:"files"`
	Bytes int64    `json:"bytes"`
	Added int64    `json:"added_bytes"`
}

// dedupFound is what was measured.
type dedupFound struct {
	Rows  []dedupRow  `json:"rows"`
	Trees []dedupTree `json:"trees"`
}

// add cuts more content.
func (r *dedupRow) add(data []byte) error {
	var pieces [][]byte
	start := time.Now()
	err := r.split(data, func(piece []byte) error {
		pieces = append(pieces, piece)
		return nil
	})
	cut := time.Now()
	if err != nil {
		return err
	}
	names := make([]chunk.Address, len(pieces))
	for i, p := range pieces {
		names[i] = chunk.Sum(p)
	}
	r.Cutting, r.Naming = r.Cutting+cut.Sub(start), r.Naming+time.Since(cut)
	r.Bytes, r.Chunks = r.Bytes+int64(len(data)), r.Chunks+len(pieces)
	for i, name := range names {
		if _, known := r.seen[name]; !known {
			r.seen[name] = struct{}{}
			r.Stored, r.Unique = r.Stored+int64(len(pieces[i])), r.Unique+1
		}
	}
	return nil
}

// measure cuts all trees, stored one way, with every cut.
func (p dedupPlan) measure(ctx context.Context, way dedupWay, progress io.Writer) (dedupFound, error) {
	var found dedupFound
	for _, c := range p.cuts {
		found.Rows = append(found.Rows, dedupRow{dedupCut: c, Way: way, seen: map[chunk.Address]struct{}{}})
	}
	product, turn := &found.Rows[0], 0
	for _, tree := range p.trees {
		fmt.Fprintf(progress, "dedup: %s, as %s\n", tree, way)
		t := dedupTree{Tree: filepath.Base(tree), Way: way}
		if filepath.Base(tree) == "src" {
			t.Tree = filepath.Base(filepath.Dir(tree)) + "/src"
		}
		before := product.Stored
		err := walkContent(ctx, tree, way, func(data []byte, files int) error {
			t.Files, t.Bytes = t.Files+files, t.Bytes+int64(len(data))
			turn++
			for i := range found.Rows { // in turns: the first finds nothing in the processor's caches
				if err := found.Rows[(turn+i)%len(found.Rows)].add(data); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return found, err
		}
		t.Added = product.Stored - before
		found.Trees = append(found.Trees, t)
	}
	if product.Bytes == 0 {
		return found, fault.Errorf(fault.Usage, "experiments.measure", fmt.Sprint(p.trees), "there is no content in these trees")
	}
	return found, nil
}

// dedupMost bounds the content of one tree, since an archive is held in memory.
const dedupMost = 1 << 30

// walkContent calls fn with the content of each regular file of a tree, in the order of
// their paths, or with all of it at once, and with the number of files that it is of.
func walkContent(ctx context.Context, tree string, way dedupWay, fn func(data []byte, files int) error) error {
	const op fault.Op = "experiments.walkContent"
	var all []byte
	files, total := 0, int64(0)
	err := filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if total += info.Size(); total > dedupMost {
			return fault.Errorf(fault.Usage, op, tree, "holds more than %d bytes: name smaller trees", dedupMost)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if way == dedupFiles {
			return fn(data, 1)
		}
		all, files = append(all, data...), files+1
		return nil
	})
	if err == nil && way == dedupArchives {
		err = fn(all, files)
	}
	return fault.FromOS(op, tree, err)
}

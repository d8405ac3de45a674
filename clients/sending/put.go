package sending

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"cartwheel.dev/geo-config/fault"
)

// publish puts what was received to its place.
func (x *receiver) publish() error {
	x.st.Whole = true
	if err := x.save(); err != nil {
		return err
	}
	return x.put()
}

// put puts what is beside the copy to its place. It may be done again.
func (x *receiver) put() error {
	const op fault.Op = "sending.put"
	isDifference := x.st.Header.isDifference()
	if isDifference {
		b := builder{root: x.p.Path, spare: filepath.Join(x.dir, newName), plain: x.st.Plain}
		files := uint64(0)
		err := x.replay(func(rec record) error {
			return b.record(rec, func() string { files++; return x.written(files - 1) })
		})
		if err == nil {
			err = b.close()
		}
		if err == nil && !x.p.unsynced {
			err = syncTree(x.p.Path)
		}
		if err != nil {
			return &fault.Error{Kind: fault.KindOf(err), Op: op, Subject: x.p.Path, Cause: err,
				Public: "the difference is received, and only a part of it is put to its place: mend the cause, and receive the same stream again to finish it"}
		}
	}
	tree := filepath.Join(x.dir, treeName)
	if there, err := exists(tree); err != nil {
		return err
	} else if there && !isDifference {
		if err := clearPlace(x.p.Path); err != nil {
			return err
		}
		if err := os.Rename(tree, x.p.Path); err != nil {
			return fault.FromOS(op, x.p.Path, err)
		}
	}
	if !x.p.unsynced {
		if err := syncDir(filepath.Dir(x.p.Path)); err != nil {
			return fault.FromOS(op, x.p.Path, err)
		}
	}
	rec := Record{Version: fileVersion, Header: x.st.Header, Plain: x.st.Plain}
	if err := save(x.p.Path+receivedSuffix, &rec, x.p.unsynced); err != nil {
		return err
	}
	x.close()
	os.Remove(filepath.Join(x.dir, stateName)) // without it the rest means nothing
	return fault.FromOS(op, x.dir, os.RemoveAll(x.dir))
}

// clearPlace makes room for a whole tree where an empty directory is. Whatever else came there
// since the place was looked at stays.
func clearPlace(path string) error {
	const op fault.Op = "sending.clearPlace"
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.IsDir() {
		err = os.Remove(path)
	} else if err == nil {
		err = fs.ErrExist
	}
	if err != nil {
		return fault.E(fault.NotEmpty, op, path, "something came there meanwhile: move it away, and receive the same stream again, which is received and only has to be put to its place")
	}
	return nil
}

// replay reads the journal.
func (x *receiver) replay(do func(record) error) error {
	const op fault.Op = "sending.replay"
	f, err := os.Open(filepath.Join(x.dir, journalName))
	if err != nil {
		return fault.FromOS(op, x.dir, err)
	}
	defer f.Close()
	in := bufio.NewReader(io.LimitReader(f, x.st.Journal))
	for {
		var head [headBytes]byte
		if _, err := io.ReadFull(in, head[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fault.FromOS(op, f.Name(), err)
		}
		body := make([]byte, min(little.Uint32(head[:]), maxBody))
		if _, err := io.ReadFull(in, body); err != nil {
			return fault.FromOS(op, f.Name(), err)
		}
		if err := do(record{head[4], body}); err != nil {
			return err
		}
	}
}

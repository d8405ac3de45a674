// Package archive writes all that a store holds into a file and back: rows with
// their revisions, removed ones too, the audit log with its numbers, and the
// keys of batches. A cluster that moves from one store to another so notices no
// difference. docs/formats/geo-config.md describes the bytes. The package knows
// no store; stores implement Source and Target. Nothing here is safe for
// concurrent use.
package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// Format is the version of the file.
const Format = 1

// maxLineBytes bounds one line: a row's JSON, its key and some words.
const maxLineBytes = geoconfig.MaxRowBytes + 64<<10

// Header is the first line.
type Header struct {
	Format int `json:"cartwheel_geo_config"`
	// Store is what kind of store it came from.
	Store   string      `json:"store"`
	Cluster ids.Cluster `json:"cluster"`
	// Revision and Audit are the store's last revision and audit number.
	Revision ids.Revision `json:"revision"`
	Audit    uint64       `json:"audit"`
}

// Row is a stored row; no Body: it was removed.
type Row struct {
	Table    string          `json:"table"`
	Key      string          `json:"key"`
	Revision ids.Revision    `json:"revision"`
	Body     json.RawMessage `json:"body,omitempty"`
}

// Key is a batch's key; revision 0: settled as never to be applied.
type Key struct {
	Key      []byte       `json:"key"`
	Revision ids.Revision `json:"revision"`
}

// Line is one line between the first and the last; one of its fields is set.
type Line struct {
	Row   *Row                   `json:"row,omitempty"`
	Audit *geoconfig.AuditRecord `json:"audit,omitempty"`
	Key   *Key                   `json:"key,omitempty"`
}

// end is the last line.
type end struct {
	// Lines counts those before this one, the first among them.
	Lines int `json:"lines"`
	// SHA256 is that of all bytes before this line, in hexadecimal.
	SHA256 string `json:"sha256"`
}

// Source is a store that can be written out.
type Source interface {
	// Dump calls start once and then line for everything that the store holds
	// as of one revision: rows in the order of tables, audit records by number,
	// keys from the oldest on.
	Dump(ctx context.Context, start func(Header) error, line func(Line) error) error
}

// Target is a store that takes an archive.
type Target interface {
	// Load fills the store. It refuses with kind NotEmpty a store that holds
	// anything but the beginning of the same archive.
	Load(ctx context.Context, f *File) error
}

// Summary says what was written or read.
type Summary struct {
	Header
	Rows    int    `json:"rows"`
	Records int    `json:"records"`
	Keys    int    `json:"keys"`
	SHA256  string `json:"sha256"`
}

func (s *Summary) count(l Line) {
	switch {
	case l.Row != nil:
		s.Rows++
	case l.Audit != nil:
		s.Records++
	case l.Key != nil:
		s.Keys++
	}
}

// Export writes a store's content to w.
func Export(ctx context.Context, source Source, w io.Writer) (Summary, error) {
	const op fault.Op = "archive.Export"
	out := &writer{w: bufio.NewWriter(w), sum: sha256.New()}
	var s Summary
	err := source.Dump(ctx, func(h Header) error {
		h.Format = Format
		s.Header = h
		return out.line(h)
	}, func(l Line) error {
		s.count(l)
		return out.line(l)
	})
	if err != nil {
		return s, fault.Wrap(fault.IO, op, "", err)
	}
	if out.lines == 0 || s.Cluster == "" {
		return s, fault.E(fault.NotFound, op, "", "the store is empty")
	}
	s.SHA256 = hex.EncodeToString(out.sum.Sum(nil))
	if err := out.line(end{Lines: out.lines, SHA256: s.SHA256}); err != nil {
		return s, fault.Wrap(fault.IO, op, "", err)
	}
	return s, fault.Wrap(fault.IO, op, "", out.w.Flush())
}

type writer struct {
	w     *bufio.Writer
	sum   hash.Hash
	lines int
}

func (w *writer) line(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	w.sum.Write(text) // a hash takes everything
	w.lines++
	_, err = w.w.Write(text)
	return err
}

// TableOf returns the table of a name.
func TableOf(name string) (geoconfig.Table, bool) {
	for _, t := range []geoconfig.Table{geoconfig.ClusterTable, geoconfig.SitesTable, geoconfig.NodesTable, geoconfig.SlicesTable, geoconfig.UsersTable, geoconfig.RecordsTable} {
		if t.String() == name {
			return t, true
		}
	}
	return 0, false
}

// RowKey returns the row's key in a store.
func (r Row) RowKey() geoconfig.RowKey {
	t, _ := TableOf(r.Table)
	return geoconfig.RowKey{Table: t, Name: r.Key}
}

// check finds lines that no store has written.
func (l Line) check(h Header) error {
	bad := func(format string, args ...any) error {
		return fault.Errorf(fault.Corrupt, "archive.Open", "", format, args...)
	}
	set := 0
	for _, is := range []bool{l.Row != nil, l.Audit != nil, l.Key != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		return bad("the line has %d of a row, a record and a key", set)
	case l.Audit != nil && (l.Audit.Number == 0 || l.Audit.Number > h.Audit || l.Audit.Revision > h.Revision):
		return bad("audit record %d of revision %d is not within %d and %d", l.Audit.Number, l.Audit.Revision, h.Audit, h.Revision)
	case l.Key != nil && (len(l.Key.Key) == 0 || l.Key.Revision > h.Revision):
		return bad("a key of revision %d is not within %d", l.Key.Revision, h.Revision)
	case l.Row != nil:
		return l.Row.check(h, bad)
	}
	return nil
}

func (r Row) check(h Header, bad func(string, ...any) error) error {
	t, ok := TableOf(r.Table)
	switch {
	case !ok:
		return fault.Errorf(fault.NewerVersion, "archive.Open", "", "table %q is unknown", r.Table)
	case r.Key == "" || r.Revision == 0 || r.Revision > h.Revision:
		return bad("row %s/%s of revision %d is not within %d", r.Table, r.Key, r.Revision, h.Revision)
	case t == geoconfig.SlicesTable && plan.SliceID(r.RowKey()) == 0:
		return bad("%q is no number of a slice", r.Key)
	case t == geoconfig.RecordsTable && r.Body == nil:
		return bad("record %s was removed, and such records leave nothing behind", r.Key)
	}
	return plan.Collect(new(geoconfig.Rows), r.RowKey(), r.Body, r.Revision)
}

// String says what was written or read.
func (s Summary) String() string {
	return fmt.Sprintf("cluster %s at revision %d: %d rows, %d audit records, %d keys", s.Cluster, s.Revision, s.Rows, s.Records, s.Keys)
}

package embedded_test

import (
	"testing"

	geoconfig "cartwheel.dev/geo-config"
)

// TestOpen_MigratesAnOlderStore opens a file as version 1 left it.
func TestOpen_MigratesAnOlderStore(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	rev := apply(t, s, first())
	s.Close()
	edit(t, dir, "DROP TABLE records", "PRAGMA user_version = 1")
	for range 2 { // the second time there is nothing to migrate
		s = open(t, dir)
		rows, err := s.Read(t.Context(), geoconfig.Query{Sites: true, Audit: 9})
		if err != nil || rows.Revision < rev || len(rows.Sites) != 2 || len(rows.Audit) != 1 {
			t.Fatalf("after the migration: %+v, %v", rows, err)
		}
		s.Close()
	}
	s = open(t, dir)
	apply(t, s, geoconfig.Batch{Key: "record", Records: []geoconfig.Record{{Kind: "plan", Name: "a", Form: 1, Body: []byte("1")}}})
	rows, err := s.Read(t.Context(), geoconfig.Query{Records: 1, RecordKind: "plan"})
	if err != nil || len(rows.Records) != 1 {
		t.Fatalf("got %+v, %v", rows.Records, err)
	}
}

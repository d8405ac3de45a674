package cockroach

import (
	"strconv"
	"strings"
	"unicode/utf8"

	geoconfig "cartwheel.dev/geo-config"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/geo-config/plan"
)

// relation is one table of rows, with its statements. The keys of slices are
// numbers, so that their index is in that order.
type relation struct {
	table geoconfig.Table
	name  string
	// load reads the bodies of the rows with the keys given.
	load string
	// store writes rows, given as arrays of keys and bodies and a revision each.
	store string
	// all reads the rows that exist, in the order of their keys.
	all string
	// every reads all rows, removed ones too, in the order of their keys.
	every string
	// remove deletes rows with the keys given; only of tables that nobody follows.
	remove string
	// after reads the rows, removed ones too, with revisions above $1, the
	// first $2 of them; empty: nobody follows the table.
	after string
}

// relations lists the tables of rows in the order of geoconfig.Table.
func relations() []relation {
	var out []relation
	for _, r := range []struct {
		table geoconfig.Table
		name  string
		key   string
	}{
		{geoconfig.ClusterTable, "cluster", "TEXT"},
		{geoconfig.SitesTable, "sites", "TEXT"},
		{geoconfig.NodesTable, "nodes", "TEXT"},
		{geoconfig.SlicesTable, "slices", "INT8"},
		{geoconfig.UsersTable, "users", "TEXT"},
		// Bytes, so that every database has the same order.
		{geoconfig.RecordsTable, "records", "BYTEA"},
	} {
		fill := func(statement string) string {
			return strings.NewReplacer("{table}", r.name, "{key}", r.key, "{name}", nameColumn(r.key)).Replace(statement)
		}
		rel := relation{
			table: r.table, name: r.name,
			load: fill("SELECT {name}, body FROM {table} WHERE key = ANY($1::{key}[]) AND body IS NOT NULL"),
			store: fill("INSERT INTO {table} (key, revision, body) SELECT k, r, b FROM unnest($1::{key}[], $2::INT8[], $3::TEXT[]) AS new (k, r, b) " +
				"ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, body = excluded.body"),
			all:   fill("SELECT {name}, revision, body FROM {table} WHERE body IS NOT NULL ORDER BY {table}.key"),
			every: fill("SELECT {name}, revision, body FROM {table} ORDER BY {table}.key"),
			after: fill("SELECT {name}, revision, body FROM {table} WHERE revision > $1 ORDER BY revision, {table}.key LIMIT $2"),
		}
		if r.table == geoconfig.RecordsTable {
			rel.after, rel.remove = "", fill("DELETE FROM {table} WHERE key = ANY($1::{key}[])")
		}
		out = append(out, rel)
	}
	return out
}

// nameColumn is the expression that reads a key as text.
func nameColumn(column string) string {
	if column == "BYTEA" {
		return "convert_from(key, 'UTF8')"
	}
	return "key::TEXT"
}

// relationOf returns a table's statements.
func relationOf(t geoconfig.Table) (relation, bool) {
	for _, r := range relations() {
		if r.table == t {
			return r, true
		}
	}
	return relation{}, false
}

// keyArray returns keys of one table as the array that its statements take.
func keyArray(t geoconfig.Table, keys []geoconfig.RowKey) any {
	if t == geoconfig.RecordsTable {
		names := make([][]byte, len(keys))
		for i, key := range keys {
			names[i] = []byte(key.Name)
		}
		return names
	}
	if t != geoconfig.SlicesTable {
		names := make([]string, len(keys))
		for i, key := range keys {
			names[i] = key.Name
		}
		return names
	}
	numbers := make([]int64, len(keys))
	for i, key := range keys {
		numbers[i] = int64(plan.SliceID(key))
	}
	return numbers
}

// canHold reports whether a column can hold a name, so that looking for it is no
// error. No row has another name.
func canHold(key geoconfig.RowKey) bool {
	if key.Table == geoconfig.SlicesTable {
		return plan.SliceID(key) != 0
	}
	return key.Name != "" && utf8.ValidString(key.Name) && !strings.ContainsRune(key.Name, 0)
}

// sliceNumbers returns slices as an array of numbers.
func sliceNumbers(list []ids.Slice) []int64 {
	out := make([]int64, len(list))
	for i, id := range list {
		out[i] = int64(id)
	}
	return out
}

func sliceKey(number int64) geoconfig.RowKey {
	return geoconfig.RowKey{Table: geoconfig.SlicesTable, Name: strconv.FormatInt(number, 10)}
}

// checkLoaded refuses a store that has only the beginning of an archive.
func checkLoaded(op fault.Op, lines int64) error {
	if lines < 0 {
		return nil
	}
	return fault.E(fault.Busy, op, "", "an import did not finish: repeat cartwheel geo-config import with the same file")
}

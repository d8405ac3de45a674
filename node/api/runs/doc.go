// Package runs reads the folders that experiments write, one for each run, for the
// console. It only reads: package report of the testbed writes them. Such a folder
// may be cut off, damaged, or no run at all; the list then has it with the reason.
// It follows no symbolic link, and bounds what it reads. A Folder is safe for
// concurrent use.
package runs

import "time"

// States of a run.
const (
	// Finished runs have their result.
	Finished = "finished"
	// Unfinished runs go on, or were cut off.
	Unfinished = "unfinished"
	// Void runs have figures that do not count; the reason says why.
	Void = "void"
	// Damaged is a folder that cannot be read as a run; the reason says why.
	Damaged = "damaged"
)

// RunSummary is a run in the list. Of a damaged one, only Name, State and Reason are
// known.
type RunSummary struct {
	Name       string     `json:"name" doc:"The name of its folder."`
	State      string     `json:"state" enum:"finished,unfinished,void,damaged"`
	Reason     string     `json:"reason,omitempty" doc:"Why it is void or damaged."`
	Experiment string     `json:"experiment,omitempty"`
	Title      string     `json:"title,omitempty"`
	StartedAt  *time.Time `json:"started_at,omitempty"`
	TookMS     *int64     `json:"took_ms,omitempty"`
	Seed       string     `json:"seed,omitempty" doc:"A whole number of 64 bits, in decimal."`
	Short      bool       `json:"short" doc:"Small sizes and few repetitions."`
	Version    string     `json:"version,omitempty" doc:"The revision of the programs under test (git describe)."`
	Topology   string     `json:"topology,omitempty" doc:"The name of its topology; absent: it used none."`
	Sites      []string   `json:"sites" nullable:"false"`
	Arguments  []string   `json:"arguments" nullable:"false" doc:"The words of the command that repeats it."`
	KeyResults []Key      `json:"key_results" nullable:"false" doc:"The first figures of its first table."`
}

// Key is one figure of a run.
type Key struct {
	Row    string  `json:"row"`
	Column string  `json:"column"`
	Unit   string  `json:"unit,omitempty"`
	Value  float64 `json:"value"`
}

// RunList is what a folder of runs has, the newest first.
type RunList struct {
	Folder string       `json:"folder,omitempty" doc:"The folder that the answering node reads; absent: it is told of none."`
	Items  []RunSummary `json:"items" nullable:"false"`
	Total  int          `json:"total" doc:"How many there are in all; the list has the newest ones."`
}

// Run is all that is known of a run.
type Run struct {
	RunSummary
	SetUp    string   `json:"set_up,omitempty"`
	Earlier  []string `json:"void_before" nullable:"false" doc:"Why the attempts before this one were void."`
	Notes    []string `json:"notes" nullable:"false"`
	Machine  Machine  `json:"machine"`
	Tables   []Table  `json:"tables" nullable:"false"`
	Figures  []Figure `json:"figures" nullable:"false"`
	CutShort bool     `json:"cut_short" doc:"Whether tables, rows or figures were left out, as there are too many."`
}

// Machine is where a run took place.
type Machine struct {
	Go         string   `json:"go,omitempty"`
	Kernel     string   `json:"kernel,omitempty"`
	Machine    string   `json:"machine,omitempty"`
	CPUs       int      `json:"cpus,omitempty"`
	LoadBefore *float64 `json:"load_before,omitempty" doc:"The load average of a minute; absent: not known."`
	LoadAfter  *float64 `json:"load_after,omitempty"`
}

// Table is rows of cells below named columns.
type Table struct {
	Name    string   `json:"name"`
	Title   string   `json:"title,omitempty"`
	Columns []Column `json:"columns" nullable:"false"`
	Rows    [][]any  `json:"rows" nullable:"false" doc:"Cells: a number, a text, or null."`
}

// Column is one column. Others' figures have a source: they were not measured in
// the run.
type Column struct {
	Name   string `json:"name"`
	Unit   string `json:"unit,omitempty"`
	Source string `json:"source,omitempty"`
}

// Figure is one picture of a run.
type Figure struct {
	File  string `json:"file"`
	Title string `json:"title"`
}

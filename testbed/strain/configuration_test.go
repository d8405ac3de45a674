package strain

import (
	"io"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/storetest/postgrestest"
)

func TestConfiguration_FillsFetchesAndLoses(t *testing.T) {
	for name, database := range map[string]func(*testing.T) string{
		"embedded":   func(*testing.T) string { return "" },
		"PostgreSQL": func(t *testing.T) string { return postgrestest.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			o := Configuration{Options: Options{In: t.TempDir(), Progress: io.Discard}, Database: database(t), Slices: 1500, Nodes: 6, Followers: 20, Changes: 3}
			figures, err := o.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, f := range figures {
				got[f.Name] = f.Value
			}
			if got["slices"] != 1500 || got["nodes"] != 6 || got["slices of a lost node"] != 750 || got["batches"] != 2 || got["bytes a row"] < 100 {
				t.Errorf("got %v, want 1500 slices, half of them of the lost node", got)
			}
		})
	}
	if _, err := (Configuration{Slices: 1, Nodes: 2, Followers: 1, Changes: 1}).Run(t.Context()); !fault.Is(err, fault.Usage) {
		t.Errorf("two nodes: got %v, want Usage", err)
	}
}

package command

import (
	"testing"

	"cartwheel.dev/node/protocol/status"
)

func TestMovedBytes_CountsFromTheFirstLook(t *testing.T) {
	m := movedBytes{}
	for i, step := range []struct {
		one, other int64 // -1: does not answer
		want       int64
	}{
		{100, 0, 0}, {150, 7, 57}, {-1, 7, 57}, {-1, 9, 59},
		{30, 9, 89}, // it started anew
		{40, 9, 99},
	} {
		nodes := []nodeView{{ID: "one"}, {ID: "other"}}
		for j, moved := range []int64{step.one, step.other} {
			if moved >= 0 {
				fill(&nodes[j], status.Node{MovedBytes: moved})
			}
		}
		if got := m.add(nodes); got != step.want {
			t.Errorf("look %d: got %d, want %d", i+1, got, step.want)
		}
	}
}

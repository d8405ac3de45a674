package space

import (
	"testing"

	"cartwheel.dev/node/protocol/pb"
)

// TestSpace_IsWhatFitsSoOften holds what df shows against the disks of the nodes.
func TestSpace_IsWhatFitsSoOften(t *testing.T) {
	const block = 4096
	disk := func(total, free, objects, left uint64) *pb.StatfsResponse {
		return &pb.StatfsResponse{TotalBytes: total * block, FreeBytes: free * block, Objects: objects, FreeObjects: left}
	}
	cases := []struct {
		name                     string
		nodes                    []*pb.StatfsResponse
		copies                   int
		total, free, files, left uint64
	}{
		{"one disk", []*pb.StatfsResponse{disk(100, 40, 7, 9)}, 1, 100, 40, 16, 9},
		{"a copy on each: the fullest disk counts", []*pb.StatfsResponse{disk(100, 40, 7, 9), disk(300, 5, 8, 20), disk(90, 60, 7, 3)}, 3, 90, 5, 11, 3},
		{"not every node answered", []*pb.StatfsResponse{disk(100, 40, 7, 9), disk(300, 5, 8, 20)}, 3, 100, 5, 17, 9},
		{"more nodes than copies", []*pb.StatfsResponse{disk(100, 40, 6, 9), disk(100, 40, 6, 9), disk(100, 40, 6, 9), disk(100, 40, 6, 9)}, 2, 200, 80, 30, 18},
		{"one disk that the others cannot match", []*pb.StatfsResponse{disk(1000, 900, 6, 90), disk(100, 10, 6, 9), disk(100, 20, 6, 9)}, 2, 200, 30, 27, 18},
		{"room for the first copy only", []*pb.StatfsResponse{disk(100, 90, 6, 9), disk(100, 0, 6, 9), disk(100, 0, 6, 9)}, 2, 150, 0, 22, 13},
		{"no copies are known of", []*pb.StatfsResponse{disk(100, 40, 7, 9), disk(100, 20, 7, 9)}, 0, 200, 60, 32, 18},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := spaceOf(c.nodes, c.copies)
			if got.Blocks != c.total || got.FreeBlocks != c.free || got.AvailBlocks != c.free || got.Files != c.files || got.FreeFiles != c.left {
				t.Errorf("got %d blocks, %d free, %d files, %d free; want %d, %d, %d, %d",
					got.Blocks, got.FreeBlocks, got.Files, got.FreeFiles, c.total, c.free, c.files, c.left)
			}
			if got.BlockSize != block {
				t.Errorf("blocks have %d bytes", got.BlockSize)
			}
		})
	}
}

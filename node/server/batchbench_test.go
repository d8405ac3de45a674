package server_test

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/pb"
	"cartwheel.dev/node/server/servertest"
	"cartwheel.dev/node/tree"
)

// batchedUnlinks is how many files each round of BenchmarkUnlinks removes.
const batchedUnlinks = 256

// BenchmarkUnlinks removes 256 files in one batch, and beside that one by one from
// 32 callers at once, at one node with a real disk. CPU is the whole process's: the
// node and its client.
func BenchmarkUnlinks(b *testing.B) {
	for name, remove := range map[string]func(*batcher, *servertest.Client, []*pb.Operation){
		"batch": func(b *batcher, _ *servertest.Client, list []*pb.Operation) {
			if r := b.send(batchOf(list...), nil).Result; len(r.Results) != len(list) || r.Results[len(list)-1].Kind != 0 {
				b.t.Fatalf("%d ran", len(r.Results))
			}
		},
		"single": removeSingly,
	} {
		b.Run(name, func(b *testing.B) {
			cluster := servertest.Start(b, servertest.Options{Sites: []string{"a"}, Folders: true})
			c, single := newBatcher(b, cluster), cluster.Connect("root")
			d := c.create(ids.RootObject, "d", tree.TypeDir|0o755)
			c.send(batchOf(d), nil)
			var wall, cpu time.Duration
			for range b.N {
				remaining := fill256(c, objectOf(d))
				from, used := time.Now(), cpuTime(b)
				remove(c, single, remaining)
				wall, cpu = wall+time.Since(from), cpu+cpuTime(b)-used
			}
			n := float64(b.N * batchedUnlinks)
			b.ReportMetric(float64(wall.Microseconds())/n, "us/unlink")
			b.ReportMetric(float64(cpu.Microseconds())/n, "cpu-us/unlink")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// fill256 makes files and returns what removes them.
func fill256(c *batcher, dir ids.Object) (remove []*pb.Operation) {
	made := &pb.Batch{Reserve: batchedUnlinks}
	for i := range batchedUnlinks {
		name := fmt.Sprintf("file%d", i)
		made.Operations = append(made.Operations, c.create(dir, name, tree.TypeRegular|0o644))
		remove = append(remove, unlink(dir, name))
	}
	r := c.send(made, nil).Result
	if c.next = r.First; len(r.Results) != batchedUnlinks || r.Results[0].Kind != 0 {
		c.t.Fatalf("%d files were made: %v", len(r.Results), r.Results[0])
	}
	return remove
}

func removeSingly(b *batcher, single *servertest.Client, list []*pb.Operation) {
	work := make(chan *pb.Operation)
	var wg sync.WaitGroup
	for range 32 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for op := range work {
				if r, err := single.Operate(b.ctx, ids.RootSlice, op, nil); err != nil || r.Kind != 0 {
					b.t.Errorf("%v: %v, %v", op, r, err)
				}
			}
		}()
	}
	for _, op := range list {
		work <- op
	}
	close(work)
	wg.Wait()
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

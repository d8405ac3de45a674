package freeport

import (
	"sync"
	"testing"
)

func TestPool_GivesNoPortTwice(t *testing.T) {
	const pools, each = 8, 40 // some blocks of each
	var mu sync.Mutex
	given := make(map[int]bool)
	var open [pools]Pool
	var group sync.WaitGroup
	for i := range open {
		group.Go(func() {
			for range each {
				port, err := open[i].Take()
				if err != nil {
					t.Errorf("Take: %v", err)
					return
				}
				mu.Lock()
				if given[port] {
					t.Errorf("port %d was given out twice", port)
				}
				given[port] = true
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for i := range open {
		if err := open[i].Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	for port := range given {
		if port < firstPort || port >= endPort {
			t.Errorf("port %d is one that the system may give to others", port)
		}
	}
}

func TestPool_PassesOverATakenPort(t *testing.T) {
	var p Pool
	t.Cleanup(func() { p.Close() })
	first, err := p.Take()
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := listen(first + 1)
	if err != nil {
		t.Skipf("somebody listens at port %d: %v", first+1, err)
	}
	defer stranger.Close()
	if next, err := p.Take(); err != nil || next <= first+1 {
		t.Errorf("Take gives port %d, %v, want one behind %d, which is taken", next, err, first+1)
	}
}

func TestPool_GivesBackOnClose(t *testing.T) {
	var p Pool
	port, err := p.Take()
	if err != nil {
		t.Fatal(err)
	}
	block := port - (port-firstPort)%blockSize
	if l, err := listen(block); err == nil {
		l.Close()
		t.Errorf("port %d marks a block that is owned, and is free", block)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := listen(block)
	if err != nil {
		t.Fatalf("port %d is not given back: %v", block, err)
	}
	l.Close()
}

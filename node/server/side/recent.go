package side

import (
	"sync"

	"cartwheel.dev/node/protocol/pb"
)

// maxRecent bounds the results that are remembered.
const maxRecent = 4096

// recent remembers the results of operations that may be sent again, because an answer
// was lost on its way. Those of before a start are not remembered.
type recent struct {
	mu      sync.Mutex // guards below
	results map[sent]*pb.Result
	order   []sent
}

// sent is one operation of a client, as its number says.
type sent struct{ client, number uint64 }

func newRecent() *recent { return &recent{results: map[sent]*pb.Result{}} }

func (r *recent) get(client, number uint64) *pb.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results[sent{client, number}]
}

func (r *recent) put(client, number uint64, result *pb.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := sent{client, number}
	if r.results[k] == nil {
		r.order = append(r.order, k)
	}
	r.results[k] = result
	if len(r.order) > maxRecent {
		delete(r.results, r.order[0])
		r.order = r.order[1:]
	}
}

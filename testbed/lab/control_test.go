package lab

import (
	"encoding/json"
	"net"
	"os"
	"testing"
)

// TestControl_AnswersTheCallerOfDown asks a lab to go down, which ends the
// connections of all callers. The caller that asked for it gets its answer
// before.
func TestControl_AnswersTheCallerOfDown(t *testing.T) {
	const name = "ctltest"
	if err := os.MkdirAll(stateDir(name), 0o700); err != nil {
		t.Skipf("the state folder of labs needs root: %v", err)
	}
	defer os.RemoveAll(stateDir(name))
	for range 300 {
		l := &Lab{opt: Options{Name: name}, asked: make(chan struct{})}
		c, err := listen(l)
		if err != nil {
			t.Fatal(err)
		}
		down := make(chan struct{})
		go func() {
			defer close(down)
			<-l.AskedDown()
			c.close()
		}()
		conn, err := net.Dial("unix", socketPath(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(conn).Encode(Request{Do: AskDown}); err != nil {
			t.Fatal(err)
		}
		var a Reply
		if err := json.NewDecoder(conn).Decode(&a); err != nil {
			t.Fatalf("no answer: %v", err)
		}
		conn.Close()
		<-down
	}
}

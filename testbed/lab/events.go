package lab

import (
	"encoding/json"
	"os"
	"sync"
	"time"

	"cartwheel.dev/geo-config/fault"
)

// Event is a line of events.jsonl in the lab's folder: what happened and when.
type Event struct {
	At time.Time `json:"at"`
	// Kind is up, down, fault, failed, died or note.
	Kind string `json:"kind"`
	Who  string `json:"who,omitempty"` // host or site
	Text string `json:"text"`
}

// events writes them, and keeps the newest.
type events struct {
	mu   sync.Mutex // guards below; held while a line is written, so that lines are whole
	file *os.File
	last []Event
}

const keptEvents = 100

func newEvents(path string) (*events, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fault.FromOS("lab.Up", path, err)
	}
	return &events{file: f}, nil
}

func (e *events) add(kind, who, text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := Event{At: time.Now(), Kind: kind, Who: who, Text: text}
	if e.last = append(e.last, v); len(e.last) > keptEvents {
		e.last = e.last[1:]
	}
	_ = json.NewEncoder(e.file).Encode(v) // a full disk is told by everything else
}

// recent returns the newest ones, the oldest first.
func (e *events) recent() []Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]Event(nil), e.last...)
}

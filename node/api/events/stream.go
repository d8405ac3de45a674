package events

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"cartwheel.dev/geo-config/ids"
)

// writeLimit bounds how long a write to a stream may take. A reader that is slower
// is cut, and resumes.
const writeLimit = 10 * time.Second

// Input is the request of a stream.
type Input struct {
	LastEventID string `header:"Last-Event-ID" maxLength:"64" doc:"The last event that the caller had; it goes on behind it."`
}

// Stream answers with a stream of events until the caller leaves.
func (h *Hub) Stream(_ context.Context, in *Input) (*huma.StreamResponse, error) {
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
		from, gap := h.begin(in.LastEventID)
		defer h.end()
		h.pump(ctx.Context(), &eventWriter{w: w, control: http.NewResponseController(w)}, from, gap)
	}}, nil
}

// pump writes events from a number on, until the caller or the Hub ends.
func (h *Hub) pump(ctx context.Context, w *eventWriter, from uint64, gap bool) {
	if w.flush(": hello\nretry: 2000\n\n") != nil {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		if gap {
			var revision ids.Revision
			from, revision = h.newest()
			if w.event(h.name(from-1), "gap", GapEvent{revision}) != nil {
				return
			}
		}
		events, changed, missed, over := h.since(from)
		if gap = missed; gap {
			continue
		}
		for _, e := range events {
			if w.event(h.name(e.number), e.name, e.data) != nil {
				return
			}
			from = e.number + 1
		}
		if over {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-beat.C:
			if w.flush(": alive\n\n") != nil {
				return
			}
		}
	}
}

// eventWriter writes a stream of events. One goroutine uses it.
type eventWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (w *eventWriter) event(id, name string, data any) error {
	encoded, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return w.flush(fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", id, name, encoded))
}

func (w *eventWriter) flush(text string) error {
	if err := w.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	if _, err := w.w.Write([]byte(text)); err != nil {
		return err
	}
	return w.control.Flush()
}

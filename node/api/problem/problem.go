// Package problem describes failures of the admin API as RFC 9457 has it. It is pure,
// and all of it may be called from anywhere.
package problem

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"cartwheel.dev/geo-config/fault"
)

// MediaType is the media type of RFC 9457.
const MediaType = "application/problem+json"

// Problem says what failed, as RFC 9457 has it.
type Problem struct {
	// Type is about:blank: Code tells failures apart.
	Type   string `json:"type" doc:"Always about:blank."`
	Title  string `json:"title" doc:"The HTTP status in words."`
	Status int    `json:"status" doc:"The HTTP status."`
	Detail string `json:"detail" doc:"What is wrong, for people."`
	// Code is the kind of the fault, with underscores: not_found.
	Code      string `json:"code" doc:"The kind of failure, such as not_found."`
	Subject   string `json:"subject,omitempty" doc:"What it is about."`
	Remedy    string `json:"remedy,omitempty" doc:"What to do now."`
	RequestID string `json:"request_id" doc:"Names the request in the node's log."`
	// Fields are what is wrong with single values of the request.
	Fields []FieldProblem `json:"fields,omitempty" doc:"What is wrong with single values of the request."`
}

// FieldProblem says what is wrong with one value of a request.
type FieldProblem struct {
	Location string `json:"location" doc:"Where the value stands, such as body.name."`
	Message  string `json:"message" doc:"What is wrong with it."`
}

// Error implements error.
func (p *Problem) Error() string { return p.Detail }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType implements huma.ContentTypeFilter.
func (p *Problem) ContentType(string) string { return MediaType }

// remedies say what a caller can do about a kind of failure.
var remedies = map[fault.Kind]string{
	fault.Invalid:      "Mend the values that are named, then send the request again.",
	fault.Unauthorized: "Sign in, then try again.",
	fault.Permission:   "Ask an administrator for the role.",
	fault.Conflict:     "Read the row again, and make the change to what it is now.",
	fault.Overloaded:   "Wait a moment, then try again.",
	fault.Unreachable:  "Check that the process is up and reachable; what is configured goes on meanwhile.",
	fault.TimedOut:     "Repeat the request with the same Idempotency-Key to find out whether it was done.",
	fault.TooLarge:     "Send less at once.",
	fault.Again:        "Try again in a moment.",
	fault.Closed:       "Ask another node: this one is stopping.",
}

// Of describes an error. requestID names the request.
func Of(err error, requestID string) *Problem {
	kind := fault.KindOf(err)
	status := kind.HTTPStatus()
	return &Problem{Type: "about:blank", Title: Title(status), Status: status, Detail: fault.Explain(err), Code: kind.Code(),
		Subject: fault.SubjectOf(err), Remedy: remedies[kind], RequestID: requestID}
}

// Title is a status in words.
func Title(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Client Closed Request" // 499, which the standard library has no words for
}

// Write sends a problem outside of huma.
func (p *Problem) Write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", MediaType)
	w.Header().Set("Cache-Control", "no-store")
	if p.Code == fault.Overloaded.Code() {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller has gone where it fails
}

// Transform turns what huma found wrong with the request of a name into a Problem,
// and leaves everything else.
func Transform(v any, requestID string) any {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v
	}
	p := Of(fault.E(kindOfStatus(m.Status), "problem.Transform", "", m.Detail), requestID)
	p.Status, p.Title = m.Status, Title(m.Status)
	for _, e := range m.Errors {
		p.Fields = append(p.Fields, FieldProblem{Location: e.Location, Message: e.Message})
	}
	return p
}

// kindOfStatus is the kind of a failure that huma itself found.
func kindOfStatus(status int) fault.Kind {
	switch status {
	case http.StatusNotFound:
		return fault.NotFound
	case http.StatusRequestEntityTooLarge:
		return fault.TooLarge
	case http.StatusRequestTimeout:
		return fault.TimedOut
	case http.StatusInternalServerError:
		return fault.Other
	}
	return fault.Invalid
}

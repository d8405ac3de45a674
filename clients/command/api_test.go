package command

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
)

// fakeAPI is a server that answers like a node; the documents' examples ask a real
// one.
func fakeAPI(t *testing.T) (at, token string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/slices", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items":[{"id":1}],"limit":"`+r.URL.Query().Get("limit")+`"}`)
	})
	mux.HandleFunc("POST /api/v1/sites", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"got":`+string(body)+`,"key":"`+r.Header.Get("Idempotency-Key")+`","match":`+r.Header.Get("If-Match")+`}`)
	})
	mux.HandleFunc("GET /api/v1/events", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: slices\ndata: {}\n\n")
	})
	mux.HandleFunc("GET /api/v1/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
	})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"detail":"you are not signed in","code":"unauthorized","remedy":"Sign in, then try again."}`)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, tokenFile(t, "sesame\n")
}

func tokenFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "api.token")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAPI_AsksANode(t *testing.T) {
	at, token := fakeAPI(t)
	a := asker{t: t}
	for _, x := range []struct {
		words []string
		want  string
	}{
		{[]string{"/slices?limit=7"}, "{\n  \"items\": [\n    {\n      \"id\": 1\n    }\n  ],\n  \"limit\": \"7\"\n}"},
		{[]string{"/api/v1/slices"}, `"limit": ""`},
		{[]string{"/sites", "--data", `{"name": "oslo"}`, "--key", "k1", "--match", `"7"`}, `"name": "oslo"`},
		{[]string{"/sites", "--data", "@" + tokenFile(t, `{"name": "lima"}`), "--match", `"7"`}, `"name": "lima"`},
		{[]string{"/events"}, "event: slices\ndata: {}\n\n"},
	} {
		code, out, said := a.run(append([]string{"api", "--at", at, "--token", token}, x.words...)...)
		if code != fault.ExitOK || !strings.Contains(out, x.want) {
			t.Errorf("%q: exit code %d, %q, %s; want %q", x.words, code, out, said, x.want)
		}
	}
	_, out, _ := a.run("api", "--at", at, "--token", token, "/sites", "--data", `{}`, "--key", "k1", "--match", `"7"`)
	if !strings.Contains(out, `"key": "k1"`) || !strings.Contains(out, `"match": "7"`) {
		t.Errorf("the headers came as %s", out)
	}
}

func TestAPI_RefusesAndSaysWhatToDo(t *testing.T) {
	at, token := fakeAPI(t)
	a := asker{t: t}
	for _, x := range []struct {
		words []string
		code  int
		want  string
	}{
		{[]string{"/slices", "--token", token}, fault.ExitUsage, "--at: is missing"},
		{[]string{"/slices", "--at", "tcp://x", "--token", token}, fault.ExitUsage, "is no address such as"},
		{[]string{"/slices", "--at", "http://192.0.2.1:1", "--token", token}, fault.ExitUsage, "in clear: use https"},
		{[]string{"/slices", "--at", at}, fault.ExitUsage, "--token: is missing"},
		{[]string{"/slices", "--at", at, "--token", "none"}, fault.ExitNotFound, "none"},
		{[]string{"/slices", "--at", at, "--token", tokenFile(t, "\n")}, fault.ExitUsage, "holds no token"},
		{[]string{"slices", "--at", at, "--token", token}, fault.ExitUsage, "is no path such as"},
		{[]string{"/sites", "--at", at, "--token", token, "--data", "{"}, fault.ExitUsage, "--data: is no JSON"},
		{[]string{"/slices", "--at", at, "--token", token, "--method", "G T"}, fault.ExitUsage, "G T"},
		{[]string{"/slices", "--at", "http://127.0.0.1:1", "--token", token}, fault.ExitUnavailable, "nothing answers there"},
		{[]string{"/slices", "--at", at, "--token", tokenFile(t, "wrong")}, fault.ExitPermission, "you are not signed in. Sign in, then try again."},
		{[]string{"/away", "--at", at, "--token", token}, fault.ExitFailure, "302 Found: is it a node's admin API?"},
	} {
		if code, out, said := a.run(append([]string{"api"}, x.words...)...); code != x.code || !strings.Contains(said, x.want) || out != "" {
			t.Errorf("%q: exit code %d, %q, %s; want %d and %q", x.words, code, out, said, x.code, x.want)
		}
	}
}

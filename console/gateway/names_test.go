package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// change sends a request without a body as the operator otto. A MOVE has a
// destination, below /files/.
func (f *front) change(t *testing.T, method, path, destination string, headers ...string) (int, string) {
	t.Helper()
	if method == "MOVE" {
		headers = append([]string{"Destination: /files/" + destination}, headers...)
	}
	return f.send(t, method, path, http.NoBody, headers...)
}

// reads returns what a path of the tree has, or its status where that is no 200.
func (f *front) reads(t *testing.T, path string) string {
	t.Helper()
	resp, body := f.get(t, "/files/"+path, "Cookie: "+cookie, "Accept: application/json")
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return body
}

const missing = "404 Not Found"

// fill stores small files that a test needs.
func (f *front) fill(t *testing.T, files map[string]string) {
	t.Helper()
	for path, text := range files {
		if code, body := f.put(t, path, strings.NewReader(text)); code != http.StatusCreated {
			t.Fatalf("%s: got %d, %q", path, code, body)
		}
	}
}

// refusal is a request that changes nothing, and its answer.
type refusal struct {
	method, path, destination string
	status                    int
	says                      string
}

func (f *front) refuses(t *testing.T, list ...refusal) {
	t.Helper()
	for _, r := range list {
		if code, body := f.change(t, r.method, r.path, r.destination); code != r.status || !strings.Contains(body, r.says) {
			t.Errorf("%s %.40s to %.40q: got %d, %q, want %d with %q", r.method, r.path, r.destination, code, body, r.status, r.says)
		}
	}
}

// badPaths are paths, as addresses, that no change takes, and what is said of them.
var badPaths = map[string]string{
	"open/a%00b":                         "NUL",
	"open/.Site=a":                       "cue",
	"open/.RepLevel=none/x":              "cue",
	"open/" + strings.Repeat("long", 64): "has 256 bytes, and may have 255",
	"":                                   "the folder that the gateway shows",
}

func (f *front) makesFolders(t *testing.T) {
	if code, body := f.change(t, "MKCOL", "open/new%20folder", ""); code != http.StatusCreated {
		t.Fatalf("got %d, %q", code, body)
	}
	if got := f.reads(t, "open/new%20folder/"); got != "[]" && got != "null" && got != "[]\n" {
		t.Errorf("the new folder has %q", got)
	}
	if _, body := f.get(t, "/properties/open/new%20folder", "Cookie: "+cookie); !strings.Contains(body, `"mode":"0755"`) || !strings.Contains(body, `"uid":1000`) {
		t.Errorf("its properties: got %s", body)
	}
	f.fill(t, map[string]string{"open/new%20folder/in.txt": "inside"})
	if resp, body := f.get(t, "/files/open/", "Cookie: "+cookie, "Accept: application/json", "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT"); !strings.Contains(body, "new folder") {
		t.Errorf("a list that may have changed within a second: got %d, %q", resp.StatusCode, body)
	}
	f.refuses(t,
		refusal{"MKCOL", "open/new%20folder", "", http.StatusConflict, "is there already"},
		refusal{"MKCOL", "open/page.txt", "", http.StatusConflict, "is there already"},
		refusal{"MKCOL", "none/folder", "", http.StatusNotFound, "not there"},
		refusal{"MKCOL", "page.txt/folder", "", http.StatusBadRequest, "no folder"},
		refusal{"MKCOL", "folder", "", http.StatusForbidden, "uid 1000"},
		refusal{"MKCOL", "closed/folder", "", http.StatusForbidden, "may not read"})
	for path, says := range badPaths {
		f.refuses(t, refusal{"MKCOL", path, "", http.StatusBadRequest, says})
	}
}

func (f *front) moves(t *testing.T) {
	f.fill(t, map[string]string{"open/old.txt": "old", "open/taken.txt": "taken", "open/kept.txt": "kept"})
	for _, m := range []struct{ path, destination, text string }{
		{"open/old.txt", "open/n%C3%A9w%20name%3F.txt", "old"},
		{"open/n%C3%A9w%20name%3F.txt", "open/new%20folder/moved.txt", "old"},
	} {
		if code, body := f.change(t, "MOVE", m.path, m.destination, "Overwrite: F"); code != http.StatusCreated {
			t.Fatalf("%s to %s: got %d, %q", m.path, m.destination, code, body)
		}
		if was, is := f.reads(t, m.path), f.reads(t, m.destination); was != missing || is != m.text {
			t.Errorf("%s to %s: they read %q and %q", m.path, m.destination, was, is)
		}
	}
	if code, body := f.change(t, "MOVE", "open/new%20folder", "open/folder"); code != http.StatusCreated || f.reads(t, "open/folder/moved.txt") != "old" {
		t.Errorf("a folder: got %d, %q", code, body)
	}
	f.refuses(t,
		refusal{"MOVE", "open/kept.txt", "open/taken.txt", http.StatusConflict, "Overwrite: T"},
		refusal{"MOVE", "open/kept.txt", "open/folder", http.StatusConflict, "no file"},
		refusal{"MOVE", "open/folder", "open/taken.txt", http.StatusConflict, "is there already"},
		refusal{"MOVE", "open/folder", "open/folder/below", http.StatusBadRequest, "inside of what is moved"},
		refusal{"MOVE", "open/kept.txt", "open/kept.txt", http.StatusBadRequest, "the path that it has"},
		refusal{"MOVE", "open/none.txt", "open/some.txt", http.StatusNotFound, "not there"},
		refusal{"MOVE", "open/kept.txt", "none/some.txt", http.StatusNotFound, "not there"},
		refusal{"MOVE", "open/kept.txt", "kept.txt", http.StatusForbidden, "uid 1000"},
		refusal{"MOVE", "page.txt", "open/mine.txt", http.StatusForbidden, "uid 1000"},
		refusal{"MOVE", "out", "open/out", http.StatusForbidden, "uid 1000"},
		refusal{"MOVE", "open/kept.txt", "open/some?query", http.StatusBadRequest, "encoded"},
		refusal{"MOVE", "open/kept.txt", "../properties/x", http.StatusBadRequest, `\"..\"`},
		refusal{"MOVE", "open/kept.txt", "..%2f..%2foutside.txt", http.StatusBadRequest, `\"..\"`},
		refusal{"MOVE", "open/kept.txt", "open/x%2f..%2fx", http.StatusBadRequest, `\"..\"`})
	for path, says := range badPaths {
		f.refuses(t, refusal{"MOVE", path, "open/some.txt", http.StatusBadRequest, says}, refusal{"MOVE", "open/kept.txt", path, http.StatusBadRequest, says})
	}
	for header, says := range map[string]string{"Destination: http://other.example/files/open/x": "another server", "Destination: /api/x": "has to begin with /files/",
		"Destination: open/x": "new path", "Destination: %zz": "new path", "Destination: ": "new path"} {
		if code, body := f.change(t, "MOVE", "open/kept.txt", "", header); code != http.StatusBadRequest || !strings.Contains(body, says) {
			t.Errorf("%s: got %d, %q, want %q", header, code, body, says)
		}
	}
	if code, body := f.change(t, "MOVE", "open/kept.txt", "open/taken.txt", "Overwrite: yes"); code != http.StatusBadRequest || !strings.Contains(body, "Overwrite") {
		t.Errorf("an odd Overwrite: got %d, %q", code, body)
	}
	if f.reads(t, "open/kept.txt") != "kept" || f.reads(t, "open/taken.txt") != "taken" {
		t.Errorf("what was refused has changed something: %q, %q", f.reads(t, "open/kept.txt"), f.reads(t, "open/taken.txt"))
	}
	code, body := f.change(t, "MOVE", "open/kept.txt", "", "Destination: "+f.url+"/files/open/taken.txt", "Overwrite: T")
	if code != http.StatusCreated || f.reads(t, "open/taken.txt") != "kept" || f.reads(t, "open/kept.txt") != missing {
		t.Errorf("to replace a file: got %d, %q, and it reads %q", code, body, f.reads(t, "open/taken.txt"))
	}
	f.refuses(t, refusal{"MOVE", "open/folder", "open/taken.txt", http.StatusConflict, "a folder replaces nothing"})
}

// removes works on what moves left.
func (f *front) removes(t *testing.T) {
	f.refuses(t,
		refusal{"DELETE", "open/folder", "", http.StatusConflict, "delete what is in it, or use a mount"},
		refusal{"DELETE", "open/none.txt", "", http.StatusNotFound, "not there"},
		refusal{"DELETE", "none/x", "", http.StatusNotFound, "not there"},
		refusal{"DELETE", "page.txt", "", http.StatusForbidden, "uid 1000"},
		refusal{"DELETE", "sticky/page.txt", "", http.StatusForbidden, "sticky bit"},
		refusal{"DELETE", "closed/page.txt", "", http.StatusForbidden, "may not read"})
	for path, says := range badPaths {
		f.refuses(t, refusal{"DELETE", path, "", http.StatusBadRequest, says})
	}
	// Caddy resolves "..", as browsers do, and what leads out of /files/ is no file's.
	f.refuses(t,
		refusal{"DELETE", "open/..%2f..%2foutside.txt", "", http.StatusMethodNotAllowed, ""},
		refusal{"MKCOL", "../files/open/x%2f..%2ffolder", "", http.StatusConflict, "is there already"})
	for _, headers := range [][]string{{"X-Cartwheel-CSRF: guess"}, {"Cookie: a-viewer's"}} {
		for _, method := range []string{"DELETE", "MKCOL", "MOVE"} {
			if code, _ := f.change(t, method, "open/folder/in.txt", "open/stolen.txt", headers...); code != http.StatusForbidden {
				t.Errorf("%s with %s: got %d", method, headers[0], code)
			}
		}
	}
	if got := f.reads(t, "open/folder/in.txt"); got != "inside" {
		t.Errorf("what was refused has changed something: %q", got)
	}
	for _, path := range []string{"open/folder/in.txt", "open/folder/moved.txt", "open/folder/", "open/taken.txt"} {
		if code, body := f.change(t, "DELETE", path, ""); code != http.StatusNoContent || f.reads(t, path) != missing {
			t.Errorf("%s: got %d, %q, and it reads %q", path, code, body, f.reads(t, path))
		}
	}
}

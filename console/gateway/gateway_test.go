package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"cartwheel.dev/console/gateway"
	"cartwheel.dev/console/gateway/gatewaytest"
	"cartwheel.dev/console/gateway/treefs"
	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/geo-config/freeport"
	"cartwheel.dev/node/server/servertest"
	"go.uber.org/goleak"
)

// patience bounds what a test waits for.
const patience = time.Minute

const (
	cookie = "cartwheel-session=the-secret"
	index  = "<!doctype html><title>the console</title>"
)

// TestMain lets two goroutines of libraries be: they end by themselves, after
// seconds of sleep.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/caddyserver/certmagic.keepLockfileFresh"),
		goleak.IgnoreAnyFunction("github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy.(*Upstream).fillDynamicHost.func1.1"))
}

// front is a gateway that runs, before nodes whose admin APIs the test plays.
type front struct {
	url    string
	data   string
	nodes  map[string]*httptest.Server // by their answer's X-Node
	config string
	log    string
	again  chan os.Signal
}

// serveAPI answers as a node's admin API does, as far as the gateway needs it.
func serveAPI(id string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/api/v1/session", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Node", id)
		if r.Header.Get("Cookie") != cookie {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("/api/v1/session/change", func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Set("X-Cartwheel-Account", "account/otto"); r.Header.Get("Cookie") != cookie || r.Header.Get("X-Cartwheel-CSRF") != "mark" {
			w.WriteHeader(http.StatusForbidden)
		}
	})
	mux.HandleFunc("/api/v1/seen", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("X-Forwarded-Proto"))
	})
	mux.HandleFunc("/api/v1/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: first\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // no second one
	})
	return mux
}

// start runs a gateway by the Caddyfile that its own command prints, with the log in
// a file.
func start(t *testing.T, options ...string) *front {
	t.Helper()
	c := servertest.Start(t, servertest.Options{})
	gatewaytest.WriteSite(t, c)
	contact, _ := gatewaytest.Contact(t, c, "ann")
	dir := t.TempDir()
	for name, text := range map[string]string{"index.html": index, "assets/a.js": strings.Repeat("wheel();\n", 1000)} {
		path := filepath.Join(dir, "dist", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	f := &front{url: "http://" + address, nodes: map[string]*httptest.Server{}, data: filepath.Join(dir, "data"), config: filepath.Join(dir, "Caddyfile"),
		log: filepath.Join(dir, "log"), again: make(chan os.Signal, 1)}
	args := []string{"caddyfile", "--contact", contact, "--console", filepath.Join(dir, "dist"), "--listen", address, "--files", "/www", "--data", f.data}
	args = append(args, options...)
	for _, n := range c.Nodes {
		h := httptest.NewServer(serveAPI(string(n.ID())))
		t.Cleanup(h.Close)
		f.nodes[string(n.ID())] = h
		args = append(args, "--node", string(n.ID())+"="+strings.TrimPrefix(h.URL, "http://"))
	}
	var text, said bytes.Buffer
	if code := gateway.Run(t.Context(), args, gateway.Stdio{Out: &text, Err: &said}); code != 0 {
		t.Fatalf("caddyfile: exit %d: %s", code, &said)
	}
	f.write(t, strings.ReplaceAll(text.String(), "output stderr", "output file "+f.log+" {\n\t\t\troll_disabled\n\t\t}"))
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan int)
	out, in := io.Pipe()
	go func() {
		code := gateway.Run(ctx, []string{"run", "--config", f.config}, gateway.Stdio{Out: in, Err: &said, Again: f.again})
		_ = in.Close() // a pipe's end does not fail
		ended <- code
	}()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		end()
		if code := <-ended; code != 0 {
			t.Errorf("run: exit %d: %s", code, &said)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != `{"ready":true}`+"\n" {
		t.Fatalf("it says %q, %v, want that it is ready: %s", line, err, &said)
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatalf("it said that it is ready, and takes no connection: %v", err)
	}
	conn.Close()
	return f
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var ports freeport.Pool
	t.Cleanup(func() { ports.Close() })
	port, err := ports.Take()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

func wait(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v it is not so that %s", patience, what)
		}
	}
}

func (f *front) write(t *testing.T, config string) {
	t.Helper()
	if err := os.WriteFile(f.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// get asks for a path with headers as "Name: value", and returns the answer and its
// body.
func (f *front) get(t *testing.T, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	resp, body, err := f.try(t, path, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// try is get for when the gateway may just close what it has accepted.
func (f *front) try(t *testing.T, path string, headers ...string) (*http.Response, string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.url+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if req.Header.Set(name, value); name == "Host" {
			req.Host = value
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// TestGateway_ServesByItsOwnCaddyfile runs all against one gateway: a cluster takes
// seconds to start. The last parts change it.
func TestGateway_ServesByItsOwnCaddyfile(t *testing.T) {
	f := start(t)
	t.Run("console", f.showsTheConsole)
	t.Run("API", f.passesTheAPI)
	t.Run("files", f.showsFiles)
	t.Run("properties", f.showsProperties)
	t.Run("uploads", f.takesFiles)
	t.Run("modes", f.changesModes)
	t.Run("folders", f.makesFolders)
	t.Run("moves", f.moves)
	t.Run("removals", f.removes)
	t.Run("log", f.logsNoSecret)
	t.Run("reload", f.reloads)
	t.Run("dead node", f.leavesADeadNode)
}

func (f *front) showsTheConsole(t *testing.T) {
	for _, path := range []string{"/", "/slices/7", "/files"} {
		resp, body := f.get(t, path)
		h := resp.Header
		policy := h.Get("Content-Security-Policy")
		if resp.StatusCode != http.StatusOK || body != index || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: got %d, %q, %v", path, resp.StatusCode, body, h)
		}
		if !strings.Contains(policy, "default-src 'self'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		if h.Get("Strict-Transport-Security") != "" || h.Get("Server") != "" {
			t.Errorf("%s: got %v", path, h)
		}
	}
	resp, body := f.get(t, "/assets/a.js", "Accept-Encoding: zstd")
	if resp.Header.Get("Content-Encoding") != "zstd" || len(body) > 1000 || !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("a.js: got %d bytes, %v", len(body), resp.Header)
	}
	if resp, _ := f.get(t, "/assets/gone.js"); resp.StatusCode != http.StatusNotFound || strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("gone.js: got %d, %v", resp.StatusCode, resp.Header)
	}
	if resp, _ := f.get(t, "/", "Host: rebound.example"); resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("for another host: got %d", resp.StatusCode)
	}
}

func (f *front) passesTheAPI(t *testing.T) {
	if _, body := f.get(t, "/api/v1/seen", "X-Forwarded-For: 10.1.1.1"); body != "127.0.0.1 127.0.0.1 http" {
		t.Errorf("the node saw %q", body)
	}
	resp, err := http.Get(f.url + "/api/v1/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("data: first\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "data: first\n\n" {
		t.Errorf("before the stream's end: %q, %v", first, err)
	}
}

func (f *front) showsFiles(t *testing.T) {
	for _, path := range []string{"/files/page.txt", "/files/"} {
		if resp, body := f.get(t, path); resp.StatusCode != http.StatusUnauthorized || strings.Contains(body, "wheel") {
			t.Errorf("%s without a session: got %d, %q", path, resp.StatusCode, body)
		}
	}
	signedIn := "Cookie: " + cookie
	resp, body := f.get(t, "/files/page.txt", signedIn)
	h := resp.Header
	tag := h.Get("Etag")
	if body != "hello, wheel" || tag == "" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("got %d, %q, %v", resp.StatusCode, body, h)
	}
	if resp, _ := f.get(t, "/files/page.txt", signedIn, "If-None-Match: "+tag); resp.StatusCode != http.StatusNotModified {
		t.Errorf("with its ETag: got %d", resp.StatusCode)
	}
	if resp, body := f.get(t, "/files/page.txt", signedIn, "Range: bytes=7-"); resp.StatusCode != http.StatusPartialContent || body != "wheel" {
		t.Errorf("a range: got %d, %q", resp.StatusCode, body)
	}
	resp, body = f.get(t, "/files/", signedIn, "Accept: application/json")
	if !strings.Contains(resp.Header.Get("Content-Type"), "json") || !strings.Contains(body, `"page.txt"`) || strings.Contains(body, "outside") {
		t.Errorf("the list: got %d, %q, %v", resp.StatusCode, body, resp.Header)
	}
	if resp, body := f.get(t, "/files/..%2foutside.txt", signedIn); body == "outside" {
		t.Errorf("a file beside the folder: got %d, %q", resp.StatusCode, body)
	}
	for path, want := range map[string]int{"/files/private.txt": http.StatusForbidden, "/files/out": http.StatusNotFound} {
		if resp, body := f.get(t, path, signedIn); resp.StatusCode != want {
			t.Errorf("%s: got %d, %q, want %d", path, resp.StatusCode, body, want)
		}
	}
}

func (f *front) showsProperties(t *testing.T) {
	if resp, body := f.get(t, "/properties/page.txt"); resp.StatusCode != http.StatusUnauthorized || strings.Contains(body, "object") {
		t.Errorf("without a session: got %d, %q", resp.StatusCode, body)
	}
	signedIn := "Cookie: " + cookie
	resp, body := f.get(t, "/properties/page.txt", signedIn)
	var p treefs.Properties
	if err := json.Unmarshal([]byte(body), &p); err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got %d, %q, %v", resp.StatusCode, body, err)
	}
	if p.Path != "/page.txt" || p.IsFolder || p.Mode != "0644" || p.UID != 0 || p.SizeBytes != uint64(len("hello, wheel")) || p.ModifiedAt.IsZero() {
		t.Errorf("the attributes: got %+v", p)
	}
	if p.As != (treefs.Rights{UID: 1000, Read: true}) {
		t.Errorf("ann may read only: got %+v", p.As)
	}
	if w := p.Where; w.Slice == 0 || w.Object == "" || w.Active.Node == "" || len(w.Standbys) == 0 || w.Read.Why == "" || w.Policy.Level == 0 {
		t.Errorf("where it is: got %+v", w)
	}
	if resp, body := f.get(t, "/properties/", signedIn); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"path":"/","is_folder":true,"mode":"0755"`) {
		t.Errorf("the folder: got %d, %q", resp.StatusCode, body)
	}
	for path, want := range map[string]int{"private.txt": http.StatusForbidden, "excepted.txt": http.StatusForbidden, "closed": http.StatusForbidden,
		"closed/page.txt": http.StatusForbidden, "none": http.StatusNotFound, "out": http.StatusNotFound} {
		resp, body := f.get(t, "/properties/"+path, signedIn)
		if resp.StatusCode != want || !strings.Contains(resp.Header.Get("Content-Type"), "problem+json") || strings.Contains(body, `"where"`) {
			t.Errorf("%s: got %d, %q, want %d", path, resp.StatusCode, body, want)
		}
	}
}

// put uploads a body as the operator otto, and returns the answer's status and body.
func (f *front) put(t *testing.T, path string, body io.Reader, headers ...string) (int, string) {
	t.Helper()
	return f.send(t, http.MethodPut, path, body, headers...)
}

func (f *front) send(t *testing.T, method, path string, body io.Reader, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+"/files/"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range append([]string{"Cookie: " + cookie, "X-Cartwheel-CSRF: mark", "X-Cartwheel-Account: forged"}, headers...) {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (f *front) takesFiles(t *testing.T) {
	signedIn := "Cookie: " + cookie
	long := strings.Repeat("a long file. ", 300_000)
	for path, text := range map[string]string{"open/new.txt": "new", "open/empty": "", "open/long.txt": long} {
		if code, body := f.put(t, path, strings.NewReader(text)); code != http.StatusCreated {
			t.Errorf("%s: got %d, %q", path, code, body)
		}
		if resp, body := f.get(t, "/files/"+path, signedIn); resp.StatusCode != http.StatusOK || body != text {
			t.Errorf("%s: reads %d, %d bytes, want %d", path, resp.StatusCode, len(body), len(text))
		}
	}
	if code, body := f.put(t, "open/new.txt", strings.NewReader("newer")); code != http.StatusConflict || !strings.Contains(body, "If-Match") {
		t.Errorf("a name that is taken: got %d, %q", code, body)
	}
	if code, body := f.put(t, "open/new.txt", strings.NewReader("newer"), "If-Match: *"); code != http.StatusCreated {
		t.Errorf("to replace it: got %d, %q", code, body)
	}
	if _, body := f.get(t, "/files/open/new.txt", signedIn); body != "newer" {
		t.Errorf("replaced: got %q", body)
	}
	if code, body := f.put(t, "open/broken.txt", io.MultiReader(strings.NewReader(long), errorReader{})); code != 0 {
		t.Errorf("a body that breaks off: got %d, %q", code, body)
	}
	for path, want := range map[string]int{"new.txt": http.StatusForbidden, "closed/new.txt": http.StatusForbidden, "none/new.txt": http.StatusNotFound,
		"open/.Site=a": http.StatusBadRequest, "open/": http.StatusForbidden, "page.txt/new.txt": http.StatusBadRequest} {
		if code, body := f.put(t, path, strings.NewReader("x")); code != want && path != "open/" || code < 400 {
			t.Errorf("%s: got %d, %q, want %d", path, code, body, want)
		}
	}
	if code, _ := f.put(t, "open/other.txt", strings.NewReader("x"), "X-Cartwheel-CSRF: guess"); code != http.StatusForbidden {
		t.Errorf("without the session's mark: got %d", code)
	}
	_, list := f.get(t, "/files/open/", signedIn, "Accept: application/json")
	if strings.Contains(list, "broken") || strings.Contains(list, "other") || strings.Contains(list, ".upload") {
		t.Errorf("what failed left something behind: %s", list)
	}
	wait(t, "the log names who uploaded", func() bool {
		return strings.Contains(read(t, f.log), `"account":"account/otto"`) && !strings.Contains(read(t, f.log), "forged")
	})
}

// changesModes works on a file that takesFiles left.
func (f *front) changesModes(t *testing.T) {
	change := func(path, body string, headers ...string) (int, string) {
		return f.send(t, http.MethodPatch, path, strings.NewReader(body), headers...)
	}
	if code, body := change("open/new.txt", `{"mode": "0640"}`); code != http.StatusNoContent {
		t.Errorf("the owner's: got %d, %q", code, body)
	}
	for _, refused := range []struct {
		path, body string
		want       int
		says       string
	}{
		{"page.txt", `{"mode": "0666"}`, http.StatusForbidden, "only the owner"},
		{"open", `{"mode": "0700"}`, http.StatusForbidden, "only the owner"},
		{"open/missing", `{"mode": "0640"}`, http.StatusNotFound, "not there"},
		{"open/new.txt", `{"mode": "0980"}`, http.StatusBadRequest, "octal"},
		{"open/new.txt", `{"mode": "00600"}`, http.StatusBadRequest, "octal"},
		{"open/new.txt", `{"mode": "4755"}`, http.StatusBadRequest, "set-id"},
		{"open/new.txt", `{"mode": "0600", "uid": 0}`, http.StatusBadRequest, "JSON"},
		{"open/new.txt", `0600`, http.StatusBadRequest, "JSON"},
	} {
		if code, body := change(refused.path, refused.body); code != refused.want || !strings.Contains(body, refused.says) {
			t.Errorf("%s, %s: got %d, %q, want %d", refused.path, refused.body, code, body, refused.want)
		}
	}
	if code, _ := change("open/new.txt", `{"mode": "0600"}`, "X-Cartwheel-CSRF: guess"); code != http.StatusForbidden {
		t.Errorf("without the session's mark: got %d", code)
	}
	if code, _ := change("open/new.txt", `{"mode": "0600"}`, "Cookie: a-viewer's"); code != http.StatusForbidden {
		t.Errorf("whom the node refuses: got %d", code)
	}
	if _, body := f.get(t, "/properties/open/new.txt", "Cookie: "+cookie); !strings.Contains(body, `"mode":"0640"`) {
		t.Errorf("after it all: got %s", body)
	}
}

// errorReader is a body that breaks off.
type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func (f *front) logsNoSecret(t *testing.T) {
	f.get(t, "/api/v1/session?token=the-token", "Cookie: "+cookie, "Authorization: Bearer the-token")
	wait(t, "the requests are in the log", func() bool {
		return strings.Contains(read(t, f.log), `"/api/v1/session"`) && strings.Contains(read(t, f.log), `"/files/page.txt"`)
	})
	for _, secret := range []string{"the-secret", "the-token"} {
		if strings.Contains(read(t, f.log), secret) {
			t.Errorf("the log has %s", secret)
		}
	}
}

// followers counts the goroutines that follow the cluster's nodes.
func followers() int {
	buf := make([]byte, 8<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "upstreams.(*Source).follow(")
}

func (f *front) reloads(t *testing.T) {
	before, config := followers(), read(t, f.config)
	for i := range 3 {
		mark := fmt.Sprintf("reload-%d", i)
		f.write(t, strings.Replace(config, "X-Content-Type-Options nosniff", "X-Content-Type-Options nosniff\n\t\tX-Mark "+mark, 1))
		f.again <- syscall.SIGHUP
		wait(t, "the new configuration is in force", func() bool {
			// The old server closes connections on which it has not answered yet.
			resp, _, err := f.try(t, "/")
			return err == nil && resp.Header.Get("X-Mark") == mark
		})
	}
	wait(t, "as many goroutines follow the nodes as before", func() bool { return followers() == before })
	f.write(t, "{\n\tnonsense\n}\n")
	f.again <- syscall.SIGHUP
	wait(t, "the log tells of the refused configuration", func() bool { return strings.Contains(read(t, f.log), "the old one stays") })
	if resp, _ := f.get(t, "/"); resp.Header.Get("X-Mark") != "reload-2" {
		t.Errorf("after a bad configuration: got %d, %v", resp.StatusCode, resp.Header)
	}
}

func (f *front) leavesADeadNode(t *testing.T) {
	resp, _ := f.get(t, "/api/v1/session", "Cookie: "+cookie)
	first := resp.Header.Get("X-Node")
	f.nodes[first].CloseClientConnections()
	f.nodes[first].Close()
	for range 20 { // the first ones may come before the gateway knows
		resp, body := f.get(t, "/api/v1/session", "Cookie: "+cookie)
		if now := resp.Header.Get("X-Node"); resp.StatusCode != http.StatusOK || now == first || now == "" {
			t.Fatalf("got %d from %q, %q", resp.StatusCode, now, body)
		}
	}
}

// TestGateway_SignsItsOwnCertificate trusts the authority that the gateway made, and
// calls it by the name that it was given.
func TestGateway_SignsItsOwnCertificate(t *testing.T) {
	f := start(t, "--tls", "internal", "--name", "console.test")
	address, root := strings.TrimPrefix(f.url, "http://"), filepath.Join(f.data, "pki", "authorities", "local", "root.crt")
	var resp *http.Response
	wait(t, "a certificate for console.test is there", func() bool {
		pem, err := os.ReadFile(root)
		if err != nil {
			return false
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, address)
			}}}
		_, port, _ := net.SplitHostPort(address)
		if resp, err = client.Get("https://console.test:" + port + "/"); err == nil {
			resp.Body.Close()
		}
		return err == nil
	})
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("got %d, %v", resp.StatusCode, resp.Header)
	}
}

func TestRun_ExitsByWhatIsWrong(t *testing.T) {
	given := []string{"--contact", "c", "--console", "d"}
	for name, x := range map[string]struct {
		args []string
		want int
		says string
	}{
		"no contact":          {[]string{"run"}, fault.ExitUsage, "--contact"},
		"no port":             {append([]string{"run"}, given...), fault.ExitUsage, "--port"},
		"clear text":          {append([]string{"caddyfile", "--port", "1", "--listen", ":80"}, given...), fault.ExitUsage, "in the clear"},
		"no name":             {append([]string{"caddyfile", "--port", "1", "--listen", ":443", "--tls", "internal"}, given...), fault.ExitUsage, "--name"},
		"a quote":             {append([]string{"caddyfile", "--port", "1", "--files", `/a"b`}, given...), fault.ExitUsage, "quote"},
		"config and more":     {append([]string{"run", "--config", "f"}, given...), fault.ExitUsage, "no other option"},
		"no such Caddyfile":   {[]string{"run", "--config", filepath.Join(t.TempDir(), "none")}, fault.ExitNotFound, "none"},
		"an unknown option":   {[]string{"run", "--colour"}, fault.ExitUsage, "--help"},
		"no such contact":     {append([]string{"run", "--port", "1", "--listen", "127.0.0.1:0"}, given...), fault.ExitFailure, "contact file"},
		"the version, simply": {[]string{"version"}, fault.ExitOK, ""},
	} {
		var said bytes.Buffer
		if got := gateway.Run(t.Context(), x.args, gateway.Stdio{Out: io.Discard, Err: &said}); got != x.want || !strings.Contains(said.String(), x.says) {
			t.Errorf("%s: exit %d, want %d with %q: %s", name, got, x.want, x.says, &said)
		}
	}
}

func TestCaddyfile_AsksForTLSElsewhere(t *testing.T) {
	var out bytes.Buffer
	args := []string{"caddyfile", "--contact", "c", "--console", "d", "--port", "7080", "--listen", ":8443", "--tls", "internal", "--name", "console.example"}
	if code := gateway.Run(t.Context(), args, gateway.Stdio{Out: &out, Err: io.Discard}); code != 0 {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{"https://console.example:8443 {", "tls internal", "Strict-Transport-Security", "port 7080"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the Caddyfile lacks %q", want)
		}
	}
}

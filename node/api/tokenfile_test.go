package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/api"
)

func bearing(t *testing.T, words string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", words)
	return r
}

func TestTokenFile_AdmitsWhoCanReadIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.token")
	if _, err := api.OpenTokenFile(path); err != nil {
		t.Fatal(err)
	}
	again, err := api.OpenTokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSpace(string(data))
	if p, err := again.Authenticate(bearing(t, "Bearer "+token)); err != nil || p.Role != api.Administrator {
		t.Errorf("got %+v, %v", p, err)
	}
	for _, words := range []string{"", "Bearer", "Bearer ", "Bearer " + token[1:], "Basic " + token, token} {
		if _, err := again.Authenticate(bearing(t, words)); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%q: got %v, want unauthorized", words, err)
		}
	}
}

func TestTokenFile_RefusesWhatIsNotPrivateOrWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "api.token")
	if err := os.WriteFile(path, []byte(strings.Repeat("a", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := api.OpenTokenFile(path); !fault.Is(err, fault.Permission) {
		t.Errorf("readable by all: got %v, want permission denied", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.OpenTokenFile(path); !fault.Is(err, fault.Corrupt) {
		t.Errorf("empty: got %v, want corrupt", err)
	}
}

package join

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/wire"
)

func madeToken(t *testing.T) Token {
	t.Helper()
	key, err := wire.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := key.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return Token{GeoConfig: []string{"/ip4/192.0.2.1/tcp/7300/p2p/x"}, Cluster: "c", Site: "oslo", Name: "join.1", Revision: 7, ExpiresNS: 1000, Secret: secret}
}

func TestToken_SurvivesItsText(t *testing.T) {
	want := madeToken(t)
	got, err := Parse(" " + want.String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() || got.Site != "oslo" || got.Revision != 7 || len(got.GeoConfig) != 1 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got.Expired(time.Unix(0, 1000)) || !got.Expired(time.Unix(0, 1001)) {
		t.Error("the token ends at another time than it says")
	}
}

func TestParse_RefusesWhatIsNoToken(t *testing.T) {
	whole := madeToken(t)
	without := func(change func(*Token)) string {
		x := whole
		change(&x)
		return x.String()
	}
	for what, text := range map[string]string{
		"nothing":       "",
		"other text":    "boston",
		"half of one":   whole.String()[:60],
		"no JSON":       prefix + base64.RawURLEncoding.EncodeToString([]byte("{")),
		"a long one":    whole.String() + strings.Repeat("A", maxText),
		"no key":        without(func(x *Token) { x.Secret = nil }),
		"no geo-config": without(func(x *Token) { x.GeoConfig = nil }),
		"no site":       without(func(x *Token) { x.Site = "" }),
		"no row":        without(func(x *Token) { x.Name = "" }),
	} {
		if _, err := Parse(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v, want Invalid", what, err)
		}
	}
}

func TestNodeFile_RefusesWhatCannotStart(t *testing.T) {
	dir := t.TempDir()
	good := NodeFile{Data: dir, Site: "oslo", Address: "192.0.2.7", Port: 7400, GeoConfig: []string{"/ip4/192.0.2.1/tcp/7300/p2p/x"}}
	path := filepath.Join(dir, "etc", "node.yaml")
	if err := good.Check(path); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*NodeFile){
		"port 0":      func(f *NodeFile) { f.Port = 0 },
		"port 65536":  func(f *NodeFile) { f.Port = 65536 },
		"no address":  func(f *NodeFile) { f.Address = "" },
		"a name":      func(f *NodeFile) { f.Address = "tokyo.example" },
		"every one":   func(f *NodeFile) { f.Address = "0.0.0.0" },
		"a multiaddr": func(f *NodeFile) { f.Address = "/ip4/192.0.2.7" },
	} {
		f := good
		change(&f)
		if err := f.Check(path); !fault.Is(err, fault.Usage) {
			t.Errorf("%s: %v, want Usage", what, err)
		}
	}
	if err := good.Write(path); err != nil {
		t.Fatal(err)
	}
	if err := good.Check(path); !fault.Is(err, fault.Exists) {
		t.Errorf("a file that is there: %v, want Exists", err)
	}
	if err := good.Write(path); !fault.Is(err, fault.Exists) {
		t.Errorf("written over: %v, want Exists", err)
	}
	text, err := os.ReadFile(path)
	if want := `listen: ["/ip4/0.0.0.0/tcp/7400"]`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v: %s lacks %s", err, text, want)
	}
	six := good
	six.Address = "2001:db8::7"
	if six.Advertise() != "/ip6/2001:db8::7/tcp/7400" || ListenOn(six.Address, 1) != "/ip6/::/tcp/1" {
		t.Errorf("of IPv6: %s, %s", six.Advertise(), ListenOn(six.Address, 1))
	}
}

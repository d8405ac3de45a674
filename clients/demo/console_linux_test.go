package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cartwheel.dev/clients/bootstrap"
	"cartwheel.dev/clients/contact"
	"cartwheel.dev/geo-config/fault"
)

// withConsole starts a demo of one site whose gateway is this program. Its folder "dying"
// makes it end at once.
func withConsole(t *testing.T, dir, console string) *running {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startWith(t, Options{Dir: dir, Sites: []string{"tokyo"}, Console: Console{Gateway: self, Dir: console}})
}

func TestRun_ServesTheConsole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r := withConsole(t, dir, "/the/console")
	s := r.ready()
	if s.Console == nil || !there(s.Console.PID) || !strings.HasPrefix(s.Console.URL, "http://127.0.0.1:") {
		t.Fatalf("got console %+v, want a process and an address", s.Console)
	}
	if want := s.Console.URL + "/sign-in#link="; strings.Count(r.text(), want) != 1 {
		t.Errorf("it does not print %s... once:\n%s", want, r.text())
	}
	admin, err := bootstrap.LoadAdmin(filepath.Join(dir, bootstrap.AdminName))
	if err != nil || admin.Console != s.Console.URL {
		t.Errorf("got administrator's file %+v, %v, want the console in it", admin, err)
	}
	own, err := contact.Load(filepath.Join(dir, ".state", ConsoleName, "contact.json"))
	everyones, err2 := contact.Load(s.Contact)
	if err := errors.Join(err, err2); err != nil || own.UserKey == everyones.UserKey {
		t.Errorf("the gateway has the key %s, as the demo's user, %v; want one of its own", own.UserKey, err)
	}
	if err := r.end(); err != nil {
		t.Error(err)
	}
	if there(s.Console.PID) {
		t.Error("the gateway is still there")
	}
	journal, err := os.ReadFile(r.journal)
	words := fmt.Sprintf("--console /the/console --listen %s ", strings.TrimPrefix(s.Console.URL, "http://"))
	node := fmt.Sprintf("--node %s=%s", s.Sites[0].Node, strings.TrimPrefix(s.Sites[0].API, "http://"))
	for _, want := range []string{words, node, "rows: 1 sites, 1 nodes, 2 users, <nil>"} {
		if err != nil || !strings.Contains(string(journal), want) {
			t.Errorf("the processes do not say %q: %v, %s", want, err, journal)
		}
	}
}

func TestAsk_FailsAndHealsTheConsole(t *testing.T) {
	r := withConsole(t, filepath.Join(t.TempDir(), "demo"), "/the/console")
	before := r.ready().Console
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := Ask(ctx, r.dir, "fail", ConsoleName); err != nil || there(before.PID) {
		t.Fatalf("the gateway runs: %v, %v; want it killed", there(before.PID), err)
	}
	if err := Ask(ctx, r.dir, "fail", ConsoleName); !fault.Is(err, fault.NotFound) {
		t.Errorf("a second fail answers %v, want not found", err)
	}
	if err := Ask(ctx, r.dir, "heal", ConsoleName); err != nil {
		t.Fatal(err)
	}
	var after *ConsoleState
	r.await("the new process in demo.json", func() bool {
		s, err := Load(r.dir)
		after = s.Console
		return err == nil && after.PID != before.PID
	})
	if !there(after.PID) || after.URL != before.URL {
		t.Errorf("got %+v after %+v, want a new process at the old address", after, before)
	}
}

func TestRun_DyingGatewayQuotesItsLog(t *testing.T) {
	r := withConsole(t, filepath.Join(t.TempDir(), "demo"), "dying")
	err := <-r.done
	r.done <- err
	if err == nil || !strings.Contains(err.Error(), "the reason is written here") {
		t.Errorf("got %v, want the gateway's log", err)
	}
}

func TestRun_SaysThatTheConsoleIsMissing(t *testing.T) {
	r := startWith(t, Options{Dir: filepath.Join(t.TempDir(), "demo"), Sites: []string{"one"}, Console: Console{Missing: "build it first"}})
	if s := r.ready(); s.Console != nil || !strings.Contains(r.text(), "The console does not run: build it first") {
		t.Errorf("got console %+v, and said:\n%s", s.Console, r.text())
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, do := range []string{"fail", "heal"} {
		if err := Ask(ctx, r.dir, do, ConsoleName); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: got %v, want not found", do, err)
		}
	}
}

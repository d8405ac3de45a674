package content

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestBudget_SmallFilesHaveTheReserveOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(80)
		try := func(n int64, few, want bool) {
			t.Helper()
			if got := b.try(chargeOf(n, few)); got != want {
				t.Errorf("%d bytes, few: %v: let in: %v, want %v; %+v are charged", n, few, got, want, b.used)
			}
		}
		wait := func(n int64, few bool) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- b.admit(t.Context(), context.Background(), chargeOf(n, few), func() {})
			}()
			synctest.Wait()
			return done
		}
		in := func(what string, done <-chan error, want bool) {
			t.Helper()
			if synctest.Wait(); (len(done) > 0) != want {
				t.Errorf("%s: let in: %v, want %v; %+v are charged", what, !want, want, b.used)
			}
		}
		try(20, true, true) // nobody waits: as many as there is room for
		b.charge(chargeOf(20, true).minus())
		try(40, false, true)
		try(31, false, false) // 10 stay free for few bytes
		try(30, false, true)
		many := wait(30, false)
		try(6, true, true)
		try(6, true, false)
		few := wait(6, true)
		in("many bytes", many, false)
		in("few bytes beyond the reserve", few, false)
		b.charge(chargeOf(30, false).minus())
		in("many bytes, when as many were given back", many, true)
		in("few bytes, when nobody else waits", few, false) // 76 are charged, and 6 more would be 82
		b.charge(chargeOf(6, true).minus())
		in("few bytes, when as many were given back", few, true)
		b.charge(chargeOf(70, false).minus())
		b.charge(chargeOf(6, true).minus())
		if b.crowded() || b.held() != 0 || b.used.few != 0 {
			t.Errorf("%+v stay charged, somebody waits: %v", b.used, b.crowded())
		}
	})
}

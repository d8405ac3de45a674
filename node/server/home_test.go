package server

import (
	"testing"
	"time"
)

func TestASliceIsBroughtHomeWhereItsHomeWasOut(t *testing.T) {
	const now = time.Hour
	back := wayHome{known: true, reached: true}
	for name, tt := range map[string]struct {
		way          wayHome
		next         time.Duration
		was, refuses bool
		after        time.Duration
		stray, asked bool
	}{
		"its home is out":                        {way: wayHome{known: true, out: true}, after: now, stray: true},
		"its home is still out, after a failure": {way: wayHome{known: true, out: true}, next: now + 5, was: true, after: now + 5, stray: true},
		"its home is back":                       {way: back, next: now, was: true, after: now + homePause, stray: true, asked: true},
		"its home is back and not ready yet":     {way: back, next: now, was: true, refuses: true, after: now, stray: true, asked: true},
		"its home is back and not reached":       {way: wayHome{known: true}, next: now, was: true, after: now, stray: true},
		"passing it home failed a moment ago":    {way: back, next: now + 1, was: true, after: now + 1, stray: true},
		"an operator handed it over":             {way: back},
		"this is its home, or it has none":       {next: now, was: true},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			after, stray := tt.way.step(tt.next, tt.was, now, func() bool { asked = true; return !tt.refuses })
			if after != tt.after || stray != tt.stray || asked != tt.asked {
				t.Errorf("got %v, stray %v, passed home %v; want %v, %v, %v", after, stray, asked, tt.after, tt.stray, tt.asked)
			}
		})
	}
}

// Package timerslack tells the kernel that this process's timers need not be exact.
// While anything runs, Go's runtime has a thread that sleeps 20 us at a time, so
// that with the kernel's usual slack of 50 us each process of many small waits
// wakes up some ten thousand times a second for nothing. It is no clock, and it
// changes nothing but how late a timer may be. Allow may be called from any
// goroutine.
package timerslack

import "time"

// Allow lets the timers of all the process's threads, those to come included,
// be late by up to d. It needs Linux and the capability to change another
// thread (root has it); without them it returns an error and leaves the timers
// of some threads as they were, which costs speed alone.
func Allow(d time.Duration) error { return allow(d) }

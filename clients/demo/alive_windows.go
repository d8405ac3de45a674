package demo

import "os"

// signalZero reports that a process is there: finding it was the test.
func signalZero(*os.Process) error { return nil }

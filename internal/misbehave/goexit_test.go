package misbehave_test

import "runtime"

// exitGoroutine does what t.FailNow does to the goroutine that calls it.
func exitGoroutine() { runtime.Goexit() }

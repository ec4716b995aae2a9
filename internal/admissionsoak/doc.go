// Package admissionsoak holds tests of admission that need more than one
// process: the test program executes itself as operators, as agents that check,
// as a reader that never lets go, and as a writer that is killed.
//
// Bounded versions run in go test and take seconds. The long ones are
//
//	go test -timeout 60m -run . ./internal/admissionsoak -soak
//
// or make soak. Linux only: times of different processes are compared by
// CLOCK_MONOTONIC.
package admissionsoak

// Package clientprints holds tests of what the clients and helpers of langchaingo
// print by themselves: on standard output, on standard error and through the
// standard loggers. Each print that holds content is provoked in a process of
// its own, and the test fails when the print disappears, so that the list in
// SECURITY.md says what is true of the version in go.mod. What the library keeps
// from being printed is tested beside it.
package clientprints

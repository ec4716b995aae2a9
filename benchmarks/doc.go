// Package benchmarks answers what a platform team asks before it says yes: what
// does a guarded call cost, how does the cost grow, and compared with what?
//
// It is a module of its own, so that peers stay out of the library's go.mod.
// Everything that is measured is a row (internal/row), listed by
// internal/catalog: the same rows are reached by
//
//	go test -run '^$' -bench . -benchtime 10x
//
// and by the command that interleaves, repeats and reports them. Ratios within
// one run carry over to other machines; absolute times do not.
package benchmarks

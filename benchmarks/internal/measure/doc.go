// Package measure runs benchmark rows side by side and says how sure it is.
//
// Rows that are compared belong to one group and are measured in rounds: in each
// round every row of the group runs once, in an order that turns from round to
// round, so that a machine that slows down for a while slows all of them. A
// ratio is taken within each round and then the median over the rounds; a time
// alone is the median of its own samples. Spread is the distance between the
// quartiles as a share of the median: half of the samples lie within it.
//
// Before the rounds each row is prepared, and tried with growing numbers of
// operations until one sample takes about Options.Sample. Allocations are counted
// over a whole sample, by the runtime, and so include those of goroutines that
// the row started.
//
// A row whose work fails is a [RowError] and ends the run: figures of work that
// was not done are worse than none. A context that ends stops after the sample
// that is under way; what was prepared is released in every case.
package measure

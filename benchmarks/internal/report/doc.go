// Package report turns what package measure found into the report: report.json
// for programs, report.md and charts for people, and the cost section of the
// project's README.
//
// Ratios come first, because they carry over to other machines; absolute times
// are this machine's and marked so. How noisy the machine was stands at the top:
// it is the spread of the control rows, whose work is not ours. A target that is
// missed is shown as missed.
//
// [Build] makes a [Report] of groups, targets and series. [Read] is strict: a
// report of another schema, with unknown fields or with figures that are no
// numbers is refused. [Section] renders the README's part, and [Replace] puts it
// between the markers.
package report

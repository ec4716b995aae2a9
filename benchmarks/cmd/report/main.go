// The command report measures what gating costs and writes it down.
//
//	go run ./cmd/report                     all sets: report.md, report.json and charts, in this folder
//	go run ./cmd/report -quick -out DIR     a look, in less than a minute, written to another folder
//	go run ./cmd/report -quick -json        one JSON object per row; nothing is written without -out
//	go run ./cmd/report -set micro,peers    some sets
//	go run ./cmd/report -row NAME,…         some rows, with what they are compared with
//	go run ./cmd/report -list               the names of all sets and rows
//	go run ./cmd/report -out DIR            write to this folder
//	go run ./cmd/report -readme FILE        put report.json of -out into the cost section of a README
//	go run ./cmd/report -check FILE         fail if that section is stale
//
// It is run in the folder of the benchmarks module. The exit code is 1 if a row
// failed or a section is stale, and 2 for flags that make no sense. A target that
// is missed is reported, and no failure: figures of a busy machine prove little.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/interlock-go/interlock/benchmarks/internal/catalog"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, source{
		rows: catalog.Rows, targets: catalog.Targets, series: catalog.Series,
	})
	cancel()
	os.Exit(code)
}

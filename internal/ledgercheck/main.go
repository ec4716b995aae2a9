// Command ledgercheck verifies a ledger and its anchor without the code that
// wrote them: it reads the raw rows, and recomputes every signature, digest and
// state from what the specification of receipts says. Two programs that share no
// code are unlikely to share a mistake.
//
//	go run ./internal/ledgercheck LEDGER ANCHOR KEY-FILE
//
// It prints one JSON object: ok, generation, receipt_digest, or
// first_bad_generation (0: no receipt is to blame), and exits 1 if anything does
// not hold. It opens both files read-only, and looks neither at owners and modes
// nor at locks: run it on a copy.
package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
)

const arguments = 3

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

// outcome is what is printed.
type outcome struct {
	OK         bool   `json:"ok"`
	Generation int64  `json:"generation"`
	Digest     string `json:"receipt_digest,omitempty"`
	FirstBad   int64  `json:"first_bad_generation"`
}

func run(args []string, stdout io.Writer) int {
	var o outcome
	if len(args) == arguments {
		if key, err := os.ReadFile(args[2]); err == nil { //nolint:gosec // whoever runs it names it
			o = check(context.Background(), args[0], args[1], key)
		}
	}
	if err := json.NewEncoder(stdout).Encode(o); err != nil || !o.OK {
		return 1
	}

	return 0
}

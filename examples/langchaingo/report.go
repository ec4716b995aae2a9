package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// result is how an act ended. Its JSON is the form of -json.
type result struct {
	Act        string                    `json:"act"`
	Outcome    string                    `json:"outcome"`
	OK         bool                      `json:"ok"`
	Decisions  map[string]map[string]int `json:"decisions"` // component → reason → count
	Effects    int                       `json:"effects"`
	DurationMS int64                     `json:"duration_ms"`
}

func (r result) printJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("result: %w", err)
	}

	return nil
}

func printTable(w io.Writer, results []result, paint painter) {
	fmt.Fprintf(w, "%-14s %-56s %8s %10s  %s\n", "act", "outcome", "effects", "time", "as it should")
	for _, r := range results {
		word := "yes"
		if !r.OK {
			word = "NO"
		}
		fmt.Fprintf(w, "%-14s %-56s %8d %10s  %s\n",
			r.Act, r.Outcome, r.Effects, since(time.Duration(r.DurationMS)*time.Millisecond), paint.ok(r.OK, word))
	}
}

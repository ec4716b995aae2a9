package canary_test

import (
	"bytes"
	"fmt"
	"log" //nolint:depguard // what others log with it is captured
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx/otelxtest"
	"github.com/interlock-go/interlock/slogx"
)

// outlet is a way out: what must be in it, where it is read when a world has
// lived, and what comes out there when things are done the usual way.
type outlet struct {
	name, marker string
	read         func(w *world) []byte
	twin         func(t *testing.T, secret string) []byte
}

// outlets is the table of the ways out.
func outlets() []outlet {
	return []outlet{
		{"traces as OTLP", "invoke_agent", func(w *world) []byte { return exported(w.sink, "race") }, twinTraces},
		{"metrics as OTLP", "interlock.decisions", func(w *world) []byte { return exported(w.sink, "etrics") }, twinMetrics},
		{"handoff file", "interlock.handoff.v1", func(w *world) []byte { return w.file("handoffs") }, twinHandoff},
		{"parked handoffs and their reviews", escalation.ReviewSchema, func(w *world) []byte { return w.file("parked") }, twinReview},
		{"ledger", "emergency_stop", func(w *world) []byte { return w.file("ledger") }, twinLedger},
		{"anchor", "SQLite format 3", func(w *world) []byte { return w.file("anchor") }, twinLedger},
		{"saved run", "interlock.run.v1", func(w *world) []byte { return w.states }, twinState},
		{"saved run, budget", `"tool_calls"`, func(w *world) []byte { return w.states }, twinState},
		{"saved run, telemetry", `"telemetry"`, func(w *world) []byte { return w.states }, twinState},
		{"errors printed", "circuit_open", func(w *world) []byte { return w.each(otelxtest.Printed) }, twinError},
		{"errors in slog", "circuit_open", func(w *world) []byte { return w.each(otelxtest.Logged) }, twinErrorLog},
		{"decisions printed", "circuit_open", func(w *world) []byte { return w.decided(otelxtest.Printed) }, twinDecision},
		{"decisions in slog", "circuit_open", func(w *world) []byte { return w.decided(otelxtest.Logged) }, twinDecisionLog},
		{"handoffs, keys, states printed", "Gauge", func(w *world) []byte { return w.printed() }, twinDecision},
		{"command line, standard output", "receipt_digest", func(w *world) []byte { return w.stdout }, twinCommandOut},
		{"command line, standard error", "reason_code", func(w *world) []byte { return w.stderr }, twinCommandErr},
		{"handoffs command, standard output", "decided_at", func(w *world) []byte { return w.queueOut }, twinCommandOut},
		{"handoffs command, standard error", "handoff_decided", func(w *world) []byte { return w.queueErr }, twinCommandErr},
		{"slogx, text", slogx.Message, func(w *world) []byte { return w.text.text.Bytes() }, twinText},
		{"slogx, JSON", slogx.Message, func(w *world) []byte { return w.json.text.Bytes() }, twinJSON},
		{"process, standard output", captured, nil, twinProcessOut},
		{"process, standard error and log", captured, nil, twinProcessErr},
		{"next provider request", `"messages"`, func(w *world) []byte { return w.requests }, twinRequest},
	}
}

// exported is what came over the wire on paths that have part in their name:
// path, header and body, as they came.
func exported(s *otlpsink.Sink, part string) []byte {
	var b bytes.Buffer
	for _, m := range s.Messages() {
		if strings.Contains(m.Path, part) {
			fmt.Fprintf(&b, "%s %v\n%s\n", m.Path, m.Header, m.Body)
		}
	}

	return b.Bytes()
}

// file is a file and what a database leaves beside it.
func (w *world) file(name string) []byte {
	w.t.Helper()
	entries, err := os.ReadDir(w.dir)
	w.must(err)
	var all []byte
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(w.path(name))) {
			all = append(all, read(w.t, filepath.Join(w.dir, e.Name()))...)
		}
	}

	return all
}

func (w *world) each(show func(any) []byte) []byte {
	var b []byte
	for _, err := range w.errs {
		b = append(b, show(err)...)
	}

	return b
}

// decided shows each decision once, of those that differ in numbers alone.
func (w *world) decided(show func(any) []byte) []byte {
	var b []byte
	seen := map[middleware.Decision]bool{}
	for _, d := range w.decisions {
		same := d
		same.Seq, same.Run, same.Turn, same.Count, same.Fill, same.Drift, same.Duration = 0, ident.RunID{}, 0, 0, 0, 0, 0
		if !seen[same] {
			seen[same] = true
			b = append(b, show(d)...)
		}
	}

	return b
}

func (w *world) printed() []byte {
	var b []byte
	for _, v := range w.values {
		b = append(b, otelxtest.Printed(v)...)
	}

	return b
}

// captured is what capture says itself to show that it hears.
const captured = "[captured]"

// capture returns what is written to standard output, and to standard error and
// the standard loggers, while f runs.
func capture(t *testing.T, f func()) (stdout, stderr []byte) {
	t.Helper()
	dir := t.TempDir()
	open := func(name string) *os.File {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}

		return file
	}
	out, errs := open("stdout"), open("stderr")
	oldOut, oldErr, oldLog := os.Stdout, os.Stderr, log.Writer()
	os.Stdout, os.Stderr = out, errs
	log.SetOutput(errs)
	defer func() {
		os.Stdout, os.Stderr = oldOut, oldErr
		log.SetOutput(oldLog)
		_, _ = out.Close(), errs.Close()
	}()
	fmt.Println(captured)
	log.Print(captured)
	slog.Error(captured)
	f()

	return read(t, out.Name()), read(t, errs.Name())
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return data
}

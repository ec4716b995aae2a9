package canary_test

import (
	"bytes"
	"os"
	"strings"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/cli"
)

// commands lets an operator look at what the world has left.
func (w *world) commands() {
	w.t.Helper()
	at := []string{"--state", w.path("ledger"), "--anchor", w.path("anchor"), "--key-file", w.path("key")}
	commands := [][]string{{"status"}, {"log", "--json"}, {"verify", "--state", w.path("nowhere")}}
	if w.plan.operator {
		commands = append(commands, [][]string{
			{"status", "--json"}, {"status", "--state", w.path("nowhere")}, {"verify"}, {"log"}, {"stop"}, {"resume"}, {"init"}, {"keygen"}, {"stop", "--reason", "nonsense"},
			{"verify", "--key-file", w.path("nowhere")}, {"log", "--anchor", w.dir}, {"status", "--state", w.path("key")},
			{"stop", "--state", w.dir}, {"status", "--key-file", w.path("ledger")}, {"help"},
		}...)
	}
	for _, args := range append(commands, w.plan.args...) {
		stdout, stderr := w.command(append(append([]string{}, at...), args...))
		w.stdout = append(w.stdout, stdout...)
		w.stderr = append(w.stderr, stderr...)
	}
}

func (w *world) command(args []string) (stdout, stderr []byte) {
	var out, errs bytes.Buffer
	inside.enter(strings.Join(args, " ") + w.plan.stdin)
	cli.Run(args, strings.NewReader(w.plan.stdin), &out, &errs)

	return out.Bytes(), errs.Bytes()
}

// reviews lets a reviewer look at what waits, and decide all of it.
func (w *world) reviews() {
	w.t.Helper()
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: w.path("parked")})
	w.must(err)
	w.value(q)
	var ids []string
	entry := func(e escalation.QueueEntry) error {
		ids = append(ids, e.Digest.String())
		w.value(e)
		w.value(&e)

		return nil
	}
	_, err = q.List(w.t.Context(), entry)
	w.must(err)
	if len(ids) == 0 {
		w.t.Fatal("nothing is parked")
	}
	commands := [][]string{{"list"}, {"list", "--file", w.path("nowhere")}, {"show", ids[0]}, {"show", "nonsense"}}
	for _, id := range ids {
		commands = append(commands, []string{"decide", id, "--decision", "abort_run", "--reviewer", w.plan.reviewer},
			[]string{"decide", id, "--decision", "dismissed", "--reviewer", "night-desk"})
	}
	commands = append(commands, []string{"list", "--json"}, []string{"show", ids[0], "--json"})
	if w.plan.operator {
		commands = append(commands, [][]string{
			{}, {"help"}, {"show"}, {"list", "--only", "decided"}, {"list", "--file", w.dir}, {"show", ids[0], "--file", w.path("ledger")},
			{"decide", ids[0], "--file", w.path("nowhere"), "--decision", "dismissed", "--reviewer", "night-desk"},
		}...)
	}
	for _, args := range append(commands, w.plan.handoffArgs...) {
		stdout, stderr := w.command(append([]string{"handoffs", "--file", w.path("parked")}, args...))
		w.queueOut = append(w.queueOut, stdout...)
		w.queueErr = append(w.queueErr, stderr...)
	}
	if w.plan.foreign != "" {
		w.foreign(ids[0])
	}
	report, err := q.List(w.t.Context(), entry)
	w.must(err)
	w.value(report)
	_, err = q.Get(w.t.Context(), ident.Digest{})
	w.err(err)
}

// foreign reads a file into which somebody else has written, too.
func (w *world) foreign(id string) {
	w.t.Helper()
	path := w.path("foreign")
	text := inside.enter(w.plan.foreign) + "\n"
	w.must(os.WriteFile(path, append([]byte(text), append(w.file("parked"), w.plan.foreign...)...), 0o600))
	q, err := escalation.NewQueue(escalation.QueueConfig{Path: path})
	w.must(err)
	report, err := q.List(w.t.Context(), func(e escalation.QueueEntry) error { w.value(e); return nil })
	w.must(err)
	if report.Damaged == 0 {
		w.t.Error("the foreign lines are no damage")
	}
	w.value(report)
	for _, args := range [][]string{{"list"}, {"show", id}, {"decide", id, "--decision", "dismissed", "--reviewer", "night-desk"}, {"list", "--json"}} {
		stdout, stderr := w.command(append([]string{"handoffs", "--file", path}, args...))
		w.queueOut = append(w.queueOut, stdout...)
		w.queueErr = append(w.queueErr, stderr...)
	}
	for line := range strings.SplitSeq(w.plan.foreign, "\n") {
		_, err := escalation.ParseHandoff([]byte(line), time.Now())
		w.err(err)
		_, err = escalation.ParseReview([]byte(line))
		w.err(err)
	}
}

package canary_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log" //nolint:depguard // the twin does what is usual
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	_ "modernc.org/sqlite" // the twin's ledger, through database/sql

	"database/sql"

	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// The twin guards an agent of langchaingo the usual way: it records errors on
// spans, counts by their text, logs what was asked and answered, hands off with
// the conversation, writes why something was stopped, and tells the model what
// went wrong. The same scan has to catch it in every outlet of the table.

// twinAgent runs an agent whose tool is asked for secret and fails with it. tell
// says what the twin does about a call before its outcome is given back.
func twinAgent(t *testing.T, secret string, tell func(ctx context.Context, name, input string, err error) (string, error)) (*misbehave.Server, error) {
	t.Helper()
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(
		asks(functions, "pay", "1001"), answers(functions, "done"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	model, err := client(misbehave.VendorOpenAI, srv.URL()+"/v1", "a-key")
	if err != nil {
		t.Fatal(err)
	}
	pay := tool{"pay", "Pays.", func(ctx context.Context, input string) (string, error) {
		return tell(ctx, "pay", input, errors.New("no account "+secret))
	}}
	_, err = chains.Run(t.Context(), agents.NewExecutor(newAgent(functions, model, []tools.Tool{pay})), "a question")

	return srv, err
}

func twinTelemetry(t *testing.T, secret, part string) []byte {
	t.Helper()
	sink := otlpsink.Start(t)
	providers := sink.Export(t, otlpsink.GRPC)
	failures, err := providers.Metrics.Meter("twin").Int64Counter("failures")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = twinAgent(t, secret, func(ctx context.Context, name, input string, err error) (string, error) {
		_, span := providers.Traces.Tracer("twin").Start(ctx, "tool "+name)
		defer span.End()
		span.SetAttributes(attribute.String("arguments", input))
		span.RecordError(err)
		span.SetStatus(codes.Error, err.Error())
		failures.Add(ctx, 1, metric.WithAttributes(attribute.String("error", err.Error())))

		return "", err
	})
	providers.Shutdown(t)

	return exported(sink, part)
}

func twinTraces(t *testing.T, secret string) []byte {
	t.Helper()

	return twinTelemetry(t, secret, "race")
}

func twinMetrics(t *testing.T, secret string) []byte {
	t.Helper()

	return twinTelemetry(t, secret, "etrics")
}

// twinHandoff hands a failed run off with what was said in it.
func twinHandoff(t *testing.T, secret string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "handoffs")
	_, _ = twinAgent(t, secret, func(_ context.Context, name, input string, err error) (string, error) {
		text, e := json.Marshal(map[string]string{"tool": name, "input": input, "last_error": err.Error()})
		if e == nil {
			e = os.WriteFile(path, text, 0o600)
		}
		if e != nil {
			t.Error(e)
		}

		return "", err
	})

	return read(t, path)
}

// twinReview keeps why a reviewer decided, in words.
func twinReview(t *testing.T, secret string) []byte {
	t.Helper()
	handoff := twinHandoff(t, secret)
	review, err := json.Marshal(map[string]string{"decision": "abort_run", "reviewer": "Jo", "comment": "not again: " + string(handoff)})
	if err != nil {
		t.Fatal(err)
	}

	return append(append(handoff, '\n'), review...)
}

// twinLines logs a call as it is usual, with a handler of its own.
func twinLines(t *testing.T, secret string, handler slog.Handler) {
	t.Helper()
	logger := slog.New(handler)
	_, _ = twinAgent(t, secret, func(ctx context.Context, name, input string, err error) (string, error) {
		logger.WarnContext(ctx, "tool failed", "tool", name, "input", input, "err", err)

		return "", err
	})
}

func twinText(t *testing.T, secret string) []byte {
	t.Helper()
	var b bytes.Buffer
	twinLines(t, secret, slog.NewTextHandler(&b, nil))

	return b.Bytes()
}

func twinJSON(t *testing.T, secret string) []byte {
	t.Helper()
	var b bytes.Buffer
	twinLines(t, secret, slog.NewJSONHandler(&b, nil))

	return b.Bytes()
}

// twinLedger writes down why it was stopped.
func twinLedger(t *testing.T, secret string) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	_, _ = twinAgent(t, secret, func(ctx context.Context, _, _ string, err error) (string, error) {
		db, e := sql.Open("sqlite", path)
		if e == nil {
			_, e = db.ExecContext(ctx, `CREATE TABLE receipts (reason TEXT); INSERT INTO receipts VALUES (?)`, "stopped: "+err.Error())
			e = errors.Join(e, db.Close())
		}
		if e != nil {
			t.Error(e)
		}

		return "", err
	})

	return read(t, path)
}

// twinState keeps the conversation with the run.
func twinState(t *testing.T, secret string) []byte {
	t.Helper()
	var state []byte
	_, _ = twinAgent(t, secret, func(_ context.Context, name, _ string, err error) (string, error) {
		said := llms.TextParts(llms.ChatMessageTypeTool, name+" failed: "+err.Error())
		var e error
		if state, e = json.Marshal([]llms.MessageContent{said}); e != nil {
			t.Error(e)
		}

		return "", err
	})

	return state
}

// wrapped is how an error usually comes out of an agent.
func wrapped(t *testing.T, secret string) error {
	t.Helper()
	_, err := twinAgent(t, secret, func(_ context.Context, name, _ string, err error) (string, error) {
		return "", fmt.Errorf("tool %s: %w", name, err)
	})
	if err == nil {
		t.Error("the twin's agent did not fail")
	}

	return err
}

func twinError(t *testing.T, secret string) []byte {
	t.Helper()
	return otelxtest.Printed(wrapped(t, secret))
}
func twinErrorLog(t *testing.T, secret string) []byte {
	t.Helper()

	return otelxtest.Logged(wrapped(t, secret))
}

// verdict is a decision with its reason in words.
type verdict struct {
	Tool, Reason string
	Cause        error
}

func twinDecision(t *testing.T, secret string) []byte {
	t.Helper()
	err := wrapped(t, secret)

	return otelxtest.Printed(verdict{"pay", "failed: " + err.Error(), err})
}

func twinDecisionLog(t *testing.T, secret string) []byte {
	t.Helper()
	err := wrapped(t, secret)

	return otelxtest.Logged(verdict{"pay", "failed: " + err.Error(), err})
}

// twinCommand stops, and says what it was asked for and what it could not open.
func twinCommand(args []string, stdout, stderr *bytes.Buffer) {
	fmt.Fprintln(stdout, "stopped:", args)
	if _, err := os.ReadFile(filepath.Join("/nowhere", args[0])); err != nil {
		fmt.Fprintln(stderr, "twin:", err)
	}
}

func twinCommandOut(t *testing.T, secret string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	twinCommand([]string{secret}, &stdout, &stderr)

	return stdout.Bytes()
}

func twinCommandErr(t *testing.T, secret string) []byte {
	t.Helper()
	var stdout, stderr bytes.Buffer
	twinCommand([]string{secret}, &stdout, &stderr)

	return stderr.Bytes()
}

// twinProcess says what it does where programs do: it prints the input of a
// call, and logs its error with both standard loggers.
func twinProcess(t *testing.T, secret string) (stdout, stderr []byte) {
	t.Helper()

	return capture(t, func() {
		_, _ = twinAgent(t, secret, func(_ context.Context, name, _ string, err error) (string, error) {
			fmt.Println("calling", name, err)
			log.Printf("%s: %v", name, err)
			slog.Error("tool failed", "err", err)

			return "", err
		})
	})
}

func twinProcessOut(t *testing.T, secret string) []byte {
	t.Helper()
	stdout, _ := twinProcess(t, secret)

	return stdout
}

func twinProcessErr(t *testing.T, secret string) []byte {
	t.Helper()
	_, stderr := twinProcess(t, secret)

	return stderr
}

// twinRequest lets the model know why the tool failed.
func twinRequest(t *testing.T, secret string) []byte {
	t.Helper()
	srv, _ := twinAgent(t, secret, func(_ context.Context, _, _ string, err error) (string, error) {
		return "The tool failed: " + err.Error(), nil
	})
	requests := srv.Requests()
	if len(requests) < 2 {
		t.Fatal("there is no next request")
	}

	return slices.Concat(requests[0].Raw(), requests[1].Raw())
}

package escalation_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// cut makes slices of the words of an input.
func cut(_ context.Context, c *middleware.ToolCall) ([]string, error) {
	return strings.Fields(c.Input()), nil
}

func slicing(slice func(context.Context, *middleware.ToolCall) ([]string, error)) func(*escalation.ActionConfig) {
	return func(c *escalation.ActionConfig) { c.Slice = slice }
}

// tried makes a half-open breaker slice one action and returns what its tool
// was called with.
func tried(
	t *testing.T, r *rig, effect middleware.Effect, input string, fn func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error),
) (inputs []string, res *middleware.ToolResult, err error) {
	t.Helper()
	r.open(t)
	r.clock.move(time.Minute)
	r.log.clear()
	ctx, _ := r.start(t)
	tool := r.tool(t, "pay", effect, func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		inputs = append(inputs, c.Input())
		if at, ok := middleware.ToolCallFrom(ctx); !ok || at.Input() != c.Input() {
			t.Error("the context is inside of another call than the slice")
		}

		return fn(ctx, c)
	})
	apart(func() { res, err = tool.Do(ctx, "", input) })

	return inputs, res, err
}

func echoed(_ context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
	return &middleware.ToolResult{Output: "paid " + c.Input(), Final: c.Input() != "b"}, nil
}

func failsAt(input string, how middleware.ToolHandler) middleware.ToolHandler {
	return func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
		if c.Input() == input {
			return how(ctx, c)
		}

		return echoed(ctx, c)
	}
}

func TestActionSlices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		effect middleware.Effect
		input  string
		fn     middleware.ToolHandler
		made   string
		output string
		reason middleware.Reason
		state  middleware.CircuitState
	}{
		"all succeed":           {middleware.Effectful, "a b", echoed, "a b", "paid a\npaid b", 0, middleware.CircuitHalfOpen},
		"closes it":             {middleware.Effectful, "a b c", echoed, "a b c", "paid a\npaid b\npaid c", 0, middleware.CircuitClosed},
		"goes on when closed":   {middleware.Effectful, "a b c d e", echoed, "a b c d e", "paid a\npaid b\npaid c\npaid d\npaid e", 0, middleware.CircuitClosed},
		"first fails":           {middleware.Effectful, "a b", failsAt("a", fails), "a", "", middleware.ReasonToolFailed, middleware.CircuitOpen},
		"second fails":          {middleware.Effectful, "a b c", failsAt("b", fails), "a b", "", middleware.ReasonOutcomeUnknown, middleware.CircuitOpen},
		"second of a read":      {middleware.ReadOnly, "a b c", failsAt("b", fails), "a b", "", middleware.ReasonToolFailed, middleware.CircuitOpen},
		"second may repeat":     {middleware.Idempotent, "a b c", failsAt("b", fails), "a b", "", middleware.ReasonToolFailed, middleware.CircuitOpen},
		"second panics":         {middleware.Effectful, "a b c", failsAt("b", panics), "a b", "", middleware.ReasonOutcomeUnknown, middleware.CircuitOpen},
		"second exits":          {middleware.Effectful, "a b c", failsAt("b", exits), "a b", "", 0, middleware.CircuitOpen},
		"a read is sliced, too": {middleware.ReadOnly, "a b", echoed, "a b", "paid a\npaid b", 0, middleware.CircuitHalfOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, slicing(cut))
			made, res, err := tried(t, r, c.effect, c.input, c.fn)
			if got := strings.Join(made, " "); got != c.made {
				t.Errorf("called with %q, want %q", got, c.made)
			}
			if middleware.ReasonOf(err) != c.reason || (c.output != "" && (res == nil || res.Output != c.output || res.Final)) {
				t.Errorf("got %+v, %v; want %q, %v", res, err, c.output, c.reason)
			}
			r.in(t, c.state)
			if err != nil {
				contentFree(t, err)
			}
			if c.state == middleware.CircuitOpen && len(r.sink.Handoffs()) != 2 {
				t.Errorf("%d handoffs", len(r.sink.Handoffs()))
			}
		})
	}
}

// The original is never tried, whatever Slice says.
func TestActionSliceRefused(t *testing.T) {
	t.Parallel()
	many := make([]string, escalation.MaxSlices+1)
	for i := range many {
		many[i] = strconv.Itoa(i)
	}
	returns := func(inputs []string, err error) func(context.Context, *middleware.ToolCall) ([]string, error) {
		return func(context.Context, *middleware.ToolCall) ([]string, error) { return inputs, err }
	}
	for name, slice := range map[string]func(context.Context, *middleware.ToolCall) ([]string, error){
		"nil":                      returns(nil, nil),
		"empty":                    returns([]string{}, nil),
		"too many":                 returns(many, nil),
		"the original":             returns([]string{`{"ids":[1,2]}`}, nil),
		"the original, other form": returns([]string{`{ "ids" : [1.0,2] }`}, nil),
		"the original among":       returns([]string{`{"ids":[1]}`, `{"ids":[1,2]}`}, nil),
		"equal ones":               returns([]string{`{"ids":[1]}`, `{"ids":[1.0]}`}, nil),
		"an error":                 returns([]string{`{"ids":[1]}`}, errTool),
		"a panic":                  func(context.Context, *middleware.ToolCall) ([]string, error) { panic(secret) },
		"an exit": func(context.Context, *middleware.ToolCall) ([]string, error) {
			runtime.Goexit()

			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, slicing(slice))
			made, res, err := tried(t, r, middleware.Effectful, `{"ids":[1,2]}`, echoed)
			if len(made) != 0 || res != nil || (err == nil) != (name == "an exit") || (err != nil && !errors.Is(err, escalation.ErrParked)) {
				t.Errorf("called with %d, got %+v, %v", len(made), res, err)
			}
			contentFree(t, err)
			r.in(t, middleware.CircuitHalfOpen)
			if r.Faults() != 1 {
				t.Errorf("%d faults", r.Faults())
			}
			if got := r.log.count(middleware.ReasonParked); got != b2i(name != "an exit") {
				t.Errorf("decisions %v", r.log.reasons())
			}
		})
	}
}

// Each slice is rated, and the place of the trial is given back between calls.
func TestActionSliceRisk(t *testing.T) {
	t.Parallel()
	var rated []string
	r := newRig(t, func(c *escalation.ActionConfig) {
		c.Slice = cut
		c.Risk = func(_ context.Context, call *middleware.ToolCall) (float64, error) {
			rated = append(rated, call.Input())
			if call.Input() == "b" {
				return 0.95, nil
			}

			return 0.1, nil
		}
	})
	made, _, err := tried(t, r, middleware.Effectful, "a b c", echoed)
	if !slices.Equal(made, []string{"a"}) || !errors.Is(err, middleware.ReasonOutcomeUnknown) || !errors.Is(err, escalation.ErrGuardrail) {
		t.Errorf("called with %v: %v", made, err)
	}
	if got := strings.Join(rated, " "); got != "input a b" { // the first is the action that opened it
		t.Errorf("rated %q", got)
	}
	r.in(t, middleware.CircuitOpen)
	r.clock.move(time.Minute)
	for range 2 {
		ctx, _ := r.start(t)
		if _, err := r.tool(t, "pay", middleware.Effectful, echoed).Do(ctx, "", "x y"); err != nil {
			t.Error(err)
		}
	}
	r.in(t, middleware.CircuitClosed)
}

// A run that is halted, ended or given up between two slices makes no further one.
func TestActionSlicesOfAStoppedRun(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*middleware.Run){
		"halted": func(r *middleware.Run) { r.Halt(middleware.ComponentEscalation, middleware.ReasonCircuitOpen) },
		"ended":  func(r *middleware.Run) { r.End() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, slicing(cut))
			made, _, err := tried(t, r, middleware.Idempotent, "a b c", func(ctx context.Context, c *middleware.ToolCall) (*middleware.ToolResult, error) {
				stop(middleware.RunFrom(ctx))

				return echoed(ctx, c)
			})
			if _, ok := errors.AsType[*middleware.Denial](err); !ok || len(made) != 1 {
				t.Errorf("called with %v: %v", made, err)
			}
			r.in(t, middleware.CircuitHalfOpen)
		})
	}
}

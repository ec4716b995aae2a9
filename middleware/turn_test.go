package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// turnCase is an agent with one guarded model and tools that note how they
// were called.
type turnCase struct {
	t     *testing.T
	reply *llms.ContentResponse
	model llms.Model
	calls []string
}

func newTurns(t *testing.T) *turnCase {
	t.Helper()
	c := &turnCase{t: t}
	c.model = wrapModel(t, fakeModel(func(context.Context, []llms.MessageContent, []llms.CallOption) (*llms.ContentResponse, error) {
		return c.reply, nil
	}), middleware.ModelConfig{})

	return c
}

func (c *turnCase) ask(ctx context.Context, reply *llms.ContentResponse) {
	c.t.Helper()
	c.reply = reply
	if _, err := c.model.GenerateContent(ctx, prompt("q")); err != nil {
		c.t.Fatal(err)
	}
}

func (c *turnCase) call(ctx context.Context, name, id string, inside func(context.Context)) {
	c.t.Helper()
	_, err := newTool(c.t, middleware.ToolConfig{Name: name}, func(ctx context.Context, call *toolCall) (*toolResult, error) {
		c.calls = append(c.calls, fmt.Sprint(call.ID(), "@", call.Turn()))
		if inside != nil {
			inside(ctx)
		}

		return &toolResult{}, nil
	}).Do(ctx, id, "")
	if err != nil {
		c.t.Error(err)
	}
}

func (c *turnCase) want(calls ...string) {
	c.t.Helper()
	if !slices.Equal(c.calls, calls) {
		c.t.Errorf("calls are %v, want %v", c.calls, calls)
	}
}

func TestTurnsClaimIDs(t *testing.T) {
	t.Parallel()
	c := newTurns(t)
	ctx, r := start(t, middleware.RunConfig{})
	if r.Turn() != 0 {
		t.Errorf("turn %d before the first", r.Turn())
	}
	c.call(ctx, "a", "", nil) // nobody asked for it
	// Two calls of one tool, in another case, with an unknown one between.
	c.ask(ctx, saying("", calling("p1", "Lookup"), calling("p2", "unknown"), calling("p3", "LOOKUP"), calling("", "noid"), calling("p5", "b")))
	c.call(ctx, "lookup", "", nil)
	c.call(ctx, "b", "", nil)
	c.call(ctx, "lookup", "", nil)
	c.call(ctx, "noid", "", nil)
	c.call(ctx, "lookup", "", nil) // a third one was not asked for
	c.want("interlock_1@0", "p1@1", "p5@1", "p3@1", "interlock_2@1", "interlock_3@1")
	c.calls = nil
	// The next turn forgets what was not claimed.
	c.ask(ctx, saying("", calling("q1", "b")))
	c.call(ctx, "unknown", "", nil)
	c.call(ctx, "b", "", nil)
	c.want("interlock_4@2", "q1@2")
	if r.Turn() != 2 {
		t.Errorf("turn %d", r.Turn())
	}
}

// An executor that knows the identifiers uses them up, whatever the order.
func TestTurnsGivenIDs(t *testing.T) {
	t.Parallel()
	c := newTurns(t)
	ctx, _ := start(t, middleware.RunConfig{})
	c.ask(ctx, saying("", calling("p1", "a"), calling("p2", "a"), calling("p3", "a")))
	c.call(ctx, "a", "p2", nil)
	c.call(ctx, "a", "", nil)
	c.call(ctx, "a", "", nil)
	c.call(ctx, "a", "", nil)
	c.call(ctx, "a", "own", nil)
	c.want("p2@1", "p1@1", "p3@1", "interlock_1@1", "own@1")
}

// The older form has a function without an identifier.
func TestTurnsOldFunctionCall(t *testing.T) {
	t.Parallel()
	c := newTurns(t)
	ctx, _ := start(t, middleware.RunConfig{})
	c.ask(ctx, &llms.ContentResponse{Choices: []*llms.ContentChoice{{FuncCall: &llms.FunctionCall{Name: "a"}}}})
	c.call(ctx, "a", "", nil)
	c.want("interlock_1@1")
}

func TestTurnsInsideOfTools(t *testing.T) {
	t.Parallel()
	c := newTurns(t)
	ctx, r := start(t, middleware.RunConfig{})
	c.ask(ctx, saying("", calling("p1", "a"), calling("p2", "a")))
	c.call(ctx, "a", "", func(ctx context.Context) {
		c.ask(ctx, saying("a summary", calling("inner", "a"))) // the tool asks a model of its own
	})
	c.call(ctx, "a", "", func(ctx context.Context) { // the tool is an agent with a run of its own
		inner, nested := startIn(ctx, t, middleware.RunConfig{})
		c.ask(inner, saying("", calling("n1", "a")))
		c.call(inner, "a", "", nil)
		if nested.Turn() != 1 || nested.Parent() != r {
			t.Errorf("nested: turn %d", nested.Turn())
		}
	})
	c.want("p1@1", "p2@1", "n1@1")
	if r.Turn() != 1 {
		t.Errorf("a model call inside of a tool opened turn %d", r.Turn())
	}
}

// A guarded model behind another one is part of the same turn.
func TestTurnsOutermostModel(t *testing.T) {
	t.Parallel()
	inner := newTurns(t)
	inner.reply = saying("", calling("p1", "a"))
	outer, err := middleware.NewModel(middleware.ModelHandlerOf(inner.model, ident.MustLabel("inner")), middleware.ModelConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, r := start(t, middleware.RunConfig{})
	if _, err := outer.GenerateContent(ctx, prompt("q")); err != nil {
		t.Fatal(err)
	}
	if r.Turn() != 1 {
		t.Errorf("turn %d", r.Turn())
	}
}

// An answer that comes after the end of its run is delivered to nobody's turn;
// a call made after it is refused.
func TestTurnsAfterEnd(t *testing.T) {
	t.Parallel()
	ctx, r := start(t, middleware.RunConfig{})
	model := wrapModel(t, fakeModel(func(context.Context, []llms.MessageContent, []llms.CallOption) (*llms.ContentResponse, error) {
		r.End()

		return saying("late", calling("p1", "a")), nil
	}), middleware.ModelConfig{})
	if _, err := model.GenerateContent(ctx, prompt("q")); err != nil {
		t.Errorf("the answer was complete: %v", err)
	}
	if r.Turn() != 0 {
		t.Errorf("an ended run is in turn %d", r.Turn())
	}
	_, err := model.GenerateContent(ctx, prompt("q"))
	wantReason(t, err, middleware.ReasonRunEnded)
}

func TestGeneratedIDsAreUnique(t *testing.T) {
	t.Parallel()
	ctx, _ := start(t, middleware.RunConfig{})
	seen := make(chan string, 64)
	tool := newTool(t, middleware.ToolConfig{}, func(_ context.Context, call *toolCall) (*toolResult, error) {
		seen <- call.ID()

		return &toolResult{}, nil
	})
	done := make(chan error)
	for range cap(seen) {
		go func() { _, err := tool.Do(ctx, "", ""); done <- err }()
	}
	for range cap(seen) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	close(seen)
	ids := map[string]bool{}
	for id := range seen {
		if ids[id] || !strings.HasPrefix(id, "interlock_") {
			t.Errorf("identifier %s", id)
		}
		ids[id] = true
	}
}

func TestTurnsOfNoRun(t *testing.T) {
	t.Parallel()
	var r *middleware.Run
	if r.Turn() != 0 {
		t.Error("a nil run has turns")
	}
	if !errors.Is(r.Check(), middleware.ReasonNoRun) {
		t.Error("a nil run passes")
	}
}

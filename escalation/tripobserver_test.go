package escalation_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// An observer that ends the goroutine at the news of a trip does not take the
// handoff along.
func TestHandoffInSpiteOfObserver(t *testing.T) {
	t.Parallel()
	sink, err := escalation.NewMemorySink(2)
	if err != nil {
		t.Fatal(err)
	}
	e, err := escalation.New(escalation.Config{
		Policy: escalation.Policy{Uncertainty: 1, PermissionDenial: 1, ToolFailure: 1, Total: 1}, Sink: sink,
		Observer: middleware.ObserverFunc(func(context.Context, middleware.Decision) { runtime.Goexit() }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, run, err := middleware.StartRun(t.Context(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/desk"), Slots: []middleware.Slot{e.Slot()},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer run.End()
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "look", Effect: middleware.ReadOnly, Chain: e.Tool()},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, errors.New("no")
		})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = tool.Do(ctx, "", "x")
	}()
	<-done
	if _, _, halted := run.Halted(); !halted || len(sink.Handoffs()) != 1 {
		t.Errorf("halted %v, %d handoffs", halted, len(sink.Handoffs()))
	}
}

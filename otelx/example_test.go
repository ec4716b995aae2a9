package otelx_test

import (
	"context"
	"errors"
	"fmt"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
)

// A tool fails with a text that must not get out, and a model makes a name up.
func ExampleNew() {
	exporter := tracetest.NewInMemoryExporter()
	tel, err := otelx.New(otelx.Config{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)),
		Tools:          []ident.Label{ident.MustLabel("issue_refund")},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer tel.Close()

	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	for _, name := range []string{"issue_refund", "jane_doe"} {
		tool, err := middleware.NewTool(middleware.ToolConfig{
			Name: name, Effect: middleware.ReadOnly, Chain: middleware.TraceTool(tel), Observer: tel,
		}, func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			return nil, errors.New("refused for jane@example.org")
		})
		if err != nil {
			fmt.Println(err)

			return
		}
		_, _ = tool.Do(ctx, "", "jane@example.org")
	}
	for _, s := range exporter.GetSpans() {
		fmt.Printf("%s: %s %q", s.Name, s.Status.Code, s.Status.Description)
		for _, a := range s.Attributes {
			fmt.Printf(" %s=%s", a.Key, a.Value.String())
		}
		fmt.Println()
	}
	// Output:
	// execute_tool issue_refund: Error "" gen_ai.operation.name=execute_tool gen_ai.tool.name=issue_refund gen_ai.tool.type=function error.type=tool_failed
	// execute_tool _OTHER: Error "" gen_ai.operation.name=execute_tool gen_ai.tool.name=_OTHER gen_ai.tool.type=function error.type=tool_failed
}

// A name or a bound that is wrong is refused before anything runs.
func ExampleNew_refused() {
	_, err := otelx.New(otelx.Config{Tools: make([]ident.Label, 65)})
	fmt.Println(err)
	_, err = otelx.New(otelx.Config{Tools: make([]ident.Label, 1)})
	fmt.Println(err)
	// Output:
	// otelx: Config.Tools: 65 entries, at most 64
	// otelx: Config.Tools[0]: invalid_label
}

// A run is saved in one process and restored in another: its span there is no
// child of the earlier one, and has a link to it.
func ExampleTelemetry_Slot() {
	exporter := tracetest.NewInMemoryExporter()
	process := func() (*otelx.Telemetry, error) {
		return otelx.New(otelx.Config{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))})
	}
	work := func(ctx context.Context, tel *otelx.Telemetry, run *middleware.Run) ([]byte, error) {
		defer run.End()
		_, end := middleware.StartOp(ctx, tel, middleware.OpRun, ident.Label{}, 0)
		defer end(middleware.Outcome{})

		return run.Save()
	}
	first, err := process()
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Slots: []middleware.Slot{first.Slot()},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	saved, err := work(ctx, first, run)
	if err != nil {
		fmt.Println(err)

		return
	}

	second, err := process()
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err = middleware.RestoreRun(context.Background(), middleware.RunConfig{Slots: []middleware.Slot{second.Slot()}}, saved)
	if err != nil {
		fmt.Println(err)

		return
	}
	if _, err = work(ctx, second, run); err != nil {
		fmt.Println(err)

		return
	}
	before, after := exporter.GetSpans()[0], exporter.GetSpans()[1]
	link := after.Links[0]
	fmt.Println(after.Name, "has a parent:", after.Parent.IsValid())
	fmt.Println(link.Attributes[0].Key, link.Attributes[0].Value.AsString(), link.SpanContext.SpanID() == before.SpanContext.SpanID())
	// Output:
	// invoke_agent has a parent: false
	// interlock.link.kind resumed true
}

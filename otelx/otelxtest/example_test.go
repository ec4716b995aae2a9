package otelxtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/otelx"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

// The same tool twice: behind the library, and the usual way. The secret is in
// the argument, and the tool puts it into the text of its error.
func Example() {
	t := &testing.T{} // in a test, the test's own
	canary := otelxtest.NewCanary(7)
	pay := func(account string) error { return errors.New("no account " + account) }
	refund := func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		return nil, pay(call.Input())
	}

	tel := otelxtest.NewTelemetry(t)
	spans, err := otelx.New(otelx.Config{TracerProvider: tel.TracerProvider(), Tools: []ident.Label{ident.MustLabel("refund")}})
	if err != nil {
		fmt.Println(err)

		return
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "refund", Chain: middleware.TraceTool(spans)}, refund)
	if err != nil {
		fmt.Println(err)

		return
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"),
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer run.End()
	_, err = tool.Do(ctx, "", canary.Phrase())
	fmt.Println("guarded:", len(canary.Scan("spans", tel.Traces())), len(canary.Scan("error", otelxtest.Printed(err))))

	twin := otelxtest.NewTelemetry(t)
	_, span := twin.TracerProvider().Tracer("twin").Start(context.Background(), "refund")
	err = pay(canary.Phrase())
	span.RecordError(err)
	span.End()
	for _, f := range canary.Scan("twin's spans", twin.Traces()) {
		fmt.Println(f.Outlet, "hold the secret as", f.Encoding)
	}
	fmt.Println(len(canary.Scan("twin's error", otelxtest.Printed(err))) > 0)
	// Output:
	// guarded: 0 0
	// twin's spans hold the secret as json
	// true
}

// Every way in × every way out, each with a marker that must be there.
func ExampleMatrix() {
	t := &testing.T{} // in a test, the test's own
	canary := otelxtest.NewCanary(7)
	m := otelxtest.NewMatrix(t, canary, []string{"argument", "result"}, []otelxtest.Outlet{
		{Name: "log", Marker: "tool_failed"}, {Name: "next request", Marker: "messages"},
	})
	for _, slot := range []string{"argument", "result"} {
		m.Scan(slot, "log", []byte("reason=tool_failed"))
	}
	m.Scan("argument", "next request", []byte(`{"messages":[]}`))
	m.ByDesign("result", "next request", "the model asked for it", []byte(`{"messages":["`+canary.Word()+`"]}`))
	fmt.Println(m.Finish())
	// Output: 2 slots × 2 outlets × 15 encodings: 3 cells scanned, 1 by design, 0 open; 51 bytes
}

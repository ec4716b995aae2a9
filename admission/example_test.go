package admission_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// exampleStore makes a store in a temporary folder.
func exampleStore() (*admission.SQLiteStore, func()) {
	dir := must(os.MkdirTemp("", "interlock"))
	if err := admission.GenerateKeyFile(filepath.Join(dir, "key")); err != nil {
		panic(err)
	}
	cfg := admission.StoreConfig{
		Ledger: filepath.Join(dir, "ledger.db"),
		Anchor: filepath.Join(dir, "anchor.db"), // really: on other storage
		Key:    must(admission.LoadKeyFile(filepath.Join(dir, "key"))),
	}
	must(admission.Initialize(context.Background(), cfg))
	store := must(admission.OpenStore(context.Background(), cfg))

	return store, func() { _ = store.Close(); _ = os.RemoveAll(dir) }
}

func Example() {
	store, done := exampleStore()
	defer done()
	ctx := context.Background()
	control := must(admission.New(admission.Config{Store: store}))
	workflow := ident.MustWorkflowID("workflow:org.example/refunds")

	_, err := control.Preview(ctx, workflow)
	fmt.Println("at first:", err)

	must(control.Enable(ctx, admission.Transition{Scope: admission.Workflow(workflow)}))
	preview := must(control.Preview(ctx, workflow))
	pay := func(context.Context) (string, error) { return "paid", nil }
	fmt.Println(admission.Dispatch(ctx, control, preview, pay))

	must(control.Stop(ctx, admission.Transition{Scope: admission.Global()}))
	_, err = admission.Dispatch(ctx, control, preview, pay)
	fmt.Println("stopped:", errors.Is(err, admission.ErrStopped))

	must(control.Enable(ctx, admission.Transition{Scope: admission.Global()}))
	_, err = admission.Dispatch(ctx, control, preview, pay)
	fmt.Println("stale:", errors.Is(err, admission.ErrStaleGeneration))
	// Output:
	// at first: interlock: admission: admission_disabled
	// paid <nil>
	// stopped: true
	// stale: true
}

// The gate is the last thing before the effect: an approval outside of it may
// take its time, a stop that comes meanwhile is seen.
func ExampleController_Gate() {
	store, done := exampleStore()
	defer done()
	ctx := context.Background()
	control := must(admission.New(admission.Config{
		Store: store,
		Observer: middleware.ObserverFunc(func(_ context.Context, d middleware.Decision) {
			fmt.Println(d.Verdict, d.Reason.String(), "at generation", d.Generation)
		}),
	}))
	must(control.Enable(ctx, admission.Transition{Scope: admission.Global()}))
	approval := middleware.At(middleware.StageApproval, func(next middleware.ToolHandler) middleware.ToolHandler {
		return func(ctx context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
			if call.Input() == "large" {
				must(control.Stop(ctx, admission.Transition{Scope: admission.Global()})) // while a human thinks about it
			}
			fmt.Println("approved")

			return next(ctx, call)
		}
	})
	refund := must(middleware.NewTool(
		middleware.ToolConfig{Name: "refund", Chain: middleware.Chain(approval, control.Gate().Tool())},
		func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) {
			fmt.Println("money is moved")

			return &middleware.ToolResult{Output: "done"}, nil
		}))

	ctx, run, err := middleware.StartRun(ctx, middleware.RunConfig{
		Workflow: ident.MustWorkflowID("workflow:org.example/refunds"), Previewer: control,
	})
	if err != nil {
		panic(err)
	}
	defer run.End()
	for _, input := range []string{"small", "large"} {
		_, err := refund.Do(ctx, "", input)
		fmt.Println(input, err)
	}
	// Output:
	// approved
	// allow admission_enabled at generation 2
	// money is moved
	// small <nil>
	// approved
	// deny admission_stopped at generation 3
	// large interlock: admission: admission_stopped
}

func ExampleNew() {
	control, err := admission.New(admission.Config{}) // no store: disabled, for good
	if err != nil {
		panic(err)
	}
	status := control.Status(context.Background(), admission.Global())
	fmt.Println(status.State, status.Reason, status.Generation)
	// Output: disabled interlock: admission_disabled 0
}

func ExampleOpenChecker() {
	dir := must(os.MkdirTemp("", "interlock"))
	defer os.RemoveAll(dir)
	cfg := admission.StoreConfig{
		Ledger: filepath.Join(dir, "ledger.db"), Anchor: filepath.Join(dir, "anchor.db"),
		Key: must(admission.ParseKey([]byte("thirty-two bytes that are not one"))),
	}
	must(admission.Initialize(context.Background(), cfg))
	checker := must(admission.OpenChecker(context.Background(), cfg))
	defer checker.Close()
	control := must(admission.New(admission.Config{Store: checker}))
	fmt.Println(control.Status(context.Background(), admission.Global()).State)
	_, err := control.Enable(context.Background(), admission.Transition{Scope: admission.Global()})
	fmt.Println(err)
	// Output:
	// disabled
	// interlock: admission: store_failed
}

package interlock_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// desk is a workflow of the examples.
var desk = ident.MustWorkflowID("workflow:org.example/refund-desk@1.0.0")

// aTool is a function as a langchaingo tool.
type aTool struct {
	name string
	call func(ctx context.Context, input string) (string, error)
}

func (t aTool) Name() string        { return t.name }
func (t aTool) Description() string { return "A tool of the examples." }
func (t aTool) Call(ctx context.Context, input string) (string, error) {
	return t.call(ctx, input)
}

// client returns langchaingo's openai client against a provider that answers as
// the script says.
func client(script ...misbehave.Reply) (llms.Model, func(), error) {
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(script...)})
	if err != nil {
		return nil, nil, err
	}
	model, err := clientOf(srv)

	return model, srv.Close, err
}

func clientOf(srv *misbehave.Server) (llms.Model, error) {
	return openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("none"), openai.WithModel("gpt-4o"),
		openai.WithHTTPClient(&http.Client{Transport: &fallback.Transport{}}))
}

func calling(name string) misbehave.Reply {
	return misbehave.Reply{Calls: []misbehave.Call{{Name: name, Arguments: `{"__arg1":"1001"}`}}}
}

// An agent is wrapped in ten lines. Without an admission ledger its effects are
// refused, and the refusal comes out of langchaingo's chain as it went in.
func Example() {
	llm, stop, err := client(calling("lookup_order"), calling("issue_refund"))
	if err != nil {
		fmt.Println(err)

		return
	}
	defer stop()
	lookup := aTool{"lookup_order", func(context.Context, string) (string, error) { return "paid, damaged", nil }}
	refund := aTool{"issue_refund", func(context.Context, string) (string, error) {
		fmt.Println("money left")

		return "refunded", nil
	}}
	primary := interlock.Candidate{
		Label: ident.MustLabel("primary"), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: llm,
	}
	run := func(ctx context.Context, question string) (string, error) {
		// snippet-start: wrap
		guard, err := interlock.New(interlock.Config{Workflows: []interlock.Workflow{{ID: desk}}})
		if err != nil {
			return "", err
		}
		model, err1 := guard.Model(primary)
		tools, err2 := guard.Tools(interlock.ReadOnly(lookup), refund) // refund is effectful: it needs admission
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		agent := agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, tools)) // as without Interlock
		return chains.Run(ctx, guard.Chain(desk, agent), question)                // each Call is one run
		// snippet-end: wrap
	}
	answer, err := run(context.Background(), "Refund order 1001, please.")
	fmt.Printf("%q, %v, disabled: %v\n", answer, err, errors.Is(err, admission.ErrDisabled))
	// Output:
	// "", interlock: admission: admission_disabled, disabled: true
}

// A custom executor needs only the chain: no type of langchaingo is involved.
func ExampleGuard_Do() {
	guard, err := interlock.New(interlock.Config{Workflows: []interlock.Workflow{{ID: desk}}})
	if err != nil {
		fmt.Println(err)

		return
	}
	// snippet-start: custom
	look, err := middleware.NewTool(middleware.ToolConfig{
		Name: "look", Effect: middleware.ReadOnly, Chain: guard.ToolChain(),
	}, func(_ context.Context, call *middleware.ToolCall) (*middleware.ToolResult, error) {
		return &middleware.ToolResult{Output: "seen " + call.Input()}, nil
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	err = guard.Do(context.Background(), desk, func(ctx context.Context) error {
		for range 7 {
			res, err := look.Do(ctx, "", "the same")
			if text, told := look.Observation(ctx, err); told {
				fmt.Println("the model is told:", text[:23])

				continue
			}
			if err != nil {
				return err
			}
			fmt.Println(res.Output)
		}

		return nil
	})
	// snippet-end: custom
	fmt.Println(err)
	// Output:
	// seen the same
	// seen the same
	// seen the same
	// seen the same
	// seen the same
	// the model is told: This call was not made:
	// interlock: watchdog: loop
}

var _ tools.Tool = aTool{}

// With a ledger, effects are admitted once an operator has enabled them, and
// refused from the moment that one has stopped them.
func ExampleGuard_Admission() {
	dir, err := os.MkdirTemp("", "interlock-example-")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer os.RemoveAll(dir)
	ledger, anchor, keyFile := filepath.Join(dir, "ledger.db"), filepath.Join(dir, "anchor.db"), filepath.Join(dir, "key")
	ctx := context.Background()
	if err := provision(ctx, ledger, anchor, keyFile); err != nil {
		fmt.Println(err)

		return
	}
	open := func() error {
		// snippet-start: ledger
		key, err := admission.LoadKeyFile(keyFile)
		if err != nil {
			return err
		}
		store, err := admission.OpenStore(ctx, admission.StoreConfig{Ledger: ledger, Anchor: anchor, Key: key})
		if err != nil {
			return err
		}
		defer store.Close()
		guard, err := interlock.New(interlock.Config{Workflows: []interlock.Workflow{{ID: desk}}, Admission: store})
		// snippet-end: ledger
		if err != nil {
			return err
		}

		return admit(ctx, guard)
	}
	if err := open(); err != nil {
		fmt.Println(err)
	}
	// Output:
	//  interlock: admission: admission_disabled
	// refunded <nil>
	// enabled <nil> <nil>
	//  interlock: admission: admission_stopped
	// stopped <nil> true
}

// admit calls a tool while admission is disabled, enabled and stopped.
func admit(ctx context.Context, guard *interlock.Guard) error {
	refund, err := guard.Tools(aTool{"issue_refund", func(context.Context, string) (string, error) { return "refunded", nil }})
	if err != nil {
		return err
	}
	act := func() error {
		return guard.Do(ctx, desk, func(ctx context.Context) error {
			out, err := refund[0].Call(ctx, "1001")
			fmt.Println(out, err)

			return err
		})
	}
	global := admission.Transition{Scope: admission.Global()}
	_ = act()
	_, err = guard.Admission().Enable(ctx, global)
	fmt.Println("enabled", err, act())
	_, err = guard.Admission().Stop(ctx, global)
	fmt.Println("stopped", err, errors.Is(act(), admission.ErrStopped))

	return nil
}

func provision(ctx context.Context, ledger, anchor, keyFile string) error {
	if err := admission.GenerateKeyFile(keyFile); err != nil {
		return err
	}
	key, err := admission.LoadKeyFile(keyFile)
	if err != nil {
		return err
	}
	_, err = admission.Initialize(ctx, admission.StoreConfig{Ledger: ledger, Anchor: anchor, Key: key})

	return err
}

package peers

import (
	"context"
	"fmt"
	"strings"

	"github.com/cloudwego/eino/callbacks"
	"github.com/cloudwego/eino/components"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/schema"
	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/middleware"
)

// toolSeams are what a framework itself puts around a tool: no policy is meant.
func toolSeams() []row.Row {
	const bare = "peers/tool/bare"
	rows := []row.Row{
		{Name: bare, About: "the tool itself", Prepare: func() (*row.Work, error) {
			t := fixture.NewTool()

			return calling(t.Call), nil
		}},
		{
			Name: "peers/tool/eino-callbacks", RatioTo: bare,
			About:   "the tool between OnStart and OnEnd of Eino's callbacks, one handler",
			Prepare: einoCallbacks,
		},
	}
	for _, n := range []int{0, 1, 10} {
		rows = append(rows,
			row.Row{
				Name: fmt.Sprintf("peers/tool/eino-middleware-%d", n), RatioTo: bare,
				About:   fmt.Sprintf("Eino's tool node with %d middleware that do nothing, one tool call", n),
				Prepare: func() (*row.Work, error) { return einoNode(n) },
			},
			row.Row{
				Name: fmt.Sprintf("peers/tool/interlock-middleware-%d", n), RatioTo: bare,
				About:   fmt.Sprintf("our tool adapter with %d middleware that do nothing, one tool call", n),
				Prepare: func() (*row.Work, error) { return ourTool(n) },
			})
	}

	return append(rows, fixture.ToolRow(row.Row{
		Name: "peers/tool/interlock-guarded", RatioTo: bare, About: "the whole guard around the tool, which is read-only, no-op telemetry",
	}, nil, 0, fixture.Setup{Telemetry: fixture.NoOp}))
}

// calling is calls that have to reach the tool.
func calling(call func(context.Context, string) (string, error)) *row.Work {
	inputs, ctx := fixture.Inputs(), context.Background()

	return &row.Work{Run: func(n int) error {
		for i := range n {
			if err := fixture.Shipped(call(ctx, inputs[i&(fixture.Table-1)])); err != nil {
				return err
			}
		}

		return nil
	}}
}

func einoCallbacks() (*row.Work, error) {
	t, heard := fixture.NewTool(), 0
	h := callbacks.NewHandlerBuilder().
		OnStartFn(func(ctx context.Context, _ *callbacks.RunInfo, _ callbacks.CallbackInput) context.Context {
			heard++

			return ctx
		}).
		OnEndFn(func(ctx context.Context, _ *callbacks.RunInfo, _ callbacks.CallbackOutput) context.Context {
			heard++

			return ctx
		}).Build()
	info := &callbacks.RunInfo{Name: t.Name(), Type: "Order", Component: components.ComponentOfTool}
	w := calling(func(ctx context.Context, input string) (string, error) {
		ctx = callbacks.InitCallbacks(ctx, info, h)
		ctx = callbacks.OnStart(ctx, &tool.CallbackInput{ArgumentsInJSON: input})
		out, err := t.Call(ctx, input)
		callbacks.OnEnd(ctx, &tool.CallbackOutput{Response: out})

		return out, err
	})

	return &row.Work{Run: func(n int) error {
		before := heard
		if err := w.Run(n); err != nil {
			return err
		}
		if heard-before != 2*n {
			return fixture.ErrWork
		}

		return nil
	}}, nil
}

// einoTool is the tool in Eino's form.
type einoTool struct{ *fixture.Tool }

func (t einoTool) Info(context.Context) (*schema.ToolInfo, error) {
	return &schema.ToolInfo{Name: t.Name(), Desc: t.Description()}, nil
}

func (t einoTool) InvokableRun(ctx context.Context, arguments string, _ ...tool.Option) (string, error) {
	return t.Call(ctx, arguments)
}

func einoNode(n int) (*row.Work, error) {
	layers := make([]compose.ToolMiddleware, n)
	for i := range layers {
		layers[i].Invokable = func(next compose.InvokableToolEndpoint) compose.InvokableToolEndpoint {
			return func(ctx context.Context, in *compose.ToolInput) (*compose.ToolOutput, error) { return next(ctx, in) }
		}
	}
	t := einoTool{fixture.NewTool()}
	node, err := compose.NewToolNode(context.Background(), &compose.ToolsNodeConfig{
		Tools: []tool.BaseTool{t}, ExecuteSequentially: true, ToolCallMiddlewares: layers,
	})
	if err != nil {
		return nil, err
	}

	return calling(func(ctx context.Context, input string) (string, error) {
		out, err := node.Invoke(ctx, schema.AssistantMessage("", []schema.ToolCall{{
			ID: "1", Function: schema.FunctionCall{Name: t.Name(), Arguments: input},
		}}))
		if err != nil {
			return "", err
		}
		if len(out) != 1 {
			return "", fixture.ErrWork
		}

		return out[0].Content, nil
	}), nil
}

func ourTool(n int) (*row.Work, error) {
	layers := make([]middleware.ToolMiddleware, n)
	for i := range layers {
		layers[i] = fixture.PassTool
	}
	t, err := middleware.WrapTool(fixture.NewTool(), middleware.ToolConfig{
		Effect: middleware.ReadOnly, Chain: middleware.Chain(layers...),
	})
	if err != nil {
		return nil, err
	}
	ctx, run, err := middleware.StartRun(context.Background(), middleware.RunConfig{Workflow: fixture.TheNames().Workflow})
	if err != nil {
		return nil, err
	}
	w := calling(func(_ context.Context, input string) (string, error) { return t.Call(ctx, input) })
	w.Close = func() { run.End() }

	return w, nil
}

// agentRuns are whole runs of langchaingo's MRKL executor, one tool call each,
// with a model in the process.
func agentRuns() []row.Row {
	const bare = "peers/agent/langchaingo-mrkl"

	return []row.Row{
		{Name: bare, About: "a run of langchaingo's MRKL executor: two model calls, one tool call", Prepare: func() (*row.Work, error) {
			t := fixture.NewTool()
			executor := agents.NewExecutor(agents.NewOneShotAgent(mrkl{}, []tools.Tool{t}))

			return running(executor, t, nil), nil
		}},
		{
			Name: "peers/agent/interlock-mrkl", RatioTo: bare,
			About: "the same with model, tool and chain guarded, no-op telemetry",
			Prepare: func() (*row.Work, error) {
				st, err := fixture.Setup{Telemetry: fixture.NoOp, Primary: mrkl{}}.Open()
				if err != nil {
					return nil, err
				}
				executor := agents.NewExecutor(agents.NewOneShotAgent(st.Model, []tools.Tool{st.Tool}),
					agents.WithCallbacksHandler(st.Guard.Callbacks()))

				return running(st.Guard.Chain(fixture.TheNames().Workflow, executor), st.Counted, st.Close), nil
			},
		},
	}
}

func running(c chains.Chain, t *fixture.Tool, end func()) *row.Work {
	ctx := context.Background()

	return &row.Work{Close: end, Run: func(n int) error {
		before := t.Calls()
		for range n {
			answer, err := chains.Run(ctx, c, "Where is order A-1001?")
			if err != nil {
				return err
			}
			if answer != done {
				return fixture.ErrWork
			}
		}
		if t.Calls()-before != uint64(n) { //nolint:gosec // n is not negative
			return fixture.ErrWork
		}

		return nil
	}}
}

const done = "it is on its way"

// mrkl is a model that speaks as the MRKL agent wants: it asks for the tool, and
// answers once it has seen the result.
type mrkl struct{}

func (mrkl) GenerateContent(_ context.Context, messages []llms.MessageContent, options ...llms.CallOption) (response, error) {
	var o llms.CallOptions
	for _, set := range options {
		set(&o)
	}
	text := "Thought: look it up\nAction: order_status\nAction Input: A-1001"
	if strings.Contains(said(messages), "Observation: order shipped") {
		text = "Thought: I know\nFinal Answer: " + done
	}

	return &llms.ContentResponse{Choices: []*llms.ContentChoice{{Content: text, StopReason: "stop"}}}, nil
}

func said(messages []llms.MessageContent) string {
	if n := len(messages); n > 0 && len(messages[n-1].Parts) > 0 {
		if t, ok := messages[n-1].Parts[0].(llms.TextContent); ok {
			return t.Text
		}
	}

	return ""
}

// Call is for the interface.
func (m mrkl) Call(ctx context.Context, prompt string, options ...llms.CallOption) (string, error) {
	return llms.GenerateFromSinglePrompt(ctx, m, prompt, options...)
}

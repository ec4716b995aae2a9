package micro

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/benchmarks/internal/row"
	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/middleware"
	"github.com/interlock-go/interlock/watchdog"
)

// talk is how many messages a conversation has where its length does not matter.
const talk = 4

const answer = "an answer "

// models are calls of one model: bare, through the adapter, through single
// layers, and through a whole guard.
func models() []row.Row {
	rows := []row.Row{
		{
			Name:  bareModel,
			About: "the model itself, which resolves its options and takes a response from a table",
			Prepare: func() (*row.Work, error) {
				return asking(fixture.NewModel(answer), context.Background(), nil), nil
			},
		},
	}
	for _, n := range depths() {
		rows = append(rows, row.Row{
			Name: fmt.Sprintf("micro/model/adapter-%d", n), RatioTo: bareModel,
			About: fmt.Sprintf("langchaingo's form of a model over a run's checks and %d layers that do nothing", n),
			Prepare: func() (*row.Work, error) {
				layers := make([]middleware.ModelMiddleware, n)
				for i := range layers {
					layers[i] = fixture.PassModel
				}

				return behindModel(middleware.RunConfig{}, layers...)
			},
		})
	}
	rows = append(rows,
		row.Row{
			Name: "micro/model/layer/escalation", RatioTo: wrapped, About: "the adapter and the count of failures, of which there are none",
			Prepare: func() (*row.Work, error) {
				e, err := escalation.New(escalation.Config{})
				if err != nil {
					return nil, err
				}

				return behindModel(middleware.RunConfig{Slots: []middleware.Slot{e.Slot()}}, e.Model())
			},
		},
		row.Row{
			Name: "micro/model/layer/response-watch", RatioTo: wrapped, About: "the adapter and the watch for repeated responses",
			Prepare: func() (*row.Work, error) {
				dog, err := watchdog.New(watchdog.Config{})
				if err != nil {
					return nil, err
				}

				return behindModel(middleware.RunConfig{}, dog.Model())
			},
		},
		row.Row{
			Name: "micro/model/fallback-without-limits", RatioTo: bareModel, About: "the fallback alone, attempts without limits",
			Prepare: func() (*row.Work, error) {
				return fallbackAlone(fallback.Config{
					AttemptTimeout: fallback.NoLimit, FirstToken: fallback.NoLimit, Idle: fallback.NoLimit,
				})
			},
		},
		row.Row{
			Name: "micro/model/fallback", RatioTo: bareModel, About: "the fallback alone, with its default limits",
			Prepare: func() (*row.Work, error) { return fallbackAlone(fallback.Config{}) },
		},
	)
	two := fixture.Setup{Telemetry: fixture.NoOp}
	rows = append(rows,
		fixture.ModelRow(row.Row{Name: guardModel, RatioTo: Getppid, About: "the whole guard around a model, no-op telemetry"}, talk, two),
		fixture.ModelRow(row.Row{
			Name: guardModel + "-parallel", Parallel: true, RatioTo: guardModel, About: "the same in concurrent runs of one guard",
		}, talk, two))
	for _, n := range depths()[1:] {
		rows = append(rows, fixture.ModelRow(row.Row{
			Name: fmt.Sprintf("%s/layers-%d", guardModel, n), RatioTo: guardModel,
			About: fmt.Sprintf("the same with %d layers of the user's that do nothing", n),
		}, talk, fixture.Setup{Telemetry: fixture.NoOp, Layers: n}))
	}
	for _, kind := range fixture.Kinds() {
		if kind != fixture.NoOp {
			rows = append(rows, fixture.ModelRow(row.Row{
				Name: guardModel + "/telemetry-" + kind.String(), RatioTo: guardModel, About: "the same with telemetry " + kind.String(),
			}, talk, fixture.Setup{Telemetry: kind}))
		}
	}

	return rows
}

// asking is calls of m under ctx.
func asking(m llms.Model, ctx context.Context, end func()) *row.Work { //nolint:revive // the context belongs to the run, not to this call
	messages, options := fixture.Messages(talk), fixture.Options()

	return &row.Work{Run: row.Loop(func() error {
		resp, err := m.GenerateContent(ctx, messages, options...)

		return fixture.Answered(resp, err, answer)
	}), Close: end}
}

// behindModel is calls of a model behind layers, in a run of its own.
func behindModel(cfg middleware.RunConfig, layers ...middleware.ModelMiddleware) (*row.Work, error) {
	m, err := middleware.WrapModel(fixture.NewModel(answer), middleware.ModelConfig{
		Label: fixture.TheNames().Primary, Chain: middleware.Chain(layers...),
	})
	if err != nil {
		return nil, err
	}
	cfg.Workflow = fixture.TheNames().Workflow
	ctx, run, err := middleware.StartRun(context.Background(), cfg)
	if err != nil {
		return nil, err
	}

	return asking(m, ctx, func() { run.End() }), nil
}

func fallbackAlone(cfg fallback.Config) (*row.Work, error) {
	cfg.Candidates = fixture.Candidates(fixture.NewModel(answer), fixture.NewModel("another "))
	m, err := fallback.New(cfg)
	if err != nil {
		return nil, err
	}

	return asking(m, context.Background(), nil), nil
}

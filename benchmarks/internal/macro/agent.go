package macro

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tmc/langchaingo/agents"
	"github.com/tmc/langchaingo/chains"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"
	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/benchmarks/internal/fixture"
	"github.com/interlock-go/interlock/fallback"
)

// kind of agent.
type kind string

const (
	mrkl      kind = "mrkl"
	functions kind = "functions"
)

// connections that are kept alive: as many as the largest load needs.
const connections = 1024

// desk is an agent that is ready to run, bare or guarded.
type desk struct {
	tool   *fixture.Tool
	chain  chains.Chain
	closer []func()
}

func (d *desk) close() {
	for _, v := range slices.Backward(d.closer) {
		v()
	}
}

// ask is one run. It sees to it that the tool's result came back.
func (d *desk) ask(ctx context.Context) error {
	answer, err := chains.Run(ctx, d.chain, "Where is order A-1001?")
	if err != nil {
		return err
	}
	if !strings.Contains(answer, "it has been shipped") {
		return fixture.ErrWork
	}

	return nil
}

func (d *desk) transport() *http.Transport {
	t := &http.Transport{MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute}
	d.closer = append(d.closer, t.CloseIdleConnections)

	return t
}

func client(p *provider, rt http.RoundTripper) (llms.Model, error) {
	return openai.New(openai.WithBaseURL(p.URL+"/v1"), openai.WithToken("t"), openai.WithModel("primary-1"),
		openai.WithHTTPClient(&http.Client{Transport: rt}))
}

// bare is an agent without a guard.
func bare(k kind, p *provider) (*desk, error) {
	d := &desk{tool: fixture.NewTool()}
	model, err := client(p, d.transport())
	if err != nil {
		d.close()

		return nil, err
	}
	d.chain = executor(k, model, []tools.Tool{d.tool})

	return d, nil
}

// unwatched turns the limits between tokens off: then a call that does not stream
// is not streamed inwardly either, so that its progress could be seen.
func unwatched(cfg *interlock.Config) {
	cfg.Fallback.FirstToken, cfg.Fallback.Idle = fallback.NoLimit, fallback.NoLimit
}

// guarded is the agent behind a guard. With more than one provider the others
// are its fallback.
func guarded(k kind, ledger *fixture.Ledger, adjust func(*interlock.Config), providers ...*provider) (_ *desk, err error) {
	d := &desk{tool: fixture.NewTool()}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	g, err := d.guard(ledger, adjust)
	if err != nil {
		return nil, err
	}
	n := fixture.TheNames()
	labels := []struct {
		label, model string
	}{{"primary", "primary-1"}, {"backup", n.BackupModel}}
	var candidates []interlock.Candidate
	for i, p := range providers {
		model, err := client(p, &fallback.Transport{Base: d.transport()})
		if err != nil {
			return nil, err
		}
		c := interlock.Candidate{Label: n.Primary, Provider: fallback.ProviderOpenAI, ModelName: labels[i].model, Model: model}
		if i > 0 {
			c.Label = n.Backup
		}
		candidates = append(candidates, c)
	}
	model, err := g.Model(candidates...)
	if err != nil {
		return nil, err
	}
	guardedTools, err := g.Tools(d.tool) // not declared: effectful, and checked each time
	if err != nil {
		return nil, err
	}
	d.chain = g.Chain(n.Workflow, executor(k, model, guardedTools))

	return d, nil
}

func (d *desk) guard(ledger *fixture.Ledger, adjust func(*interlock.Config)) (*interlock.Guard, error) {
	store, err := ledger.Store()
	if err != nil {
		return nil, err
	}
	d.closer = append(d.closer, func() { _ = store.Close() })
	tel, end, err := fixture.NoOp.Open()
	if err != nil {
		return nil, err
	}
	d.closer = append(d.closer, end)
	cfg := fixture.Config()
	cfg.Admission = store
	cfg.Fallback.FirstToken, cfg.Fallback.Idle = time.Minute, time.Minute // a machine that is busy is no provider that is silent
	fixture.Report(&cfg, tel)

	if adjust != nil {
		adjust(&cfg)
	}
	g, err := interlock.New(cfg)
	if err != nil {
		return nil, err
	}
	// The first look at a ledger verifies all of it: a program does that before it takes traffic.
	if _, err := g.Admission().Preview(context.Background(), fixture.TheNames().Workflow); err != nil {
		return nil, err
	}

	return g, nil
}

func executor(k kind, model llms.Model, with []tools.Tool) chains.Chain {
	if k == functions {
		return agents.NewExecutor(agents.NewOpenAIFunctionsAgent(model, with))
	}

	return agents.NewExecutor(agents.NewOneShotAgent(model, with))
}

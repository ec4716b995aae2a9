package middleware_test

import (
	"context"
	"slices"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestObservers(t *testing.T) {
	t.Parallel()
	var heard []string
	named := func(name string) middleware.Observer {
		return middleware.ObserverFunc(func(context.Context, middleware.Decision) { heard = append(heard, name) })
	}
	panics := middleware.ObserverFunc(func(context.Context, middleware.Decision) { panic(secret) })
	for _, tc := range []struct {
		name    string
		members []middleware.Observer
		want    []string
	}{
		{"several, in order", []middleware.Observer{named("a"), named("b"), named("c")}, []string{"a", "b", "c"}},
		{"a panic keeps nobody", []middleware.Observer{named("a"), panics, named("c")}, []string{"a", "c"}},
		{"nil is left out", []middleware.Observer{nil, named("b"), nil, named("d")}, []string{"b", "d"}},
		{"one", []middleware.Observer{nil, named("a")}, []string{"a"}},
		{"one that panics", []middleware.Observer{panics}, nil},
		{"a nil function", []middleware.Observer{middleware.ObserverFunc(nil), named("b")}, []string{"b"}},
	} {
		heard = nil
		middleware.Notify(t.Context(), middleware.Observers(tc.members...), middleware.Decision{})
		if !slices.Equal(heard, tc.want) {
			t.Errorf("%s: %v heard", tc.name, heard)
		}
	}
	for _, members := range [][]middleware.Observer{nil, {}, {nil}, {nil, nil}} {
		if o := middleware.Observers(members...); o != nil {
			t.Errorf("%v gave %v", members, o)
		}
	}
	members := []middleware.Observer{nil, named("kept"), named("kept too")}
	o := middleware.Observers(members...)
	if members[0] != nil || members[1] == nil {
		t.Error("the caller's slice was written to")
	}
	members[1] = panics
	heard = nil
	middleware.Notify(t.Context(), o, middleware.Decision{})
	if !slices.Equal(heard, []string{"kept", "kept too"}) {
		t.Errorf("a write to the caller's slice changed the observers: %v", heard)
	}
	middleware.Notify(t.Context(), nil, middleware.Decision{})
	middleware.ObserverFunc(nil).Observe(t.Context(), middleware.Decision{})
}

// What belongs to no other component is reported by the adapters, with what is
// registered and nothing else.
func TestAdaptersReport(t *testing.T) {
	t.Parallel()
	stopped := middleware.NewDenial(middleware.Refusal{Component: middleware.ComponentAdmission, Reason: middleware.ReasonAdmissionStopped})
	refuse := func(toolHandler) toolHandler { return failing(stopped) }
	for _, tc := range []struct {
		name   string
		chain  middleware.ToolMiddleware
		fn     toolHandler
		halt   bool
		end    bool
		want   middleware.Reason
		is     middleware.Component
		silent bool
	}{
		{name: "success", silent: true},
		{name: "error", fn: failing(errSecret), silent: true},
		{name: "another component's refusal", chain: refuse, silent: true},
		{name: "wrong order", chain: middleware.Chain(at(middleware.StageGate), at(middleware.StageRetry)), want: middleware.ReasonUnsafeOrder, is: middleware.ComponentChain},
		{name: "nil layer", chain: middleware.Chain(pass, nil), want: middleware.ReasonNilHandler, is: middleware.ComponentChain},
		{name: "halted", halt: true, want: middleware.ReasonLoop, is: middleware.ComponentWatchdog},
		{name: "ended", end: true, want: middleware.ReasonRunEnded, is: middleware.ComponentRun},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := &recorder{}
			if tc.fn == nil {
				tc.fn = echo
			}
			tool := newTool(t, middleware.ToolConfig{Chain: tc.chain, Observer: o}, tc.fn)
			ctx, r := start(t, middleware.RunConfig{})
			if tc.halt {
				r.Halt(middleware.ComponentWatchdog, middleware.ReasonLoop)
			}
			if tc.end {
				r.End()
			}
			_, _ = tool.Do(ctx, "", secret)
			heard := o.all()
			if tc.silent {
				if len(heard) != 0 {
					t.Errorf("heard %+v", heard)
				}

				return
			}
			want := middleware.Decision{
				Component: tc.is, Verdict: middleware.VerdictDeny, Action: middleware.ActionBlock, Reason: tc.want,
				Run: r.ID(), Workflow: workflow(), Label: ident.MustLabel("probe"),
			}
			if len(heard) != 1 || heard[0] != want {
				t.Errorf("heard %+v, want %+v", heard, want)
			}
		})
	}
	o := &recorder{}
	tool := newTool(t, middleware.ToolConfig{Observer: o}, echo)
	_, _ = tool.Do(t.Context(), "", "")
	model := wrapModel(t, fakeModel(nil), middleware.ModelConfig{Observer: o, Label: ident.MustLabel("model")})
	_, _ = model.GenerateContent(t.Context(), nil)
	lost := wrapModel(t, fakeModel(nil), middleware.ModelConfig{Observer: o, Chain: middleware.Chain[*middleware.ModelCall, *middleware.ModelResult](nil)})
	ctx, _ := start(t, middleware.RunConfig{})
	_, _ = lost.GenerateContent(ctx, nil)
	heard := o.all()
	if len(heard) != 3 || heard[0].Reason != middleware.ReasonNoRun || heard[1].Reason != middleware.ReasonNoRun ||
		heard[1].Label.String() != "model" || heard[2].Reason != middleware.ReasonNilHandler {
		t.Errorf("heard %+v", heard)
	}
}

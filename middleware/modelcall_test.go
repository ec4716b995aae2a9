package middleware_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func resolve(options []llms.CallOption) llms.CallOptions {
	var o llms.CallOptions
	for _, opt := range options {
		opt(&o)
	}

	return o
}

func TestModelCallDropsNilOptions(t *testing.T) {
	t.Parallel()
	call := middleware.NewModelCall(nil, nil, llms.WithModel("a"), nil).Append(nil, llms.WithMaxTokens(3), nil)
	if got := resolve(call.CallOptions()); got.Model != "a" || got.MaxTokens != 3 || len(call.CallOptions()) != 2 {
		t.Errorf("got %d options: %+v", len(call.CallOptions()), got)
	}
	if n := len(middleware.NewModelCall(nil).CallOptions()); n != 0 {
		t.Errorf("%d options out of nothing", n)
	}
}

// Callers share a slice that has room behind its end. Run with -race.
func TestModelCallOwnsItsOptions(t *testing.T) {
	t.Parallel()
	shared := make([]llms.CallOption, 1, 8)
	shared[0] = llms.WithTemperature(0)
	var wg sync.WaitGroup
	for _, name := range []string{"a", "b", "c", "d"} {
		wg.Go(func() {
			for range 200 {
				call := middleware.NewModelCall(nil, shared...).Append(llms.WithModel(name))
				more := append(call.CallOptions(), llms.WithMaxTokens(1))
				if got := resolve(more); got.Model != name {
					t.Errorf("%s was asked as %s", name, got.Model)
				}
			}
		})
	}
	wg.Wait()
	call := middleware.NewModelCall(nil, shared...)
	shared[0] = llms.WithTemperature(2)
	if got := resolve(call.CallOptions()).Temperature; got != 0 {
		t.Errorf("a write to the caller's slice reached the call: %v", got)
	}
}

func TestCallOptionsNeverAlias(t *testing.T) {
	t.Parallel()
	base := middleware.NewModelCall(nil, llms.WithModel("a"), llms.WithMaxTokens(1))
	given := base.CallOptions()
	given[0] = llms.WithModel("written")
	_ = append(given[:1], llms.WithMaxTokens(9))
	if got := resolve(base.CallOptions()); got.Model != "a" || got.MaxTokens != 1 {
		t.Errorf("a write to what CallOptions gave reached the call: %+v", got)
	}
	one, two := base.Append(llms.WithModel("one")), base.Append(llms.WithModel("two"))
	if a, b := resolve(one.CallOptions()).Model, resolve(two.CallOptions()).Model; a != "one" || b != "two" {
		t.Errorf("siblings share options: %s, %s", a, b)
	}
	if got := resolve(base.CallOptions()).Model; got != "a" {
		t.Errorf("Append changed its call: %s", got)
	}
}

func TestOptionsAreResolvedAtMostOnce(t *testing.T) {
	t.Parallel()
	var applied atomic.Int64
	call := middleware.NewModelCall(nil, func(o *llms.CallOptions) {
		applied.Add(1)
		o.MaxTokens = 5
	})
	_ = call.CallOptions()
	if n := applied.Load(); n != 0 {
		t.Errorf("applied %d times before anybody looked", n)
	}
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if got := call.Options().MaxTokens(); got != 5 {
				t.Errorf("got %d", got)
			}
		})
	}
	wg.Wait()
	if n := applied.Load(); n != 1 {
		t.Errorf("applied %d times", n)
	}
	if got := call.Append(llms.WithMaxTokens(6)).Options().MaxTokens(); got != 6 {
		t.Errorf("Append does not win: %d", got)
	}
	if got := call.Options().MaxTokens(); got != 5 {
		t.Errorf("Append changed its call: %d", got)
	}
}

func TestModelCallCopies(t *testing.T) {
	t.Parallel()
	msgs := prompt("a")
	base := middleware.NewModelCall(msgs, llms.WithModel("m"))
	label := ident.MustLabel("primary")
	next := base.WithCandidate(label, 3)
	if base.Attempt() != 1 || !base.Candidate().IsZero() || next.Attempt() != 3 || next.Candidate() != label {
		t.Errorf("got attempts %d, %d", base.Attempt(), next.Attempt())
	}
	other := next.WithMessages(nil)
	if len(next.Messages()) != 1 || other.Messages() != nil || other.Attempt() != 3 || other.Options().Model() != "m" {
		t.Errorf("got %d, %d messages", len(next.Messages()), len(other.Messages()))
	}
}

func TestOptionsView(t *testing.T) {
	t.Parallel()
	tools := []llms.Tool{{Type: "function", Function: &llms.FunctionDefinition{Name: "lookup"}}, {Type: "function"}}
	v := middleware.NewModelCall(nil,
		llms.WithModel("m"), llms.WithMaxTokens(7), llms.WithTemperature(0.5), llms.WithStopWords([]string{"\nObservation:"}),
		llms.WithTools(tools), llms.WithFunctions([]llms.FunctionDefinition{{Name: "older"}}), llms.WithJSONMode(), llms.WithN(2),
		llms.WithToolChoice("none"), llms.WithFunctionCallBehavior(llms.FunctionCallBehaviorAuto),
		llms.WithStreamingFunc(func(context.Context, []byte) error { return nil }),
		llms.WithStreamingReasoningFunc(func(context.Context, []byte, []byte) error { return nil }),
	).Options()
	if v.Model() != "m" || v.MaxTokens() != 7 || v.Temperature() != 0.5 || v.N() != 2 || !v.JSONMode() ||
		v.ToolChoice() != "none" || v.FunctionCallBehavior() != llms.FunctionCallBehaviorAuto ||
		v.StreamingFunc() == nil || v.StreamingReasoningFunc() == nil || !v.OffersTools() {
		t.Errorf("got %+v", v)
	}
	for name, want := range map[string]bool{"lookup": true, "older": true, "Lookup": false, "": false} {
		if v.Offers(name) != want {
			t.Errorf("Offers(%q) is %v", name, !want)
		}
	}
	v.StopWords()[0] = "x"
	v.Tools()[0] = llms.Tool{}
	v.Functions()[0] = llms.FunctionDefinition{}
	if v.StopWords()[0] != "\nObservation:" || !v.Offers("lookup") || !v.Offers("older") {
		t.Error("the view can be written through")
	}
	none := middleware.NewModelCall(nil).Options()
	if none.Model() != "" || none.OffersTools() || none.StreamingFunc() != nil || none.ToolChoice() != nil || none.JSONMode() {
		t.Errorf("got %+v", none)
	}
}

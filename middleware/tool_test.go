package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func TestNewTool(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		cfg  middleware.ToolConfig
		fn   toolHandler
		want middleware.Reason
	}{
		{"no name", middleware.ToolConfig{}, echo, middleware.ReasonInvalidConfig},
		{"no function", middleware.ToolConfig{Name: "a"}, nil, middleware.ReasonInvalidConfig},
		{"unknown effect", middleware.ToolConfig{Name: "a", Effect: 4}, echo, middleware.ReasonInvalidConfig},
		{"no label in the name", middleware.ToolConfig{Name: "9" + secret}, echo, middleware.ReasonInvalidLabel},
	} {
		tool, err := middleware.NewTool(tc.cfg, tc.fn)
		if tool != nil {
			t.Errorf("%s: got a tool", tc.name)
		}
		wantReason(t, err, tc.want)
	}
	tool, err := middleware.NewTool(middleware.ToolConfig{Name: "9x", Label: ident.MustLabel("nine"), Effect: middleware.Polling}, echo)
	if err != nil || tool.Label().String() != "nine" || tool.Effect() != middleware.Polling {
		t.Errorf("got %v", err)
	}
}

func TestLabelFor(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"lookup": "lookup", "Web Scraper": "web_scraper", "DuckDuckGo Search": "duckduckgo_search", "Wikipedia": "wikipedia",
		"GoogleSearch": "googlesearch", "PerplexityAI": "perplexityai", "a--b__c": "a_b_c", "  x  ": "x", "_x": "x",
		"lookup.order": "lookup_order", "Größe 2": "gr_e_2", "v2": "v2", strings.Repeat("a", 64): strings.Repeat("a", 64),
		"": "", "9x": "", "42": "", "!?": "", "日本": "", " 9x": "", strings.Repeat("a", 65): "",
	} {
		label, err := middleware.LabelFor(name)
		if label.String() != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", name, label, err)
		}
		if err != nil {
			wantReason(t, err, middleware.ReasonInvalidLabel)
		}
	}
	if _, err := middleware.LabelFor("9 " + secret); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}

func FuzzLabelFor(f *testing.F) {
	for _, seed := range []string{"lookup", "Web Scraper", "9x", "", "İ", "\xff", "a\x00b", "K", strings.Repeat("é", 70)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		label, err := middleware.LabelFor(name)
		if err != nil {
			if !label.IsZero() || err.Error() != "interlock: tool: invalid_label" {
				t.Errorf("got %v, %v", label, err)
			}

			return
		}
		if again, err := middleware.LabelFor(label.String()); err != nil || again != label {
			t.Errorf("%v became %v, %v", label, again, err)
		}
	})
}

func TestWrapTool(t *testing.T) {
	t.Parallel()
	w, err := middleware.WrapTool(plainTool{name: "Web Scraper"}, middleware.ToolConfig{Name: "ignored", Effect: middleware.ReadOnly})
	if err != nil || w.Name() != "Web Scraper" || w.Description() != "describes Web Scraper" || w.Label().String() != "web_scraper" {
		t.Fatalf("got %v", err)
	}
	ctx, _ := start(t, middleware.RunConfig{})
	if out, err := w.Call(ctx, "in"); err != nil || out != "out in" {
		t.Errorf("got %q, %v", out, err)
	}
	type embedding struct{ *middleware.WrappedTool }
	for _, tc := range []struct {
		name string
		tool middleware.Tool
		want middleware.Reason
	}{
		{"nil", nil, middleware.ReasonInvalidConfig},
		{"wrapped", w, middleware.ReasonAlreadyWrapped},
		{"wrapped inside", embedding{w}, middleware.ReasonAlreadyWrapped},
		{"no name", plainTool{}, middleware.ReasonInvalidConfig},
		{"no label", plainTool{name: "9x"}, middleware.ReasonInvalidLabel},
	} {
		got, err := middleware.WrapTool(tc.tool, middleware.ToolConfig{})
		if got != nil {
			t.Errorf("%s: got a tool", tc.name)
		}
		wantReason(t, err, tc.want)
	}
}

func TestWrapTools(t *testing.T) {
	t.Parallel()
	reg := func(name, label string) middleware.Registration {
		r := middleware.Registration{Tool: plainTool{name: name}}
		if label != "" {
			r.Config.Label = ident.MustLabel(label)
		}

		return r
	}
	tools, err := middleware.WrapTools(reg("a", ""), reg("B", ""), reg("9x", "nine"))
	if err != nil || len(tools) != 3 || tools[0].Name() != "a" || tools[1].Label().String() != "b" || tools[2].Label().String() != "nine" {
		t.Errorf("got %v, %v", tools, err)
	}
	if tools, err := middleware.WrapTools(); err != nil || len(tools) != 0 {
		t.Errorf("got %v, %v", tools, err)
	}
	for _, tc := range []struct {
		name string
		regs []middleware.Registration
		want middleware.Reason
	}{
		{"one name twice", []middleware.Registration{reg("a", "x"), reg("a", "y")}, middleware.ReasonDuplicateTool},
		{"in another case", []middleware.Registration{reg("Lookup", "x"), reg("b", ""), reg("LOOKUP", "y")}, middleware.ReasonDuplicateTool},
		{"one label, derived", []middleware.Registration{reg("web scraper", ""), reg("web-scraper", "")}, middleware.ReasonDuplicateLabel},
		{"one label, given", []middleware.Registration{reg("a", "x"), reg("b", "x")}, middleware.ReasonDuplicateLabel},
		{"one bad among them", []middleware.Registration{reg("a", ""), {}}, middleware.ReasonInvalidConfig},
	} {
		tools, err := middleware.WrapTools(tc.regs...)
		if tools != nil {
			t.Errorf("%s: got %d tools", tc.name, len(tools))
		}
		wantReason(t, err, tc.want)
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	ctx, _ := start(t, middleware.RunConfig{})
	for _, tc := range []struct {
		name   string
		effect middleware.Effect
		chain  middleware.ToolMiddleware
		want   middleware.Reason
		is     error
	}{
		{"a layer loses the result", middleware.Effectful, losesResult, middleware.ReasonOutcomeUnknown, nil},
		{"a layer loses a repeatable result", middleware.ReadOnly, losesResult, middleware.ReasonToolFailed, nil},
		{"a layer panics after the effect", middleware.Effectful, panicsAfter, middleware.ReasonOutcomeUnknown, middleware.ReasonPanic},
		{"a layer panics, repeatable", middleware.Idempotent, panicsAfter, middleware.ReasonPanic, errSecret},
		{"a layer fails", middleware.Effectful, failsAfter(errSecret), middleware.ReasonToolFailed, errSecret},
		{"a layer gives up waiting", middleware.Effectful, failsAfter(context.DeadlineExceeded), middleware.ReasonOutcomeUnknown, context.DeadlineExceeded},
		{"a layer gives up waiting, repeatable", middleware.ReadOnly, failsAfter(context.DeadlineExceeded), middleware.ReasonToolTimeout, context.DeadlineExceeded},
		{"a layer's error panics", middleware.ReadOnly, failsAfter(nasty{}), middleware.ReasonPanic, nil},
		{"a layer's error panics, effectful", middleware.Effectful, failsAfter(nasty{}), middleware.ReasonOutcomeUnknown, nil},
	} {
		res, err := newTool(t, middleware.ToolConfig{Effect: tc.effect, Chain: tc.chain}, echo).Do(ctx, "", secret)
		if res != nil {
			t.Errorf("%s: got %v", tc.name, res)
		}
		wantReason(t, err, tc.want)
		if tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%s: %v is not in the chain", tc.name, tc.is)
		}
	}
}

func losesResult(next toolHandler) toolHandler {
	return func(ctx context.Context, call *toolCall) (*toolResult, error) {
		_, err := next(ctx, call)

		return nil, err
	}
}

func panicsAfter(next toolHandler) toolHandler {
	return func(ctx context.Context, call *toolCall) (*toolResult, error) {
		_, _ = next(ctx, call)
		panic(errSecret)
	}
}

func failsAfter(err error) middleware.ToolMiddleware {
	return func(next toolHandler) toolHandler {
		return func(ctx context.Context, call *toolCall) (*toolResult, error) {
			_, _ = next(ctx, call)

			return nil, err
		}
	}
}

// nasty is an error whose methods panic, as those of a typed nil do.
type nasty struct{}

func (nasty) Error() string       { panic(secret) }
func (nasty) Unwrap() error       { panic(secret) }
func (nasty) Observation() string { panic(secret) }

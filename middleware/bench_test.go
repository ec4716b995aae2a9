package middleware_test

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// The control row: a system call, to compare machines by.
func BenchmarkControlGetppid(b *testing.B) {
	for b.Loop() {
		_ = os.Getppid()
	}
}

func answered() toolHandler {
	res := &toolResult{Output: "a"}

	return func(context.Context, *toolCall) (*toolResult, error) { return res, nil }
}

// nested is what one writes without Chain.
func nested(h toolHandler) toolHandler {
	return pass(pass(pass(pass(pass(pass(pass(pass(pass(pass(h))))))))))
}

func BenchmarkChain(b *testing.B) {
	layers := func(n int) toolHandler {
		return middleware.Chain(slices.Repeat([]middleware.ToolMiddleware{pass}, n)...)(answered())
	}
	staged := make([]middleware.ToolMiddleware, 0, 10)
	for _, s := range middleware.Stages()[:10] {
		staged = append(staged, at(s))
	}
	for _, bc := range []struct {
		name string
		h    toolHandler
	}{
		{"hand-nested-10", nested(answered())},
		{"layers-10", layers(10)},
		{"layers-5", layers(5)},
		{"layers-1", layers(1)},
		{"layers-0", answered()},
		{"staged-10", middleware.Chain(staged...)(answered())},
	} {
		b.Run(bc.name, func(b *testing.B) {
			call := &toolCall{}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bc.h(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The whole seam of a tool: run check, call, claim, context, recover, eight
// layers, settle.
func BenchmarkToolSeam(b *testing.B) {
	staged := make([]middleware.ToolMiddleware, 0, 8)
	for _, s := range middleware.Stages()[:8] {
		staged = append(staged, at(s))
	}
	for _, bc := range []struct {
		name, id string
		layers   []middleware.ToolMiddleware
	}{
		{"layers-8", "", slices.Repeat([]middleware.ToolMiddleware{pass}, 8)},
		{"layers-8/id-given", "call_1", slices.Repeat([]middleware.ToolMiddleware{pass}, 8)},
		{"staged-8", "", staged},
		{"layers-0", "", nil},
	} {
		b.Run(bc.name, func(b *testing.B) {
			tool := newTool(b, middleware.ToolConfig{Chain: middleware.Chain(bc.layers...)}, answered())
			ctx, _ := start(b, middleware.RunConfig{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tool.Do(ctx, bc.id, "in"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The whole seam of a model: run check, call with its own options, context,
// recover, three layers, checks of the response, turn. The bare row is the
// model alone.
func BenchmarkModelSeam(b *testing.B) {
	resp := saying("a", calling("1", "lookup"))
	bare := answering(resp, nil)
	watch := func(next middleware.ModelHandler) middleware.ModelHandler {
		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			if call.Options().MaxTokens() == 0 {
				return nil, errSecret
			}

			return next(ctx, call)
		}
	}
	options := []llms.CallOption{llms.WithMaxTokens(5), llms.WithModel("m")}
	for _, bc := range []struct {
		name  string
		model llms.Model
	}{
		{"bare", bare},
		{"layers-3", wrapModel(b, bare, middleware.ModelConfig{Chain: middleware.Chain(passModel, passModel, passModel)})},
		{"layers-3/options-read", wrapModel(b, bare, middleware.ModelConfig{Chain: middleware.Chain(passModel, passModel, watch)})},
	} {
		b.Run(bc.name, func(b *testing.B) {
			ctx, _ := start(b, middleware.RunConfig{})
			messages := prompt("q")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := bc.model.GenerateContent(ctx, messages, options...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPerRunGet(b *testing.B) {
	_, r := start(b, middleware.RunConfig{})
	slots := make([]*middleware.PerRun[state], 8)
	for i := range slots {
		slots[i] = &middleware.PerRun[state]{New: func(*middleware.Run) (*state, error) { return &state{}, nil }}
		if _, err := slots[i].Get(r); err != nil {
			b.Fatal(err)
		}
	}
	for name, slot := range map[string]*middleware.PerRun[state]{"first-of-8": slots[0], "last-of-8": slots[7]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := slot.Get(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("two-map-reads", func(b *testing.B) {
		runs := map[*middleware.Run]map[any]*state{r: {}}
		for _, slot := range slots {
			runs[r][slot] = &state{}
		}
		b.ReportAllocs()
		for b.Loop() {
			if runs[r][slots[7]] == nil {
				b.Fatal("not found")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := slots[7].Get(r); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// A run from start to end, with one state.
func BenchmarkRun(b *testing.B) {
	_, given := start(b, middleware.RunConfig{})
	w := workflow()
	for name, id := range map[string]ident.RunID{"id-given": given.ID(), "id-drawn": {}} {
		b.Run(name, func(b *testing.B) {
			slot := &middleware.PerRun[state]{
				New: func(*middleware.Run) (*state, error) { return &state{}, nil },
				End: func(*state) {},
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				_, r, err := middleware.StartRun(ctx, middleware.RunConfig{ID: id, Workflow: w})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := slot.Get(r); err != nil {
					b.Fatal(err)
				}
				r.End()
			}
		})
	}
}

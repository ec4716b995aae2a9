package escalation_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/escalation"
	"github.com/interlock-go/interlock/middleware"
)

// BenchmarkContextLimiter is the cost of the layer per model call: of a history
// that fits, and of one that was cut before.
func BenchmarkContextLimiter(b *testing.B) {
	for _, messages := range []int{10, 100, 1000} {
		for _, fits := range []bool{true, false} {
			name := fmt.Sprintf("messages=%d/cut", messages)
			if fits {
				name = fmt.Sprintf("messages=%d/fits", messages)
			}
			b.Run(name, func(b *testing.B) {
				h := history(system("You are careful."), human("Sort the mail of the whole week by sender."))
				for i := 2; i < messages; i += 2 {
					turn := worked(fmt.Sprintf("call%04d", i), 40)
					turn[1].Parts[0] = llms.ToolCallResponse{ToolCallID: fmt.Sprintf("call%04d", i), Content: strings.Repeat("mail by sender ", 4)}
					h = append(h, turn...)
				}
				cfg := escalation.ContextConfig{Window: 1 << 20}
				if !fits {
					cfg.Window = messages * 20
				}
				l := limiter(b, cfg)
				ctx, _ := newBench(b, nil).start(b, b.Context())
				res := &middleware.ModelResult{}
				handler := l.Model()(func(context.Context, *middleware.ModelCall) (*middleware.ModelResult, error) { return res, nil })
				b.ReportAllocs()
				for b.Loop() {
					if _, err := handler(ctx, middleware.NewModelCall(h)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

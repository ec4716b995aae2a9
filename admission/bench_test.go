package admission_test

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/admission"
	"github.com/interlock-go/interlock/middleware"
)

// fixedStore answers at once: what is left is the gate itself.
type fixedStore struct {
	*memoryStore
	head admission.Head
}

func (s fixedStore) Head(context.Context) (admission.Head, error) { return s.head, nil }

// BenchmarkGate is one admitted effect, from the gate on.
func BenchmarkGate(b *testing.B) {
	filled := newMemoryStore(b)
	memory := newController(b, filled)
	for memory.Status(b.Context(), global).Generation < 10 {
		enable(b, memory, global)
	}
	memory = newController(b, fixedStore{filled, must(filled.Head(b.Context()))})
	disk := newStore(b).controller(b)
	for name, c := range map[string]*admission.Controller{"memory": memory, "sqlite-10": disk} {
		b.Run(name, func(b *testing.B) {
			for c.Status(b.Context(), global).Generation < 10 {
				enable(b, c, global)
			}
			run := startRun(b, c, refunds)
			h := c.Gate().Tool()(func(context.Context, *middleware.ToolCall) (*middleware.ToolResult, error) { return nil, nil })
			call := new(middleware.ToolCall)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h(run.ctx, call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTransition is one receipt, durable in both files.
func BenchmarkTransition(b *testing.B) {
	c := newStore(b).controller(b)
	for b.Loop() {
		stop(b, c, global)
	}
}

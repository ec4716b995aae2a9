package interlock

import (
	"context"
	"strconv"

	"github.com/tmc/langchaingo/tools"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// declared is a tool with what its developer declares about it.
type declared struct {
	tools.Tool

	effect  middleware.Effect
	label   ident.Label
	release bool
}

// Call refuses: a declared tool that was not given to [Guard.Tools] has no
// guard, and calling it anyway would be the one thing nobody wanted.
func (d *declared) Call(context.Context, string) (string, error) {
	return "", middleware.NewFailure(middleware.ComponentTool, middleware.ReasonNilHandler, d.label)
}

// declare keeps earlier declarations, so that they compose in any order.
func declare(t tools.Tool) *declared {
	if d, ok := t.(*declared); ok {
		c := *d

		return &c
	}

	return &declared{Tool: t}
}

// ReadOnly declares that calling t changes nothing: it needs no admission.
func ReadOnly(t tools.Tool) tools.Tool { return withEffect(t, middleware.ReadOnly) }

// Idempotent declares that calling t twice with the same input changes the
// world once. It needs admission; a call whose outcome is unknown does not end
// the run.
func Idempotent(t tools.Tool) tools.Tool { return withEffect(t, middleware.Idempotent) }

// Polling declares that t is read-only and is asked again and again on purpose.
func Polling(t tools.Tool) tools.Tool { return withEffect(t, middleware.Polling) }

// Alias gives t the label that telemetry and digests know it by. Without it the
// label is derived from the name (middleware.LabelFor).
func Alias(t tools.Tool, label ident.Label) tools.Tool {
	d := declare(t)
	d.label = label

	return d
}

// ReleaseErrors lets the text of t's errors reach the model: at most 4 KiB,
// control characters removed. It goes to the provider and may hold a password
// or a patient's name.
func ReleaseErrors(t tools.Tool) tools.Tool {
	d := declare(t)
	d.release = true

	return d
}

func withEffect(t tools.Tool, e middleware.Effect) tools.Tool {
	d := declare(t)
	d.effect = e

	return d
}

// Tools returns ts behind the guard, for one agent. A tool is effectful unless
// it is wrapped in [ReadOnly], [Idempotent] or [Polling].
//
// It fails with a [ConfigError] of the tool's position for a nil tool, one that
// a guard wrapped already (already_wrapped), two names that differ only by case
// (duplicate_tool), two equal labels (duplicate_label), or a name that no label
// can be derived from (invalid_label).
func (g *Guard) Tools(ts ...tools.Tool) ([]tools.Tool, error) {
	regs := make([]middleware.Registration, 0, len(ts))
	for i, t := range ts {
		d := declare(t)
		if d.Tool == nil {
			return nil, badConfig(toolField(i), "not nil", nil)
		}
		regs = append(regs, middleware.Registration{Tool: d.Tool, Config: middleware.ToolConfig{
			Label: d.label, Effect: d.effect, Chain: g.toolChain, ErrorText: d.release || g.cfg.ErrorText,
			Observer: g.cfg.Observer,
		}})
	}
	wrapped, err := middleware.WrapTools(regs...)
	if err != nil {
		return nil, badConfig(toolField(firstBad(regs)), "a tool of its own name and label, wrapped once", err)
	}
	guarded := make([]tools.Tool, len(wrapped))
	for i, w := range wrapped {
		guarded[i] = w
	}
	g.names.add(regs)

	return guarded, nil
}

func toolField(i int) string { return "Tools[" + strconv.Itoa(i) + "]" }

// firstBad finds the registration at which WrapTools begins to fail.
func firstBad(regs []middleware.Registration) int {
	for i := range regs {
		if _, err := middleware.WrapTools(regs[:i+1]...); err != nil {
			return i
		}
	}

	return 0
}

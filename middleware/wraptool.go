package middleware

import (
	"context"
	"strings"

	"github.com/interlock-go/interlock/ident"
)

// WrappedTool is a [Tool] behind a chain. It has the name and the description
// of the tool that it wraps.
type WrappedTool struct {
	GuardedTool

	description string
}

var _ Tool = (*WrappedTool)(nil)

// WrapTool registers t. cfg.Name is ignored. Beside the errors of [NewTool] it
// fails with invalid_config for a nil t and with already_wrapped for a
// WrappedTool or what embeds one: two chains would count and ask twice.
func WrapTool(t Tool, cfg ToolConfig) (*WrappedTool, error) {
	if t == nil {
		return nil, NewFailure(ComponentTool, ReasonInvalidConfig, cfg.Label)
	}
	if _, wrapped := t.(interface{ isGuarded() }); wrapped {
		return nil, NewFailure(ComponentTool, ReasonAlreadyWrapped, cfg.Label)
	}
	cfg.Name = t.Name()
	g, err := NewTool(cfg, func(ctx context.Context, call *ToolCall) (*ToolResult, error) {
		out, err := t.Call(ctx, call.Input())
		if err != nil {
			return nil, err
		}

		return &ToolResult{Output: out}, nil
	})
	if err != nil {
		return nil, err
	}

	return &WrappedTool{GuardedTool: *g, description: t.Description()}, nil
}

// Registration is a tool and its configuration, for [WrapTools].
type Registration struct {
	Tool   Tool
	Config ToolConfig
}

// WrapTools registers the tools of one agent. Beside the errors of [WrapTool],
// it fails with duplicate_tool for two names that differ only by case
// (langchaingo's executor would call the last of them for both) and with
// duplicate_label for two tools of one label.
func WrapTools(regs ...Registration) ([]*WrappedTool, error) {
	names := make(map[string]bool, len(regs))
	labels := make(map[ident.Label]bool, len(regs))
	wrapped := make([]*WrappedTool, 0, len(regs))
	for _, reg := range regs {
		w, err := WrapTool(reg.Tool, reg.Config)
		if err != nil {
			return nil, err
		}
		name := strings.ToUpper(w.cfg.Name)
		if names[name] {
			return nil, NewFailure(ComponentTool, ReasonDuplicateTool, w.cfg.Label)
		}
		if labels[w.cfg.Label] {
			return nil, NewFailure(ComponentTool, ReasonDuplicateLabel, w.cfg.Label)
		}
		names[name], labels[w.cfg.Label] = true, true
		wrapped = append(wrapped, w)
	}

	return wrapped, nil
}

// isGuarded marks what WrapTool returns, also inside of another type.
func (*WrappedTool) isGuarded() {}

// Name returns the wrapped tool's name.
func (w *WrappedTool) Name() string { return w.cfg.Name }

// Description returns the wrapped tool's description.
func (w *WrappedTool) Description() string { return w.description }

// Call calls the tool through its chain. What [GuardedTool.Observation] says
// that the model should be told is returned as text with a nil error.
func (w *WrappedTool) Call(ctx context.Context, input string) (string, error) {
	res, err := w.Do(ctx, "", input)
	if err == nil {
		return res.Output, nil
	}
	if text, ok := w.Observation(ctx, err); ok {
		return text, nil
	}

	return "", err
}

// LabelFor derives a label from the name of a tool: lower case, and every run
// of other characters than letters and digits becomes one "_". "Web Scraper"
// gives web_scraper. It fails with invalid_label where nothing is left or the
// name does not begin with a letter: such a tool needs an explicit label.
func LabelFor(name string) (ident.Label, error) {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			gap = true

			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	label, err := ident.NewLabel(b.String())
	if err != nil {
		return ident.Label{}, NewFailure(ComponentTool, ReasonInvalidLabel, ident.Label{}, err)
	}

	return label, nil
}

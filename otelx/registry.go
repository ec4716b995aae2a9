package otelx

import (
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// entry is one registered name, with all that spans and metrics need of it made
// at construction.
type entry struct {
	index   uint8                   // in its table; part of the keys of series
	span    string                  // name of the operation's span
	options []trace.SpanStartOption // kind
	attrs   []attribute.KeyValue    // fixed attributes of the operation's span
	metric  []attribute.KeyValue    // of these, the attributes of metrics
}

// table is a closed set of names. What is not in it is one entry, _OTHER.
type table struct {
	known map[ident.Label]*entry
	all   []*entry // by index
	other *entry
}

func newTable() *table { return &table{known: make(map[ident.Label]*entry)} }

func (t *table) add(label ident.Label, e *entry) {
	t.append(e)
	t.known[label] = e
}

func (t *table) append(e *entry) {
	e.index = uint8(len(t.all)) //nolint:gosec // the caps add up to fewer than 256
	t.all = append(t.all, e)
}

// close adds what a miss renders as, after which the table is read only.
func (t *table) close(e *entry) {
	t.append(e)
	t.other = e
}

// find returns the entry of label and whether it is registered.
func (t *table) find(label ident.Label) (*entry, bool) {
	if e, ok := t.known[label]; ok {
		return e, true
	}

	return t.other, false
}

// registry is what may be rendered. It is frozen before the first request.
type registry struct {
	agents     *table
	tools      *table
	candidates *table
	names      *table // all of them: labels of breakers and decisions
	anonymous  *entry // a run whose agent has no label
	fallback   *entry
	decision   []trace.SpanStartOption            // kind of decision spans
	models     map[ident.Label]attribute.KeyValue // what gen_ai.response.model may be
	answers    map[ident.Label]attribute.KeyValue // models, and candidates as the model they stand for
	workflows  map[ident.WorkflowID]attribute.KeyValue
}

func newRegistry(cfg *Config) (*registry, error) {
	r := &registry{
		agents: newTable(), tools: newTable(), candidates: newTable(), names: newTable(),
		models:    make(map[ident.Label]attribute.KeyValue),
		workflows: make(map[ident.WorkflowID]attribute.KeyValue),
	}
	internal := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindInternal)}
	client := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}

	agent := func(label string) *entry { return agentEntry(label, internal) }
	if err := r.register("Agents", cfg.Agents, MaxAgents, r.agents, agent); err != nil {
		return nil, err
	}
	tool := func(label string) *entry { return toolEntry(label, internal) }
	if err := r.register("Tools", cfg.Tools, MaxTools, r.tools, tool); err != nil {
		return nil, err
	}
	if err := r.registerCandidates(cfg.Candidates, client); err != nil {
		return nil, err
	}
	if err := r.registerModels(cfg.ResponseModels); err != nil {
		return nil, err
	}
	if err := r.registerWorkflows(cfg.Workflows); err != nil {
		return nil, err
	}
	r.nameAnswers(cfg.Candidates)
	r.anonymous = &entry{
		span: operationAgent, options: internal,
		attrs: []attribute.KeyValue{keyOperation.String(operationAgent)},
	}
	r.agents.append(r.anonymous)
	r.fallback, r.decision = &entry{span: spanFallback, options: internal}, internal
	r.agents.close(agent(other))
	r.tools.close(tool(other))
	r.candidates.close(chatEntry(other, other, other, client))
	r.names.close(nameEntry(other))

	return r, nil
}

func (r *registry) register(field string, labels []ident.Label, limit int, t *table, render func(string) *entry) error {
	if len(labels) > limit {
		return refuseCount(field, len(labels), limit)
	}
	for i, l := range labels {
		if _, err := ident.NewLabel(l.String()); err != nil { // zero, or only good for a model
			return refuseEntry(field, i, "", middleware.ReasonInvalidLabel)
		}
		if _, twice := t.known[l]; twice {
			return refuseEntry(field, i, "", middleware.ReasonDuplicateLabel)
		}
		t.add(l, render(l.String()))
		r.name(l)
	}

	return nil
}

func (r *registry) registerCandidates(candidates []Candidate, client []trace.SpanStartOption) error {
	const field = "Candidates"
	if len(candidates) > MaxModels {
		return refuseCount(field, len(candidates), MaxModels)
	}
	for i, c := range candidates {
		if c.Label.IsZero() {
			return refuseEntry(field, i, "Label", middleware.ReasonInvalidLabel)
		}
		if _, err := ident.NewLabel(c.Provider.String()); err != nil {
			return refuseEntry(field, i, "Provider", middleware.ReasonInvalidLabel)
		}
		if _, twice := r.candidates.known[c.Label]; twice {
			return refuseEntry(field, i, "Label", middleware.ReasonDuplicateLabel)
		}
		model := c.Model
		if model.IsZero() {
			model = c.Label
		}
		r.candidates.add(c.Label, chatEntry(c.Label.String(), c.Provider.String(), model.String(), client))
		r.models[model] = keyResponseModel.String(model.String())
		r.name(c.Label)
	}

	return nil
}

func (r *registry) registerModels(labels []ident.Label) error {
	const field = "ResponseModels"
	for i, l := range labels {
		if l.IsZero() {
			return refuseEntry(field, i, "", middleware.ReasonInvalidLabel)
		}
		r.models[l] = keyResponseModel.String(l.String())
	}
	if len(r.models) > MaxModels {
		return refuseCount(field, len(r.models), MaxModels)
	}

	return nil
}

// nameAnswers lets a candidate's label stand for its model: who asks a model
// knows the candidate, not always the model that the provider then used.
func (r *registry) nameAnswers(candidates []Candidate) {
	r.answers = maps.Clone(r.models)
	for _, c := range candidates {
		if _, isModel := r.models[c.Label]; !isModel {
			r.answers[c.Label] = r.models[c.Model]
		}
	}
}

func (r *registry) registerWorkflows(workflows []ident.WorkflowID) error {
	const field = "Workflows"
	if len(workflows) > MaxWorkflows {
		return refuseCount(field, len(workflows), MaxWorkflows)
	}
	for i, w := range workflows {
		if w.IsZero() {
			return refuseEntry(field, i, "", middleware.ReasonInvalidLabel)
		}
		if _, twice := r.workflows[w]; twice {
			return refuseEntry(field, i, "", middleware.ReasonDuplicateLabel)
		}
		r.workflows[w] = keyWorkflowID.String(w.String())
	}

	return nil
}

// name makes label known to decisions and breakers; a tool and a candidate may
// share one.
func (r *registry) name(label ident.Label) {
	if _, ok := r.names.known[label]; !ok {
		r.names.add(label, nameEntry(label.String()))
	}
}

func agentEntry(label string, kind []trace.SpanStartOption) *entry {
	agent := keyAgent.String(label)

	return &entry{
		span: operationAgent + " " + label, options: kind,
		attrs:  []attribute.KeyValue{keyOperation.String(operationAgent), agent},
		metric: []attribute.KeyValue{agent},
	}
}

func toolEntry(label string, kind []trace.SpanStartOption) *entry {
	tool := keyTool.String(label)

	return &entry{
		span: operationTool + " " + label, options: kind,
		attrs:  []attribute.KeyValue{keyOperation.String(operationTool), tool, keyToolType.String(toolFunction)},
		metric: []attribute.KeyValue{tool},
	}
}

func chatEntry(label, provider, model string, kind []trace.SpanStartOption) *entry {
	attrs := []attribute.KeyValue{
		keyOperation.String(operationChat), keyProvider.String(provider), keyRequestModel.String(model),
	}

	return &entry{span: operationChat + " " + label, options: kind, attrs: attrs, metric: attrs}
}

func nameEntry(label string) *entry {
	return &entry{
		attrs:  []attribute.KeyValue{keyLabel.String(label)},
		metric: []attribute.KeyValue{keyCircuitLabel.String(label)},
	}
}

package escalation

import "github.com/interlock-go/interlock/middleware"

// Class is what a failure counts as: FailureUncertainty,
// FailurePermissionDenial or FailureTool of package middleware.
type Class = middleware.FailureClass

// MaxThreshold bounds every limit of a [Policy]; it is also the most steps that
// a handoff names.
const MaxThreshold = 32

// Policy says how many failures halt a run. Each limit is 1…32; the failure
// that reaches one trips. A total below the limit of a class is allowed.
type Policy struct {
	// Uncertainty limits failures of class uncertainty. Default 3.
	Uncertainty int
	// PermissionDenial limits failures of class permission_denial. Default 2.
	PermissionDenial int
	// ToolFailure limits failures of class tool_failure. Default 3.
	ToolFailure int
	// Total limits failures of all classes together. Default 6.
	Total int
}

// DefaultPolicy returns the limits 3, 2, 3 and 6.
func DefaultPolicy() Policy {
	return Policy{Uncertainty: 3, PermissionDenial: 2, ToolFailure: 3, Total: 6}
}

// Validate returns a [ConfigError] of invalid_threshold that names the first
// field outside of 1…32, or nil.
func (p Policy) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"Policy.Uncertainty", p.Uncertainty},
		{"Policy.PermissionDenial", p.PermissionDenial},
		{"Policy.ToolFailure", p.ToolFailure},
		{"Policy.Total", p.Total},
	} {
		if f.value < 1 || f.value > MaxThreshold {
			return &ConfigError{reason: middleware.ReasonInvalidThreshold, field: f.name, bound: "1…32"}
		}
	}

	return nil
}

func (p Policy) limit(c Class) int {
	switch c {
	case middleware.FailureUncertainty:
		return p.Uncertainty
	case middleware.FailurePermissionDenial:
		return p.PermissionDenial
	case middleware.FailureTool:
		return p.ToolFailure
	default:
		return 0
	}
}

// Counts are the failures of a run by class.
type Counts struct {
	PermissionDenial int `json:"permission_denial"`
	ToolFailure      int `json:"tool_failure"`
	Uncertainty      int `json:"uncertainty"`
}

// Total returns the failures of all classes.
func (c Counts) Total() int { return c.Uncertainty + c.PermissionDenial + c.ToolFailure }

// Of returns the failures of one class, 0 for a class outside of the set.
func (c Counts) Of(class Class) int {
	if p := counter(&c, class); p != nil {
		return *p
	}

	return 0
}

func counter(c *Counts, class Class) *int {
	switch class {
	case middleware.FailureUncertainty:
		return &c.Uncertainty
	case middleware.FailurePermissionDenial:
		return &c.PermissionDenial
	case middleware.FailureTool:
		return &c.ToolFailure
	default:
		return nil
	}
}

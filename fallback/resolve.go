package fallback

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Keys are what [Resolve] gives to providers: a key each, or one for all if all specs name the same provider.
type Keys struct {
	// Of holds a key per provider, by its registered name. Default nil: none.
	Of map[string]Key
	// All is the key of the only provider that the specs name. Default: none. Of has to be empty then.
	All Key
}

// Skipped is a spec that could not be resolved.
type Skipped struct {
	// Index of the spec.
	Index int
	// Decision says why, by its Reason; hand it to an observer with [middleware.Notify].
	Decision middleware.Decision
}

// Resolve makes candidates of specs of the form provider:model, in their order:
//
//	import (
//		_ "github.com/interlock-go/interlock/fallback/anthropic"
//		_ "github.com/interlock-go/interlock/fallback/openai"
//	)
//
//	candidates, skipped, err := fallback.Resolve(
//		[]string{"openai:gpt-4o", "anthropic:claude-sonnet-4-5"},
//		fallback.Keys{Of: map[string]fallback.Key{"openai": …, "anthropic": …}},
//	)
//
// A candidate's label is the provider's name, with a number behind it from the second one on. Clients that take an
// *http.Client get one with a [Transport]. Keys come from the caller only, never from the environment.
//
// A spec that cannot be resolved is skipped: malformed or its client cannot be made (invalid_config), not registered
// (unknown_provider), registered twice (duplicate_label), without a key (key_missing). If nothing is left, or the list
// is empty or has more than 32 specs, or one key is given for several providers (key_ambiguous), there are no
// candidates, and an error that names index and code: no spec, no key. A key is never sent to another vendor.
func Resolve(specs []string, keys Keys) ([]Candidate, []Skipped, error) {
	if err := keys.check(specs); err != nil {
		return nil, nil, err
	}
	var (
		candidates []Candidate
		skipped    []Skipped
	)
	labels := make(map[string]struct{}, len(specs))
	for i, spec := range specs {
		c, reason := resolve(spec, keys)
		if reason != 0 {
			skipped = append(skipped, skippedAt(i, reason))

			continue
		}
		c.candidate.Label = freeLabel(c.name, labels)
		candidates = append(candidates, c.candidate)
	}
	if len(candidates) == 0 {
		return nil, skipped, unresolved(skipped)
	}

	return candidates, skipped, nil
}

func (k Keys) check(specs []string) error {
	switch {
	case len(specs) == 0:
		return invalid("specs", middleware.ReasonNoCandidate, middleware.ReasonNoCandidate.String())
	case len(specs) > maxCandidates:
		return invalid("specs", middleware.ReasonInvalidConfig, "more than 32")
	case k.All.IsZero():
		return nil
	case len(k.Of) > 0:
		return invalid("keys", middleware.ReasonKeyAmbiguous, middleware.ReasonKeyAmbiguous.String())
	}
	first, _, _ := strings.Cut(specs[0], ":")
	for _, spec := range specs[1:] {
		if name, _, _ := strings.Cut(spec, ":"); name != first {
			return invalid("keys", middleware.ReasonKeyAmbiguous, middleware.ReasonKeyAmbiguous.String())
		}
	}

	return nil
}

// resolved is a candidate that still needs a label.
type resolved struct {
	candidate Candidate
	name      string
}

func resolve(spec string, keys Keys) (r resolved, reason middleware.Reason) {
	name, model, ok := strings.Cut(spec, ":")
	if !ok || !validModel(model) {
		return r, middleware.ReasonInvalidConfig
	}
	registration, reason := registered.find(name)
	if reason != 0 {
		return r, reason
	}
	cfg := ClientConfig{ModelName: model, HTTPClient: newHTTPClient()}
	if !registration.Keyless {
		if cfg.Key = keys.of(name); cfg.Key.IsZero() {
			return r, middleware.ReasonKeyMissing
		}
	}
	client, err := registration.make(cfg)
	if err != nil || isNil(client) {
		return r, middleware.ReasonInvalidConfig
	}

	return resolved{name: name, candidate: Candidate{
		Provider: registration.Provider, ModelName: model, Model: client,
	}}, 0
}

func (k Keys) of(name string) Key {
	if !k.All.IsZero() {
		return k.All
	}

	return k.Of[name]
}

// validModel keeps out what cannot be a name: it ends up in URLs.
func validModel(s string) bool {
	if s == "" || len(s) > maxModelName {
		return false
	}
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsGraphic(r) || strings.ContainsRune(` ?#%\`, r)
	}

	return !strings.ContainsFunc(s, odd) && !strings.Contains(s, "..")
}

// newHTTPClient follows no redirects: net/http takes only the header Authorization off when the host changes, and two of
// the providers want their key in another one.
func newHTTPClient() *http.Client {
	return &http.Client{
		Transport:     &Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func freeLabel(name string, used map[string]struct{}) ident.Label {
	free := name
	for n := 2; ; n++ {
		if _, taken := used[free]; !taken {
			break
		}
		free = name + "-" + strconv.Itoa(n)
	}
	used[free] = struct{}{}
	label, err := ident.NewLabel(free)
	if err != nil { // cannot happen: the name was checked when it was registered
		return ident.Label{} // and New refuses this one
	}

	return label
}

func skippedAt(index int, reason middleware.Reason) Skipped {
	return Skipped{Index: index, Decision: middleware.Decision{
		Component: middleware.ComponentFallback, Verdict: middleware.VerdictAbstain, Action: middleware.ActionProceed,
		Reason: reason, Outcome: middleware.OutcomeSkipped, Count: index,
	}}
}

func unresolved(skipped []Skipped) error {
	var text strings.Builder
	for i, s := range skipped {
		if i > 0 {
			text.WriteString(", " + specAt(s.Index) + ": ")
		}
		text.WriteString(s.Decision.Reason.String())
	}

	return invalid(specAt(skipped[0].Index), skipped[0].Decision.Reason, text.String())
}

func specAt(index int) string { return "specs[" + strconv.Itoa(index) + "]" }

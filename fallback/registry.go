package fallback

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Key is a provider's key. No verb of fmt and no encoding shows it, nor that of
// a struct which holds one: there fmt calls no method of an unexported field,
// and prints the address that it finds. Two keys are not compared by ==.
type Key struct{ s *string }

// NewKey returns the key s; "" is none.
func NewKey(s string) Key {
	if s == "" {
		return Key{}
	}

	return Key{s: &s}
}

// IsZero reports whether there is no key.
func (k Key) IsZero() bool { return k.s == nil }

// Reveal returns the key itself, for a [Factory] to hand to a client; "" if
// there is none.
func (k Key) Reveal() string {
	if k.s == nil {
		return ""
	}

	return *k.s
}

// Format prints "redacted" for every verb and flag.
func (Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, redacted) }

// MarshalText gives "redacted".
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const redacted = "redacted"

// ClientConfig is what a [Factory] makes a client of.
type ClientConfig struct {
	// ModelName is the model to ask: the client's default, too.
	ModelName string
	// Key is the provider's key; zero for a provider that needs none.
	Key Key
	// HTTPClient has a [Transport], and follows no redirects: they would carry the key to another host.
	HTTPClient *http.Client
}

// Factory makes a provider's client. Its errors are not shown to anybody; a panic is an error.
type Factory func(ClientConfig) (llms.Model, error)

// Registration says how a provider's candidates are made by [Resolve].
type Registration struct {
	// Provider says whose protocol the client speaks, and so how its calls are bridged and its failures read. Required.
	Provider Provider
	// New makes the client. Required.
	New Factory
	// Keyless: the provider needs no key, and is given none. Default false.
	Keyless bool
}

// make calls the factory, which is somebody else's code.
func (r Registration) make(cfg ClientConfig) (client llms.Model, err error) {
	defer func() {
		if v := recover(); v != nil {
			client, err = nil, middleware.NewPanicError(v, nil)
		}
	}()

	return r.New(cfg)
}

// maxProviderName leaves room for a number in the label that is made of it.
const maxProviderName = 48

// registered holds the providers of the program, as database/sql holds its drivers: the packages that are imported
// for it fill it from their init.
var registered registry //nolint:gochecknoglobals // filled by imports, see above

type registry struct {
	mu    sync.RWMutex
	names map[string]Registration
	twice map[string]struct{}
}

// Register makes a provider known to [Resolve] under name, which has to be a label of at most 48 bytes. The packages
// below this one do it for the six that come with the library when they are imported; others are registered by the
// program:
//
//	err := fallback.Register("groq", fallback.Registration{
//		Provider: fallback.ProviderOpenAI, New: openai.At("https://api.groq.com/openai/v1"),
//	})
//
// A name that is registered twice belongs to nobody any more: Register says so, and Resolve refuses it, because it could
// not tell which of the two would get the key.
func Register(name string, r Registration) error { return registered.add(name, r) }

func (g *registry) add(name string, r Registration) error {
	if _, err := ident.NewLabel(name); err != nil || len(name) > maxProviderName {
		return invalid("name", middleware.ReasonInvalidLabel, "not a label of at most 48 bytes")
	}
	if !r.Provider.valid() {
		return invalid("Provider", middleware.ReasonUnknownProvider, "not one of the providers")
	}
	if r.New == nil {
		return invalid("New", middleware.ReasonInvalidConfig, "nil")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, has := g.names[name]; has {
		if g.twice == nil {
			g.twice = make(map[string]struct{})
		}
		g.twice[name] = struct{}{}

		return invalid("name", middleware.ReasonDuplicateLabel, "registered already")
	}
	if g.names == nil {
		g.names = make(map[string]Registration)
	}
	g.names[name] = r

	return nil
}

// find returns the registration of a name, or why there is none.
func (g *registry) find(name string) (Registration, middleware.Reason) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if _, twice := g.twice[name]; twice {
		return Registration{}, middleware.ReasonDuplicateLabel
	}
	r, has := g.names[name]
	if !has {
		return Registration{}, middleware.ReasonUnknownProvider
	}

	return r, 0
}

// Registered returns the names that Resolve knows, sorted.
func Registered() []string {
	registered.mu.RLock()
	defer registered.mu.RUnlock()
	var names []string
	for name := range registered.names {
		if _, twice := registered.twice[name]; !twice {
			names = append(names, name)
		}
	}
	slices.Sort(names)

	return names
}

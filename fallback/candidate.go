package fallback

import (
	"reflect"
	"sync/atomic"

	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

// Provider says whose client a candidate uses, because wrapped clients do not tell and each fails in its own way. The
// zero value is invalid.
type Provider uint8

// The providers. A client that speaks a provider's protocol to another address is of that provider.
const (
	_ Provider = iota
	ProviderOpenAI
	ProviderAnthropic
	ProviderGoogleAI
	ProviderMistral
	ProviderOllama
	ProviderCohere
	ProviderHuggingFace
	// ProviderCloudflare: its client loses the text of a streamed answer, which is therefore always a bad_response.
	ProviderCloudflare
	ProviderLlamafile
	// ProviderOther is any other llms.Model: it is taken to offer tools, to heed its context and to say when it fails.
	ProviderOther

	providerEnd
)

// traits are what was measured of langchaingo's clients.
type traits struct {
	name string
	deaf bool // ignores the context
	// streamStop: a whole stream has a StopReason.
	streamStop bool
	// unfinished is the StopReason of an answer that was cut.
	unfinished string
	// counts: a whole answer has a token count.
	counts bool
	// blocks: a choice is a block of one message, also when several answers were asked for.
	blocks bool
	// sse: streams are server-sent events that Transport can watch.
	sse bool
	// deltas: the client gives the StreamingFunc what it reads of a tool call too, so that it is heard of.
	deltas bool
	// inward says when a call that does not stream may be streamed inwardly, to watch its progress.
	inward inwardRule
}

type inwardRule uint8

const (
	inwardNever   inwardRule = iota // something is lost, or not measured
	inwardWatched                   // damage shows only to a Transport, or unknown events are printed
	inwardAlways
)

var providerTable = [providerEnd]traits{ //nolint:gochecknoglobals // compiled table
	ProviderOpenAI:      {name: "openai", streamStop: true, sse: true, deltas: true, inward: inwardWatched},
	ProviderAnthropic:   {name: "anthropic", streamStop: true, blocks: true, sse: true, inward: inwardWatched},
	ProviderGoogleAI:    {name: "googleai", unfinished: "FinishReasonUnspecified", inward: inwardAlways},
	ProviderMistral:     {name: "mistral", deaf: true, streamStop: true},
	ProviderOllama:      {name: "ollama", counts: true, inward: inwardAlways},
	ProviderCohere:      {name: "cohere"},
	ProviderHuggingFace: {name: "huggingface"},
	ProviderCloudflare:  {name: "cloudflare"},
	ProviderLlamafile:   {name: "llamafile"},
	ProviderOther:       {name: "other"},
}

// Providers returns the closed set, for tables and tests.
func Providers() []Provider {
	all := make([]Provider, 0, int(providerEnd))
	for p := ProviderOpenAI; p < providerEnd; p++ {
		all = append(all, p)
	}

	return all
}

// ParseProvider returns the provider of this name.
func ParseProvider(name string) (Provider, bool) {
	for _, p := range Providers() {
		if providerTable[p].name == name {
			return p, true
		}
	}

	return 0, false
}

func (p Provider) valid() bool { return p > 0 && p < providerEnd }

// String returns the provider's name, or "invalid".
func (p Provider) String() string {
	if !p.valid() {
		return middleware.Reason(0).String()
	}

	return providerTable[p].name
}

// Candidate is one model of the list.
type Candidate struct {
	// Label names the candidate in decisions, spans and errors. Required, unique in the list.
	Label ident.Label
	// Provider of the client behind Model. Required.
	Provider Provider
	// ModelName is set on every attempt as the last option. Required, at most 256 bytes.
	ModelName string
	// Model is the client. Required. Give a client that takes an *http.Client a [Transport].
	Model llms.Model
	// Window is how long a request may be, in tokens. It decides who is asked after context_length. Default 0: unknown,
	// never asked then.
	Window int
	// CallOptions are appended to the caller's options at this candidate. Default none.
	CallOptions []llms.CallOption
	// Watched says that the client was given a [Transport]. Then a call that does not stream may be streamed inwardly, so
	// that the first-token and idle limits watch it. Default false: found out by the first call.
	Watched bool
	// Deaf says that the client ignores its context, so that an attempt has to be left behind at its limit. Default
	// false; mistral's client always is.
	Deaf bool
	// Lacks is what this model cannot take although its client can, such as CapImages. Default none.
	Lacks Capabilities
	// Bridge says how calls are brought into the client's form. Default: its zero value.
	Bridge Bridge
}

// candidate is a Candidate as New keeps it.
type candidate struct {
	Candidate

	traits

	client    client                  // without what the model lacks
	model     llms.CallOption         // the model's name
	around    middleware.ModelHandler // Config.Around applied, nil if there is none
	watched   atomic.Bool             // a Transport was seen
	abandoned atomic.Int64
}

const (
	maxCandidates = 32
	maxModelName  = 256
)

func newCandidate(c Candidate) *candidate {
	own := &candidate{Candidate: c, traits: providerTable[c.Provider], model: llms.WithModel(c.ModelName)}
	own.deaf = own.deaf || c.Deaf
	own.watched.Store(c.Watched)
	own.client = clientTable[c.Provider]
	own.client.can &^= c.Lacks
	own.CallOptions = append([]llms.CallOption(nil), c.CallOptions...)

	return own
}

func (c *Candidate) check() (field string, reason middleware.Reason, text string) {
	switch {
	case c.Label.IsZero():
		return "Label", middleware.ReasonInvalidLabel, "missing"
	case !c.Provider.valid():
		return "Provider", middleware.ReasonUnknownProvider, "not one of the providers"
	case c.ModelName == "":
		return "ModelName", middleware.ReasonInvalidConfig, "missing"
	case len(c.ModelName) > maxModelName:
		return "ModelName", middleware.ReasonInvalidConfig, "longer than 256 bytes"
	case isNil(c.Model):
		return "Model", middleware.ReasonInvalidConfig, "nil"
	case c.Window < 0:
		return "Window", middleware.ReasonInvalidConfig, "negative"
	case c.Lacks&^capPublic != 0:
		return "Lacks", middleware.ReasonInvalidConfig, "not made of the capabilities"
	case c.Bridge.MaxTokens < 0 || c.Bridge.MaxTokens > mostMaxTokens:
		return "Bridge.MaxTokens", middleware.ReasonInvalidLimit, "outside of 0 to 1048576"
	}
	for _, o := range c.CallOptions {
		if o == nil {
			return "CallOptions", middleware.ReasonInvalidConfig, "holds a nil option"
		}
	}

	return "", 0, ""
}

// isNil also finds the nil pointer in an interface that a failed constructor leaves behind.
func isNil(m llms.Model) bool {
	if m == nil {
		return true
	}
	v := reflect.ValueOf(m)

	return v.Kind() == reflect.Pointer && v.IsNil()
}

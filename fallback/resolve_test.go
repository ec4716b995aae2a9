package fallback_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tmc/langchaingo/llms"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/fallback/anthropic"
	"github.com/interlock-go/interlock/fallback/cohere"
	"github.com/interlock-go/interlock/fallback/googleai"
	"github.com/interlock-go/interlock/fallback/mistral"
	"github.com/interlock-go/interlock/fallback/ollama"
	"github.com/interlock-go/interlock/fallback/openai"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/middleware"
)

// names of test providers are unique, because the registry belongs to the program.
var registrations atomic.Int64

func register(tb testing.TB, r fallback.Registration) string {
	tb.Helper()
	name := fmt.Sprintf("test-%d", registrations.Add(1))
	if err := fallback.Register(name, r); err != nil {
		tb.Fatal(err)
	}

	return name
}

// factory makes fakes and notes what it was given.
func factory(given *[]string) fallback.Registration {
	return fallback.Registration{Provider: fallback.ProviderOther, New: func(cfg fallback.ClientConfig) (llms.Model, error) {
		*given = append(*given, cfg.ModelName+" "+cfg.Key.Reveal())

		return does(says(cfg.ModelName)), nil
	}}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	var a, b, c []string
	nameA, nameB := register(t, factory(&a)), register(t, factory(&b))
	keyless := factory(&c)
	keyless.Keyless = true
	nameC := register(t, keyless)
	candidates, skipped, err := fallback.Resolve(
		[]string{nameA + ":m1", "nobody:m", nameB + ":ft:m/2@x", nameA + ":m3", "malformed", nameC + ":m4"},
		fallback.Keys{Of: map[string]fallback.Key{nameA: fallback.NewKey("key-a"), nameB: fallback.NewKey("key-b"), nameC: fallback.NewKey("key-c")}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range candidates {
		got = append(got, c.Label.String()+" "+c.ModelName)
	}
	if d := cmp.Diff([]string{nameA + " m1", nameB + " ft:m/2@x", nameA + "-2 m3", nameC + " m4"}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([][]string{{"m1 key-a", "m3 key-a"}, {"ft:m/2@x key-b"}, {"m4 "}}, [][]string{a, b, c}); d != "" {
		t.Errorf("who got which key: %s", d)
	}
	if len(skipped) != 2 || skipped[0].Index != 1 || skipped[0].Decision.Reason != middleware.ReasonUnknownProvider ||
		skipped[1].Index != 4 || skipped[1].Decision.Reason != middleware.ReasonInvalidConfig {
		t.Errorf("skipped %+v", skipped)
	}
	for _, s := range skipped {
		if d := s.Decision; d.Component != middleware.ComponentFallback || d.Verdict != middleware.VerdictAbstain || d.Outcome != middleware.OutcomeSkipped {
			t.Errorf("decision %+v", d)
		}
	}
	want(t, build(t, fallback.Config{Candidates: candidates}), "m1")
}

func TestResolveOneKey(t *testing.T) {
	t.Parallel()
	var given []string
	name := register(t, factory(&given))
	all := fallback.Keys{All: fallback.NewKey(secret)}
	if _, _, err := fallback.Resolve([]string{name + ":m1", name + ":m2"}, all); err != nil || len(given) != 2 || given[1] != "m2 "+secret {
		t.Errorf("%q, %v", given, err)
	}
	given = nil
	for _, specs := range [][]string{{name + ":m1", "other:m"}, {name + ":m1", "malformed"}, {"Test:m", "test:m"}} {
		candidates, _, err := fallback.Resolve(specs, all)
		reasonIs(t, err, middleware.ReasonKeyAmbiguous)
		if candidates != nil || given != nil || err.Error() != "interlock: fallback: keys: key_ambiguous" {
			t.Errorf("%q: %v, %q", specs, err, given)
		}
	}
	both := fallback.Keys{All: fallback.NewKey(secret), Of: map[string]fallback.Key{name: fallback.NewKey("x")}}
	_, _, err := fallback.Resolve([]string{name + ":m1"}, both)
	reasonIs(t, err, middleware.ReasonKeyAmbiguous)
}

func TestResolveNothing(t *testing.T) {
	t.Parallel()
	var given []string
	good := register(t, factory(&given))
	failing := register(t, fallback.Registration{Provider: fallback.ProviderOther, New: func(fallback.ClientConfig) (llms.Model, error) {
		return nil, errSecret
	}})
	empty := register(t, fallback.Registration{Provider: fallback.ProviderOther, New: func(fallback.ClientConfig) (llms.Model, error) {
		return (*fake)(nil), nil
	}})
	panicking := register(t, fallback.Registration{Provider: fallback.ProviderOther, New: func(fallback.ClientConfig) (llms.Model, error) {
		panic(secret)
	}})
	twice := register(t, factory(&given))
	if err := fallback.Register(twice, factory(&given)); !errors.Is(err, middleware.ReasonDuplicateLabel) {
		t.Errorf("registered twice: %v", err)
	}
	keys := fallback.Keys{Of: map[string]fallback.Key{}}
	for _, name := range []string{failing, empty, panicking, twice} {
		keys.Of[name] = fallback.NewKey(secret)
	}
	many := make([]string, 33)
	for i := range many {
		many[i] = good + ":m"
	}
	for _, tc := range []struct {
		specs []string
		want  string
	}{
		{nil, "specs: no_candidate"},
		{many, "specs: more than 32"},
		{[]string{secret + ":m"}, "specs[0]: unknown_provider"},
		{[]string{secret}, "specs[0]: invalid_config"},
		{[]string{good + ":"}, "specs[0]: invalid_config"},
		{[]string{good + ":a b"}, "specs[0]: invalid_config"},
		{[]string{good + ":a\n"}, "specs[0]: invalid_config"},
		{[]string{good + ":a?key=" + secret}, "specs[0]: invalid_config"},
		{[]string{good + ":../" + secret}, "specs[0]: invalid_config"},
		{[]string{good + ":" + strings.Repeat("m", 257)}, "specs[0]: invalid_config"},
		{[]string{good + ":m"}, "specs[0]: key_missing"},
		{[]string{failing + ":m"}, "specs[0]: invalid_config"},
		{[]string{empty + ":m"}, "specs[0]: invalid_config"},
		{[]string{panicking + ":m"}, "specs[0]: invalid_config"},
		{[]string{twice + ":m"}, "specs[0]: duplicate_label"},
		{[]string{good + ":m", secret + ":m"}, "specs[0]: key_missing, specs[1]: unknown_provider"},
	} {
		candidates, _, err := fallback.Resolve(tc.specs, keys)
		if candidates != nil || err == nil || err.Error() != "interlock: fallback: "+tc.want {
			t.Errorf("%q: %v", tc.specs, err)

			continue
		}
		contentFree(t, err)
	}
	if given != nil {
		t.Errorf("clients were made: %q", given)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	var given []string
	good := factory(&given)
	for field, r := range map[string]fallback.Registration{
		"Provider": {New: good.New},
		"New":      {Provider: fallback.ProviderOpenAI},
	} {
		if err := fallback.Register("test-bad", r); err == nil || !strings.HasPrefix(err.Error(), "interlock: fallback: "+field+": ") {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, name := range []string{"", "Groq", "a:b", "-a", strings.Repeat("a", 49)} {
		err := fallback.Register(name, good)
		reasonIs(t, err, middleware.ReasonInvalidLabel)
	}
	for _, name := range []string{anthropic.Name, cohere.Name, googleai.Name, mistral.Name, ollama.Name, openai.Name} {
		if !strings.Contains(strings.Join(fallback.Registered(), " "), name) {
			t.Errorf("%s is not registered", name)
		}
	}
}

func TestKeysShowNothing(t *testing.T) {
	t.Parallel()
	key := fallback.NewKey(secret)
	keys := fallback.Keys{All: key, Of: map[string]fallback.Key{"a": key}}
	config := fallback.ClientConfig{Key: key}
	text, err := json.Marshal(map[string]any{"keys": keys, "config": key})
	if err != nil {
		t.Fatal(err)
	}
	all := fmt.Sprintf("%v %+v %#v %s %q %x %v %+v %#v %s", keys, keys, keys, key, key, key, config, config, config, text)
	if strings.Contains(all, secret) || strings.Contains(all, fmt.Sprintf("%x", secret)) {
		t.Errorf("a key is shown: %s", all)
	}
	if key.Reveal() != secret || key.IsZero() || !(fallback.Key{}).IsZero() {
		t.Error("the key is not the key")
	}
}

// Resolved candidates of all that take an *http.Client have a Transport, send their own key, and nobody else's.
func TestResolvedClients(t *testing.T) {
	t.Parallel()
	status503 := misbehave.Replies(misbehave.Reply{Status: 429, Headers: map[string]string{"Retry-After": "7"}})
	for p, at := range map[fallback.Provider]func(string) fallback.Factory{
		fallback.ProviderOpenAI: openai.At, fallback.ProviderAnthropic: anthropic.At,
	} {
		srv, err := misbehave.Start(misbehave.Config{Script: status503})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		name := register(t, fallback.Registration{Provider: p, New: at(srv.URL() + "/v1")})
		candidates, _, err := fallback.Resolve([]string{name + ":m"}, fallback.Keys{All: fallback.NewKey(secret)})
		if err != nil {
			t.Fatal(err)
		}
		var seen fallback.AttemptFailure
		_, err = text(t.Context(), build(t, fallback.Config{Candidates: candidates, Classify: func(f fallback.AttemptFailure) fallback.Class {
			seen = f

			return fallback.ClassInvalidRequest
		}}))
		if err == nil || seen.Status != 429 || seen.RetryAfter.Seconds() != 7 {
			t.Errorf("%v: %v, %+v", p, err, seen)
		}
		contentFree(t, err)
		r := srv.Requests()[0]
		if h := r.Header(); r.Model != "m" || (h.Get("Authorization") != "Bearer "+secret && h.Get("X-Api-Key") != secret) {
			t.Errorf("%v: model %q, header %v", p, r.Model, h)
		}
	}
}

// A redirect would carry keys in headers of their own to whomever it names.
func TestResolvedClientsFollowNoRedirect(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	srv := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer srv.Close()
	for p, at := range map[fallback.Provider]func(string) fallback.Factory{
		fallback.ProviderOpenAI: openai.At, fallback.ProviderAnthropic: anthropic.At, fallback.ProviderOllama: ollama.At,
	} {
		name := register(t, fallback.Registration{Provider: p, New: at(srv.URL)})
		candidates, _, err := fallback.Resolve([]string{name + ":m"}, fallback.Keys{All: fallback.NewKey(secret)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := text(t.Context(), build(t, fallback.Config{Candidates: candidates})); err == nil {
			t.Errorf("%v: an answer", p)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if n := stolen.Load(); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

// The core is built without any provider's client; each package below brings in its own alone.
func TestCorePullsNoClient(t *testing.T) {
	t.Parallel()
	deps := func(pkg string) []string {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}

		return strings.Fields(string(out))
	}
	core := deps(".")
	t.Logf("%-12s %3d packages outside of the standard library", "fallback", len(core))
	for _, d := range core {
		own := strings.HasPrefix(d, "github.com/interlock-go/interlock/")
		known := strings.HasPrefix(d, "github.com/sony/gobreaker/v2") || strings.HasPrefix(d, "github.com/cenkalti/backoff/v5") ||
			d == "github.com/tmc/langchaingo/llms" || d == "github.com/pkoukk/tiktoken-go" ||
			strings.HasPrefix(d, "github.com/dlclark/regexp2") || d == "github.com/google/uuid"
		if !own && !known {
			t.Errorf("the core needs %s", d)
		}
	}
	clients := map[string]string{}
	for _, p := range []string{openai.Name, anthropic.Name, googleai.Name, mistral.Name, ollama.Name, cohere.Name} {
		clients["github.com/tmc/langchaingo/llms/"+p] = p
	}
	for _, p := range clients {
		with := deps("./" + p)
		t.Logf("%-12s %3d", p, len(with))
		for _, d := range with {
			if owner, client := clients[d]; client && owner != p {
				t.Errorf("%s pulls %s in", p, owner)
			}
		}
	}
}

func ExampleResolve() {
	candidates, skipped, err := fallback.Resolve(
		[]string{"openai:gpt-4o", "anthropic:claude-sonnet-4-5", "openai:gpt-4o-mini", "nobody:model"},
		fallback.Keys{Of: map[string]fallback.Key{"openai": fallback.NewKey("…"), "anthropic": fallback.NewKey("…")}},
	)
	for _, c := range candidates {
		fmt.Println(c.Label, c.Provider, c.ModelName)
	}
	for _, s := range skipped {
		fmt.Println("skipped", s.Index, s.Decision.Reason.String())
	}
	fmt.Println(err)
	// Output:
	// openai openai gpt-4o
	// anthropic anthropic claude-sonnet-4-5
	// openai-2 openai gpt-4o-mini
	// skipped 3 unknown_provider
	// <nil>
}

func ExampleResolve_nothing() {
	_, _, err := fallback.Resolve([]string{"openai:gpt-4o", "nobody:model"}, fallback.Keys{})
	fmt.Println(err)
	// Output: interlock: fallback: specs[0]: key_missing, specs[1]: unknown_provider
}

func ExampleRegister() {
	err := fallback.Register("groq", fallback.Registration{
		Provider: fallback.ProviderOpenAI, New: openai.At("https://api.groq.com/openai/v1"),
	})
	fmt.Println(err)
	candidates, _, err := fallback.Resolve([]string{"groq:llama-3.3-70b"}, fallback.Keys{All: fallback.NewKey("…")})
	fmt.Println(len(candidates), err)
	// Output:
	// <nil>
	// 1 <nil>
}

// FuzzResolve: whatever the spec, it is resolved or skipped with a code, and the error holds nothing of it.
func FuzzResolve(f *testing.F) {
	var given []string
	name := register(f, factory(&given))
	for _, seed := range []string{"", ":", name, name + ":", name + ":m", name + ":m:x", name + ": m", "a:b", name + ":\x00", name + ":é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		given = nil
		candidates, skipped, err := fallback.Resolve([]string{spec}, fallback.Keys{All: fallback.NewKey(secret)})
		if len(candidates)+len(skipped) != 1 || (err != nil) != (len(skipped) == 1) || len(given) != len(candidates) {
			t.Fatalf("%d candidates, %d skipped, %v", len(candidates), len(skipped), err)
		}
		if err != nil {
			if _, known := middleware.ParseReason(strings.TrimPrefix(err.Error(), "interlock: fallback: specs[0]: ")); !known {
				t.Fatal(err)
			}

			return
		}
		if _, err := fallback.New(fallback.Config{Candidates: candidates}); err != nil {
			t.Fatal(err)
		}
	})
}

package clientprints_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/tmc/langchaingo/callbacks"
	"github.com/tmc/langchaingo/httputil"
	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/anthropic"
	"github.com/tmc/langchaingo/llms/cloudflare"
	"github.com/tmc/langchaingo/llms/ernie"
	"github.com/tmc/langchaingo/llms/maritaca"
	"github.com/tmc/langchaingo/llms/ollama"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/interlock-go/interlock/fallback"
	interlockanthropic "github.com/interlock-go/interlock/fallback/anthropic"
	interlockollama "github.com/interlock-go/interlock/fallback/ollama"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/internal/misbehave"
	"github.com/interlock-go/interlock/otelx/otelxtest"
)

var canary = otelxtest.NewCanary(14)

// actVariable names the act that this process plays instead of the tests.
const actVariable = "CLIENTPRINTS_ACT"

func TestMain(m *testing.M) {
	name := os.Getenv(actVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	act, ok := acts()[name]
	if !ok {
		os.Exit(unknownAct)
	}
	fmt.Println(name) // standard output is heard
	if err := act(); err != nil {
		os.Exit(failedAct) // without a word: the act is tested for what others print
	}
}

const (
	unknownAct = 90
	failedAct  = 91
)

func acts() map[string]func() error {
	return map[string]func() error{
		"anthropic, unknown event":             func() error { return ask(anthropicClient(http.DefaultTransport)) },
		"anthropic, unknown event, transport":  func() error { return askGuarded(anthropicClient(&fallback.Transport{})) },
		"anthropic, unknown event, resolved":   resolved,
		"anthropic, legacy stream that breaks": legacy,
		"ernie, stream that breaks": func() error {
			return askErnie(io.MultiReader(strings.NewReader("data: {\"result\":\"x\"}\n"), broken{}))
		},
		"ernie, event that is no JSON": func() error { return askErnie(strings.NewReader("data: <" + canary.Phrase() + "\n")) },
		"ollama, address":              func() error { _, err := ollama.New(ollama.WithServerURL(badURL())); return err },
		"ollama, address, factory":     func() error { return refused(interlockollama.At(badURL())) },
		"cloudflare, address":          func() error { _, err := cloudflare.New(cloudflare.WithServerURL(badURL())); return err },
		"maritaca, address":            func() error { _, err := maritaca.New(maritaca.WithServerURL(badURL())); return err },
		"stored message": func() error {
			_ = llms.ChatMessageModel{Type: canary.Phrase()}.ToChatMessage()

			return nil
		},
		"log handler":  func() error { return askOpenAI(http.DefaultClient, openai.WithCallback(callbacks.LogHandler{})) },
		"debug client": func() error { return askOpenAI(httputil.JSONDebugClient) },
	}
}

// TestPrints are the prints that hold content and that the library cannot keep
// from happening. SECURITY.md lists them; a row whose secret is not printed any
// more has to go there, too.
func TestPrints(t *testing.T) {
	t.Parallel()
	for name, exit := range map[string]int{
		"anthropic, unknown event":             0,
		"anthropic, legacy stream that breaks": 0,
		"ernie, stream that breaks":            0,
		"ollama, address":                      1,
		"cloudflare, address":                  1,
		"maritaca, address":                    1,
		"stored message":                       0,
		"log handler":                          0,
		"debug client":                         0,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := play(t, name)
			if len(canary.Scan(name, out)) == 0 {
				t.Errorf("nothing is printed any more; take it out of SECURITY.md: %q", out)
			}
			if code != exit {
				t.Errorf("exit %d, want %d: %s", code, exit, out)
			}
		})
	}
}

// A client that ends the process does so whatever the guard around it says.
func TestPrintsThatEndTheProcess(t *testing.T) {
	t.Parallel()
	out, code := play(t, "ernie, event that is no JSON")
	if code != 1 || !bytes.Contains(out, []byte("failed to decode stream payload")) {
		t.Errorf("exit %d: the client does not end the process any more; take it out of SECURITY.md: %s", code, out)
	}
}

// TestFiltered are the same prints with what the library puts before the client.
func TestFiltered(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"anthropic, unknown event, transport", "anthropic, unknown event, resolved", "ollama, address, factory",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, code := play(t, name)
			for _, f := range canary.Scan(name, out) {
				t.Error(f)
			}
			if code != 0 || strings.TrimSpace(string(out)) != name {
				t.Errorf("exit %d: %q", code, out)
			}
		})
	}
}

// Every act is in one of the tests.
func TestEveryActIsPlayed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("prints_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range acts() {
		if bytes.Count(source, []byte(`"`+name+`"`)) < 2 {
			t.Errorf("%q is not played", name)
		}
	}
}

// play runs an act in a process of its own and returns what it wrote to
// standard output and standard error.
func play(t *testing.T, name string) ([]byte, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), actVariable+"="+name)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}

	return out, cmd.ProcessState.ExitCode()
}

var errAct = errors.New("it did not go as it should")

func badURL() string { return "http://%zz/" + canary.Phrase() }

// unknown is a whole answer between two events that the client does not know.
func unknown(misbehave.Request) misbehave.Reply {
	odd := fmt.Sprintf("event: x\ndata: {\"type\":\"x\",\"x\":%q}\n\n", canary.Word())
	event := func(data string) string { return "data: " + data + "\n\n" }
	body := odd + event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],`+
		`"usage":{"input_tokens":1,"output_tokens":1}}}`) + odd +
		event(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`) +
		event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"whole"}}`) +
		event(`{"type":"content_block_stop","index":0}`) +
		event(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`) +
		event(`{"type":"message_stop"}`)

	return misbehave.Reply{Raw: &misbehave.Raw{ContentType: "text/event-stream", Body: body}}
}

func serve() (*misbehave.Server, error) {
	return misbehave.Start(misbehave.Config{Script: misbehave.ScriptFunc(unknown)})
}

func anthropicClient(transport http.RoundTripper, options ...anthropic.Option) (llms.Model, error) {
	srv, err := serve() // it ends with the process
	if err != nil {
		return nil, err
	}

	return anthropic.New(append([]anthropic.Option{
		anthropic.WithBaseURL(srv.URL() + "/v1"), anthropic.WithToken("k"), anthropic.WithModel("m"),
		anthropic.WithHTTPClient(&http.Client{Transport: transport}),
	}, options...)...)
}

func ask(model llms.Model, err error) error {
	if err != nil {
		return err
	}
	text, err := llms.GenerateFromSinglePrompt(context.Background(), model, "q", streaming())
	if err != nil || text != "whole" {
		return errAct
	}

	return nil
}

func streaming() llms.CallOption {
	return llms.WithStreamingFunc(func(context.Context, []byte) error { return nil })
}

func askGuarded(client llms.Model, err error) error {
	if err != nil {
		return err
	}
	model, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{{
		Label: ident.MustLabel("primary"), Provider: fallback.ProviderAnthropic, ModelName: "m", Model: client,
	}}})

	return ask(model, err)
}

func resolved() error {
	srv, err := serve()
	if err != nil {
		return err
	}
	err = fallback.Register("local", fallback.Registration{
		Provider: fallback.ProviderAnthropic, New: interlockanthropic.At(srv.URL() + "/v1"),
	})
	if err != nil {
		return err
	}
	candidates, _, err := fallback.Resolve([]string{"local:m"}, fallback.Keys{All: fallback.NewKey("k")})
	if err != nil {
		return err
	}
	model, err := fallback.New(fallback.Config{Candidates: candidates})

	return ask(model, err)
}

// refused makes a candidate of an address that cannot be parsed.
func refused(factory fallback.Factory) error {
	if err := fallback.Register("local", fallback.Registration{Provider: fallback.ProviderOllama, New: factory, Keyless: true}); err != nil {
		return err
	}
	if _, _, err := fallback.Resolve([]string{"local:m"}, fallback.Keys{}); err == nil || len(canary.Scan("", otelxtest.Printed(err))) > 0 {
		return errAct
	}

	return nil
}

// broken is a body that breaks off, with an error that has something to say.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("read from " + canary.Phrase()) }

// answering is a transport that answers everything with one body.
type answering struct{ body io.Reader }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(a.body)}, nil
}

func legacy() error {
	event := strings.NewReader("data: {\"completion\":\"x\"}\n")
	client, err := anthropicClient(answering{io.MultiReader(event, broken{})}, anthropic.WithLegacyTextCompletionsAPI())
	if err != nil {
		return err
	}
	_, _ = llms.GenerateFromSinglePrompt(context.Background(), client, "q", streaming())

	return nil
}

func askErnie(body io.Reader) error {
	client, err := ernie.New(ernie.WithAccessToken("t"), ernie.WithHTTPClient(&http.Client{Transport: answering{body}}))
	if err != nil {
		return err
	}
	_, _ = llms.GenerateFromSinglePrompt(context.Background(), client, "q", streaming())

	return nil
}

func askOpenAI(web *http.Client, options ...openai.Option) error {
	srv, err := misbehave.Start(misbehave.Config{})
	if err != nil {
		return err
	}
	client, err := openai.New(slices.Concat([]openai.Option{
		openai.WithBaseURL(srv.URL() + "/v1"), openai.WithToken("k"), openai.WithModel("m"), openai.WithHTTPClient(web),
	}, options)...)
	if err != nil {
		return err
	}
	_, err = llms.GenerateFromSinglePrompt(context.Background(), client, canary.Phrase())

	return err
}

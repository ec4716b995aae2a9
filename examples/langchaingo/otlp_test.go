package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"

	"github.com/interlock-go/interlock/internal/otlpsink"
	"github.com/interlock-go/interlock/middleware"
)

func TestParseEndpoint(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]endpoint{
		"localhost:4317":             {address: "localhost:4317"},
		"grpc://collector.test:4317": {address: "collector.test:4317"},
		"[::1]:4317":                 {address: "[::1]:4317"},
		"http://127.0.0.1:4318":      {address: "127.0.0.1:4318", web: true},
		"http://127.0.0.1:4318/":     {address: "127.0.0.1:4318", web: true},
		"https://collector.test:443": {address: "collector.test:443", web: true, secure: true},
	} {
		if got, err := parseEndpoint(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ":", ":4317", "localhost", "localhost:", "localhost:0", "localhost:65536", "localhost:http", "localhost:-1", "localhost:+1",
		"::1:4317", "http://localhost", "http://", "ftp://localhost:21", "://localhost:1", "http://user:sekret@localhost:4318",
		"http://localhost:4318/v1/traces", "http://localhost:4318?key=sekret", "localhost:4317/sekret", "user@localhost:4317", "local host:4317",
		"localhost:4317#sekret", "HTTP://localhost:4318",
	} {
		got, err := parseEndpoint(text)
		if err == nil || got != (endpoint{}) {
			t.Errorf("%q was accepted: %+v", text, got)
		} else if strings.Contains(err.Error(), "sekret") {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
}

// Over both protocols the receiver gets the spans and metrics of the acts, and
// nothing of what was said in them.
func TestOTLP(t *testing.T) { //nolint:paralleltest // sets the environment and the working folder
	for _, protocol := range otlpsink.Protocols() { //nolint:paralleltest // as above
		t.Run(string(protocol), func(t *testing.T) {
			sandbox(t)
			sink := otlpsink.Start(t)
			target := sink.Endpoint(protocol)
			if protocol == otlpsink.HTTP {
				target = sink.URL(protocol)
			}
			for _, act := range []string{"provider-down", "loop"} {
				var stdout, stderr bytes.Buffer
				if code := run(t.Context(), []string{"-act", act, "-json", "-otlp", target}, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
					t.Fatalf("exit %d, standard error: %s", code, stderr.String())
				}
			}
			names := map[string]bool{}
			for _, s := range sink.Spans() {
				names[s.GetName()] = true
			}
			for _, want := range []string{
				"invoke_agent refund-desk", "interlock.fallback", "chat primary", "chat secondary", "execute_tool issue_refund",
				"interlock.admission", "interlock.watchdog",
			} {
				if !names[want] {
					t.Errorf("no span %q among %v", want, names)
				}
			}
			instruments := sink.Instruments()
			for _, want := range []string{"interlock.decisions", "interlock.watchdog.trips", "interlock.admission.state", "gen_ai.execute_tool.duration"} {
				if instruments[want] == nil {
					t.Errorf("no metric %q", want)
				}
			}
			if got := instances(sink); !slices.Equal(got, []string{"loop", "provider-down"}) {
				t.Errorf("instances %v", got)
			}
			for _, content := range []string{"damaged", "order 1001", "refund it", "I should look", "scripted"} {
				if bytes.Contains(sink.Raw(), []byte(content)) {
					t.Errorf("content left the process: %q", content)
				}
			}
			for _, m := range sink.Messages() {
				if m.Protocol != protocol {
					t.Errorf("a message came over %s", m.Protocol)
				}
			}
		})
	}
}

func instances(sink *otlpsink.Sink) (found []string) {
	for _, request := range sink.Traces() {
		for _, r := range request.GetResourceSpans() {
			i := slices.IndexFunc(r.GetResource().GetAttributes(), func(a *commonpb.KeyValue) bool { return a.GetKey() == "service.instance.id" })
			found = append(found, r.GetResource().GetAttributes()[i].GetValue().GetStringValue())
		}
	}
	slices.Sort(found)

	return slices.Compact(found)
}

// Whether somebody collects is no matter of the acts.
func TestOTLPUnreachable(t *testing.T) { //nolint:paralleltest // as TestOTLP
	sandbox(t)
	for name, target := range map[string]string{"grpc": unused(t), "http": "http://" + unused(t)} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"-act", "healthy", "-json", "-otlp", target}, &stdout, &stderr); code != 0 {
			t.Errorf("%s: exit %d", name, code)
		}
		if want := "langchaingo: warning: spans and metrics were not delivered: network\n"; stderr.String() != want {
			t.Errorf("%s: standard error %q, not %q", name, stderr.String(), want)
		}
		var r result
		if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || !r.OK {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// unused returns an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	return l.Addr().String()
}

// An endpoint that takes connections and never answers costs one limit: after it
// nothing is sent.
func TestOTLPSilent(t *testing.T) { //nolint:paralleltest // as TestOTLP
	sandbox(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // accepts by itself, in the backlog
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, e := range []endpoint{{address: l.Addr().String()}, {address: l.Addr().String(), web: true}} {
		c, err := newCollector(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		if c.limit != sendTimeout {
			t.Errorf("limit %v", c.limit)
		}
		c.limit = time.Millisecond
		if r, _, err := perform(t.Context(), chosen("healthy")[0], "", c); err != nil || !r.OK {
			t.Errorf("%+v, %v", r, err)
		}
		if reason := c.close(); reason != middleware.ReasonTimeout {
			t.Errorf("%+v: %s", e, reason)
		}
	}
}

func TestCollectorGivesUp(t *testing.T) {
	t.Parallel()
	c := &collector{limit: sendTimeout}
	sent := 0
	export := func(err error) func(context.Context) error {
		return func(ctx context.Context) error {
			sent++
			if _, limited := ctx.Deadline(); !limited {
				t.Error("an export without a limit")
			}

			return err
		}
	}
	c.send(t.Context(), export(nil))
	c.send(t.Context(), export(errors.New("sekret")))
	c.send(t.Context(), export(nil))
	if c.failure() != middleware.ReasonBadResponse || sent != 2 {
		t.Errorf("%s after %d exports", c.failure(), sent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c = &collector{limit: sendTimeout}
	c.send(ctx, export(errors.New("sekret")))
	if c.failure() != middleware.ReasonCanceled {
		t.Errorf("%s", c.failure())
	}
}

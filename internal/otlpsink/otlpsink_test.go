package otlpsink_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/interlock-go/interlock/internal/otlpsink"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What real exporters send arrives, as bytes and decoded, over both protocols.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, protocol := range otlpsink.Protocols() {
		t.Run(string(protocol), func(t *testing.T) {
			t.Parallel()
			sink := otlpsink.Start(t)
			export := sink.Export(t, protocol)
			ctx, parent := export.Traces.Tracer("test").Start(context.Background(), "parent")
			_, child := export.Traces.Tracer("test").Start(ctx, "child",
				trace.WithAttributes(attribute.String("phrase", "plainly written")))
			child.End()
			parent.End()
			counter, err := export.Metrics.Meter("test").Int64Counter("calls")
			if err != nil {
				t.Fatal(err)
			}
			counter.Add(ctx, 3)
			export.Shutdown(t)

			spans := sink.Spans()
			if len(spans) != 2 || spans[0].GetName() != "child" || !bytes.Equal(spans[0].GetParentSpanId(), spans[1].GetSpanId()) {
				t.Errorf("spans %v", spans)
			}
			if m := sink.Instruments()["calls"]; m.GetSum().GetDataPoints()[0].GetAsInt() != 3 {
				t.Errorf("metric %v", m)
			}
			for _, there := range []string{"plainly written", "calls", "parent", "Export", "v1/"} {
				if protocol == otlpsink.GRPC && there == "v1/" || protocol == otlpsink.HTTP && there == "Export" {
					continue
				}
				if !bytes.Contains(sink.Raw(), []byte(there)) {
					t.Errorf("%q is not in the bytes", there)
				}
			}
			for _, m := range sink.Messages() {
				if m.Protocol != protocol || len(m.Body) == 0 || len(m.Header) == 0 || m.Decoded == nil {
					t.Errorf("message %+v", m)
				}
			}
			if n := len(sink.Logs()); n != 0 {
				t.Errorf("%d logs", n)
			}
		})
	}
}

// What is no export request is refused and not kept.
func TestRefused(t *testing.T) {
	t.Parallel()
	sink := otlpsink.Start(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, tt := range []struct{ name, contentType, encoding, body string }{
		{"not protobuf", "application/json", "", "{}"},
		{"broken protobuf", "application/x-protobuf", "", "\xff\xff"},
		{"not gzip", "application/x-protobuf", "gzip", "plain"},
	} {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost,
			sink.URL(otlpsink.HTTP)+"/v1/traces", strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", tt.contentType)
		request.Header.Set("Content-Encoding", tt.encoding)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode < http.StatusBadRequest {
			t.Errorf("%s: status %d", tt.name, response.StatusCode)
		}
	}
	if n := len(sink.Messages()); n != 0 {
		t.Errorf("%d messages kept", n)
	}
}

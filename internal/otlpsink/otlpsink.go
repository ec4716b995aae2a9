package otlpsink

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metricspb "go.opentelemetry.io/proto/otlp/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Protocol is how the data travels.
type Protocol string

// The protocols.
const (
	GRPC Protocol = "grpc"
	HTTP Protocol = "http"
)

// Protocols returns both, for tables.
func Protocols() []Protocol { return []Protocol{GRPC, HTTP} }

// Message is one export request as it came.
type Message struct {
	Protocol Protocol
	// Path of the HTTP request, or the gRPC method.
	Path string
	// Header of the HTTP request, or the gRPC metadata: it leaves, too.
	Header map[string][]string
	// Body as it came, decompressed: the protobuf encoding.
	Body []byte
	// Decoded is one of the three export requests of the protocol.
	Decoded proto.Message
}

// Sink receives. See [Start].
type Sink struct {
	grpc, http string // addresses

	mu       sync.Mutex
	messages []Message
}

// Start listens for both protocols until the end of the test.
func Start(tb testing.TB) *Sink {
	tb.Helper()
	s := &Sink{}
	var serving sync.WaitGroup

	rpcListener, webListener := listen(tb), listen(tb)
	s.grpc, s.http = rpcListener.Addr().String(), webListener.Addr().String()
	rpc := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}))
	s.register(rpc)
	serving.Go(func() {
		if err := rpc.Serve(rpcListener); err != nil {
			tb.Errorf("otlpsink: gRPC: %v", err)
		}
	})

	web := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	serving.Go(func() {
		if err := web.Serve(webListener); !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("otlpsink: HTTP: %v", err)
		}
	})

	tb.Cleanup(func() {
		rpc.Stop()
		_ = web.Close()
		serving.Wait()
	})

	return s
}

func listen(tb testing.TB) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}

	return l
}

// Endpoint returns host:port of the receiver of p.
func (s *Sink) Endpoint(p Protocol) string {
	if p == HTTP {
		return s.http
	}

	return s.grpc
}

// URL returns the endpoint of p with its scheme.
func (s *Sink) URL(p Protocol) string { return "http://" + s.Endpoint(p) }

func (s *Sink) add(m Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages = append(s.messages, m)
}

// Messages returns everything that came so far, in order.
func (s *Sink) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.messages)
}

// Raw returns every byte that came so far: paths, headers and bodies.
func (s *Sink) Raw() []byte {
	var raw []byte
	for _, m := range s.Messages() {
		raw = append(raw, m.Path...)
		for k, v := range m.Header {
			raw = append(raw, "\n"+k+": "+strings.Join(v, ", ")...)
		}
		raw = append(raw, '\n')
		raw = append(raw, m.Body...)
		raw = append(raw, '\n')
	}

	return raw
}

// Traces returns the requests for traces that came so far.
func (s *Sink) Traces() []*collectortrace.ExportTraceServiceRequest {
	return decoded[*collectortrace.ExportTraceServiceRequest](s)
}

// Metrics returns the requests for metrics that came so far.
func (s *Sink) Metrics() []*collectormetrics.ExportMetricsServiceRequest {
	return decoded[*collectormetrics.ExportMetricsServiceRequest](s)
}

// Logs returns the requests for logs that came so far.
func (s *Sink) Logs() []*collectorlogs.ExportLogsServiceRequest {
	return decoded[*collectorlogs.ExportLogsServiceRequest](s)
}

func decoded[M proto.Message](s *Sink) []M {
	var all []M
	for _, m := range s.Messages() {
		if d, ok := m.Decoded.(M); ok {
			all = append(all, d)
		}
	}

	return all
}

// Spans returns the spans of all requests so far.
func (s *Sink) Spans() []*tracepb.Span {
	var spans []*tracepb.Span
	for _, request := range s.Traces() {
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				spans = append(spans, scope.GetSpans()...)
			}
		}
	}

	return spans
}

// Instruments returns the metrics of all requests so far; of several
// collections of one name the last.
func (s *Sink) Instruments() map[string]*metricspb.Metric {
	byName := make(map[string]*metricspb.Metric)
	for _, request := range s.Metrics() {
		for _, resource := range request.GetResourceMetrics() {
			for _, scope := range resource.GetScopeMetrics() {
				for _, m := range scope.GetMetrics() {
					byName[m.GetName()] = m
				}
			}
		}
	}

	return byName
}

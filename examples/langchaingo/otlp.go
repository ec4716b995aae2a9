package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/interlock-go/interlock/middleware"
)

// sendTimeout bounds one export, and so what an endpoint that does not answer
// can cost: after the first failure nothing is sent any more.
const sendTimeout = 5 * time.Second

// endpoint is where -otlp points to. The zero value is nowhere.
type endpoint struct {
	address string // host:port
	web     bool   // OTLP over HTTP, else gRPC
	secure  bool   // https
}

var errEndpoint = errors.New("-otlp takes host:port or grpc://host:port for gRPC, http://host:port or https://host:port for HTTP")

// parseEndpoint accepts nothing beside scheme, host and port: credentials belong
// in OTEL_EXPORTER_OTLP_HEADERS, and the paths are OTLP's own.
func parseEndpoint(text string) (endpoint, error) {
	scheme, address, found := strings.Cut(text, "://")
	if !found {
		scheme, address = "grpc", text
	}
	if strings.HasPrefix(scheme, "http") {
		address = strings.TrimSuffix(address, "/")
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return endpoint{}, errEndpoint
	}
	u, err := url.Parse("http://" + address)
	if err != nil || u.Host != address {
		return endpoint{}, errEndpoint
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return endpoint{}, errEndpoint
	}
	switch scheme {
	case "grpc":
		return endpoint{address: address}, nil
	case "http", "https":
		return endpoint{address: address, web: true, secure: scheme == "https"}, nil
	default:
		return endpoint{}, errEndpoint
	}
}

// collector sends the telemetry of all acts to one endpoint. It outlives the
// acts' providers, and keeps what goes wrong to itself: an act is not about
// whether somebody collects.
type collector struct {
	spans   sdktrace.SpanExporter
	metrics sdkmetric.Exporter
	web     *http.Transport // nil with gRPC
	limit   time.Duration   // of one export

	mu     sync.Mutex
	failed middleware.Reason // of the first failure
}

// newCollector returns nil for the zero endpoint. Nothing is dialled here.
func newCollector(ctx context.Context, e endpoint) (c *collector, err error) {
	if e == (endpoint{}) {
		return nil, nil //nolint:nilnil // no collector is none
	}
	c = &collector{limit: sendTimeout}
	// What the exporters say of an endpoint's answer would go to standard error, in the endpoint's words.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(c.fail))
	if !e.web {
		if c.spans, err = otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(e.address), otlptracegrpc.WithInsecure(),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{})); err != nil {
			return nil, errCollector
		}
		if c.metrics, err = otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(e.address), otlpmetricgrpc.WithInsecure(),
			otlpmetricgrpc.WithRetry(otlpmetricgrpc.RetryConfig{})); err != nil {
			return nil, errCollector
		}

		return c, nil
	}
	c.web = &http.Transport{Proxy: http.ProxyFromEnvironment} // closed at the end, so that no connection stays
	client := &http.Client{Transport: c.web}
	scheme := "http://"
	if e.secure {
		scheme = "https://"
	}
	if c.spans, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(scheme+e.address+"/v1/traces"),
		otlptracehttp.WithHTTPClient(client), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{})); err != nil {
		return nil, errCollector
	}
	if c.metrics, err = otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(scheme+e.address+"/v1/metrics"),
		otlpmetrichttp.WithHTTPClient(client), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{})); err != nil {
		return nil, errCollector
	}

	return c, nil
}

var errCollector = errors.New("-otlp: the exporters cannot be made from the settings in OTEL_EXPORTER_OTLP_ variables")

// send runs one export, unless an earlier one has failed.
func (c *collector) send(ctx context.Context, export func(ctx context.Context) error) {
	if c.failure() != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	if err := export(ctx); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		c.fail(err)
	}
}

func (c *collector) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == 0 {
		c.failed = sendReason(err)
	}
}

func (c *collector) failure() middleware.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()

	return c.failed
}

// sendReason is the code of a failed export, whose text has the address.
func sendReason(err error) middleware.Reason {
	var broken net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded:
		return middleware.ReasonTimeout
	case errors.Is(err, context.Canceled), status.Code(err) == codes.Canceled:
		return middleware.ReasonCanceled
	case errors.As(err, &broken), status.Code(err) == codes.Unavailable:
		return middleware.ReasonNetwork
	default:
		return middleware.ReasonBadResponse
	}
}

// close ends the exporters; what the acts had to send is sent by then. It
// returns what went wrong since the beginning, 0 for nothing.
func (c *collector) close() middleware.Reason {
	if c == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	if err := errors.Join(c.spans.Shutdown(ctx), c.metrics.Shutdown(ctx)); err != nil {
		c.fail(err)
	}
	if c.web != nil {
		c.web.CloseIdleConnections()
	}

	return c.failure()
}

// spanSender and metricSender lend the exporters to the providers of one act:
// shutting those down sends what is left and closes nothing.
type spanSender struct{ c *collector }

var _ sdktrace.SpanExporter = spanSender{}

// ExportSpans never fails for the provider, which would print why.
func (s spanSender) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	s.c.send(ctx, func(ctx context.Context) error { return s.c.spans.ExportSpans(ctx, spans) })

	return nil
}

// Shutdown leaves the exporter open.
func (s spanSender) Shutdown(context.Context) error { return nil }

type metricSender struct {
	sdkmetric.Exporter // temporality and aggregation are the exporter's

	c *collector
}

var _ sdkmetric.Exporter = metricSender{}

// Export never fails for the reader, which would print why.
func (s metricSender) Export(ctx context.Context, data *metricdata.ResourceMetrics) error {
	s.c.send(ctx, func(ctx context.Context) error { return s.c.metrics.Export(ctx, data) })

	return nil
}

// ForceFlush has nothing to do: exports are not kept.
func (s metricSender) ForceFlush(context.Context) error { return nil }

// Shutdown leaves the exporter open.
func (s metricSender) Shutdown(context.Context) error { return nil }

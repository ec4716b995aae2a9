// Package otlpsink is a receiver of OpenTelemetry data inside of a test: what a
// real exporter sends over the network is kept as the bytes that came off the
// wire and as decoded messages, over gRPC and over HTTP.
//
//	sink := otlpsink.Start(t)
//	export := sink.Export(t, otlpsink.GRPC)
//	tel, err := otelx.New(otelx.Config{TracerProvider: export.Traces, MeterProvider: export.Metrics})
//	…
//	export.Shutdown(t) // everything has arrived
//	spans, raw := sink.Spans(), sink.Raw()
//
// A program under test gets [Sink.Endpoint] instead of the providers. The
// receiver listens on the loopback device only and ends with the test; it is
// safe for concurrent use.
package otlpsink

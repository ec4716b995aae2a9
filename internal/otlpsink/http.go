package otlpsink

import (
	"compress/gzip"
	"io"
	"net/http"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxBody bounds a request, also after decompression.
const maxBody = 64 << 20

func (s *Sink) handler() http.Handler {
	mux := http.NewServeMux()
	for path, request := range map[string]proto.Message{
		"/v1/traces":  &collectortrace.ExportTraceServiceRequest{},
		"/v1/metrics": &collectormetrics.ExportMetricsServiceRequest{},
		"/v1/logs":    &collectorlogs.ExportLogsServiceRequest{},
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			body, err := read(r)
			if err != nil {
				http.Error(w, "unreadable", http.StatusBadRequest)

				return
			}
			message := request.ProtoReflect().New().Interface()
			if r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, message) != nil {
				http.Error(w, "not protobuf", http.StatusUnsupportedMediaType)

				return
			}
			s.add(Message{Protocol: HTTP, Path: r.RequestURI, Header: r.Header.Clone(), Body: body, Decoded: message})
			w.Header().Set("Content-Type", "application/x-protobuf") // an empty body is the empty response
		})
	}

	return mux
}

func read(r *http.Request) ([]byte, error) {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, err
		}
		body = z
	}

	return io.ReadAll(io.LimitReader(body, maxBody))
}

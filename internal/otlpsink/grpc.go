package otlpsink

import (
	"context"
	"errors"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

var errNoMessage = errors.New("otlpsink: not a protobuf message")

// received is a request with the bytes that it was decoded from.
type received struct {
	message proto.Message
	body    []byte
}

// rawCodec is the protobuf codec, but what it decodes into a received keeps its
// bytes.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	m, ok := v.(proto.Message)
	if !ok {
		return nil, errNoMessage
	}
	b, err := proto.Marshal(m)
	if err != nil {
		return nil, err
	}

	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	r, ok := v.(*received)
	if !ok {
		return errNoMessage
	}
	r.body = data.Materialize() // a copy

	return proto.Unmarshal(r.body, r.message)
}

// register adds the three services by hand: their generated handlers would
// decode into the message alone.
func (s *Sink) register(server *grpc.Server) {
	for _, service := range []struct {
		desc              grpc.ServiceDesc
		request, response proto.Message
	}{
		{collectortrace.TraceService_ServiceDesc, &collectortrace.ExportTraceServiceRequest{}, &collectortrace.ExportTraceServiceResponse{}},
		{
			collectormetrics.MetricsService_ServiceDesc,
			&collectormetrics.ExportMetricsServiceRequest{}, &collectormetrics.ExportMetricsServiceResponse{},
		},
		{collectorlogs.LogsService_ServiceDesc, &collectorlogs.ExportLogsServiceRequest{}, &collectorlogs.ExportLogsServiceResponse{}},
	} {
		path := "/" + service.desc.ServiceName + "/Export"
		export := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			r := received{message: service.request.ProtoReflect().New().Interface()}
			if err := decode(&r); err != nil {
				return nil, err
			}
			md, _ := metadata.FromIncomingContext(ctx)
			s.add(Message{Protocol: GRPC, Path: path, Header: md, Body: r.body, Decoded: r.message})

			return service.response, nil
		}
		server.RegisterService(&grpc.ServiceDesc{
			ServiceName: service.desc.ServiceName, HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: export}},
		}, nil)
	}
}

package auditsink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

// grpcCollector takes logs of OpenTelemetry by gRPC.
type grpcCollector struct {
	client *outbound.Client
	server outbound.Server
}

// Deliver sends a log for each record.
func (c *grpcCollector) Deliver(ctx context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	at, err := url.Parse(c.server.URL)
	if err != nil || strings.Trim(at.Path, "/") != "" {
		return &delivery.RefusedError{Why: "the url of a collector that is called by gRPC has scheme, host and port alone"}
	}
	// Credentials and the certificates come as they do for any server.
	named, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL, http.NoBody)
	if err != nil {
		return &delivery.RefusedError{Why: "the url cannot be read"}
	}
	secrets, problem, err := c.client.AddCredentials(ctx, c.server, named, "", nil)
	if err != nil || problem != "" {
		return orProblem(err, problem)
	}
	security, problem, err := c.client.Security(ctx, c.server)
	if err != nil || problem != "" {
		return orProblem(err, problem)
	}
	dialer, err := c.client.Dialer(ctx)
	if err != nil {
		return fmt.Errorf("preparing the call: %w", err)
	}
	connection, err := grpc.NewClient("passthrough:///"+outbound.HostPort(at),
		grpc.WithTransportCredentials(transportOf(at.Scheme, security)), grpc.WithUserAgent("fleetflow-hub-agent"), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithNoProxy(),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(delivery.Bounds().MaxBytes))))
	if err != nil {
		return fmt.Errorf("preparing the call: %w", err)
	}
	defer connection.Close()
	if sent := named.Header.Get("Authorization"); sent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", sent)
	}
	said, err := collectorlogs.NewLogsServiceClient(connection).Export(ctx, logsOf(records, uint64(max(c.client.Clock.Now().UnixNano(), 0))))
	if err != nil {
		return judgeCall(err, secrets)
	}
	return rejected(said, secrets)
}

func orProblem(err error, problem string) error {
	if err != nil {
		return fmt.Errorf("preparing the call: %w", err)
	}
	return errors.New(problem)
}

// transportOf returns how a collector is known.
func transportOf(scheme string, security *tls.Config) credentials.TransportCredentials {
	if strings.EqualFold(scheme, "http") {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(security)
}

// judgeCall returns what an error of a call comes to, as the protocol says.
func judgeCall(err error, secrets []string) error {
	said := status.Convert(err)
	why := fmt.Sprintf("the collector answers %s: %s", said.Code(), outbound.Words(said.Message(), delivery.MaxWords, secrets))
	for _, detail := range said.Details() {
		asked, is := detail.(*errdetails.RetryInfo)
		if after := asked.GetRetryDelay().AsDuration(); is && after > 0 && (said.Code() == codes.Unavailable || said.Code() == codes.ResourceExhausted) {
			return &delivery.RetryError{Why: why, After: after}
		}
	}
	switch said.Code() {
	case codes.InvalidArgument:
		return &delivery.RefusedError{Why: why, Content: true}
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented, codes.NotFound:
		return &delivery.RefusedError{Why: why}
	default:
		return errors.New(why)
	}
}

package controlplane

import (
	"context"
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/client-go/rest"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// httpProbe asks a health endpoint without TLS.
func httpProbe(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		return askHealth(ctx, http.DefaultClient, url)
	}
}

// apiServerProbe asks readyz the way clients ask: verifying the certificate, with a token.
func apiServerProbe(fleet *state.Fleet, cluster string) func(context.Context) error {
	url := fleet.APIServerURL(cluster) + "/readyz"
	config := &rest.Config{
		BearerToken: token(fleet, cluster, adminUser), TLSClientConfig: rest.TLSClientConfig{CAFile: fleet.CertificateAuthority(cluster)},
	}
	return func(ctx context.Context) error {
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			return fmt.Errorf("making a client to probe %s: %w", cluster, err)
		}
		defer client.CloseIdleConnections()
		return askHealth(ctx, client, url)
	}
}

func askHealth(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a probe: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// temporalProbe asks the health of the frontend service.
func temporalProbe(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return fmt.Errorf("connecting to Temporal: %w", err)
		}
		defer connection.Close()
		answer, err := healthpb.NewHealthClient(connection).Check(ctx,
			&healthpb.HealthCheckRequest{Service: "temporal.api.workflowservice.v1.WorkflowService"})
		if err != nil {
			return err
		}
		if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			return fmt.Errorf("temporal is %s", answer.GetStatus())
		}
		return nil
	}
}

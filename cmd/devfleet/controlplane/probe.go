package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
)

// httpProbe asks a health endpoint without TLS.
func httpProbe(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		return askHealth(ctx, http.DefaultClient, url, "")
	}
}

// apiServerProbe asks readyz the way clients ask: verifying the certificate, with a token.
func apiServerProbe(fleet *state.Fleet, cluster string) func(context.Context) error {
	url := fleet.APIServerURL(cluster) + "/readyz"
	authority, bearer := fleet.CertificateAuthority(cluster), token(fleet, cluster, adminUser)
	return func(ctx context.Context) error {
		pem, err := os.ReadFile(authority)
		if err != nil {
			return fmt.Errorf("reading the CA of %s: %w", cluster, err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return errors.New("no certificate in " + authority)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
		defer transport.CloseIdleConnections()
		return askHealth(ctx, &http.Client{Transport: transport}, url, bearer)
	}
}

func askHealth(ctx context.Context, client *http.Client, url, bearer string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a probe: %w", err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
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

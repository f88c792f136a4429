package temporalclient_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key, a.pem = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign makes a certificate from a template; the first one signs itself.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(time.Hour)
	parent := a.cert
	parentKey := a.key
	if parent == nil {
		parent = template
		parentKey = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pair makes a certificate for a name, as PEM.
func (a *authority) pair(name string) (certificate, key []byte) {
	_, private, certificate := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
	der, err := x509.MarshalECPrivateKey(private)
	require.NoError(a.t, err)
	return certificate, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// systemInfo answers what every client asks first.
type systemInfo struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (systemInfo) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

// frontend is a Temporal frontend that knows its clients by certificate and notes their API keys.
type frontend struct {
	address string
	mu      sync.Mutex
	config  *tls.Config
	keys    []string
}

// serve starts a frontend whose certificate is made out to a name that is not its address.
func serve(t *testing.T) *frontend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &frontend{address: listener.Addr().String()}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.config, nil
		}, NextProtos: []string{"h2"}})),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			incoming, _ := metadata.FromIncomingContext(ctx)
			f.mu.Lock()
			f.keys = incoming.Get("authorization")
			f.mu.Unlock()
			return handler(ctx, request)
		}))
	healthy := health.NewServer()
	healthy.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, healthy)
	workflowservice.RegisterWorkflowServiceServer(server, systemInfo{})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return f
}

// trust makes the frontend use a certificate of an authority and ask for one of it.
func (f *frontend) trust(t *testing.T, a *authority) {
	t.Helper()
	certificate, key := a.pair("temporal.test")
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}
}

func (f *frontend) lastKeys() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.keys
}

// try connects anew and asks for the frontend's health.
func try(t *testing.T, address string, security temporalclient.Security) error {
	t.Helper()
	e, err := temporalclient.New(temporalclient.Options{Address: address, Namespace: "default", Security: security})
	require.NoError(t, err)
	defer e.SDK.Close()
	return ask(t, e.SDK)
}

func ask(t *testing.T, c client.Client) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err
}

// files are those of a client; write replaces them as a rotated Secret does.
func files(t *testing.T) (temporalclient.Security, func(a *authority)) {
	t.Helper()
	dir := t.TempDir()
	s := temporalclient.Security{
		CAFile: filepath.Join(dir, "ca.crt"), CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key"), ServerName: "temporal.test",
	}
	return s, func(a *authority) {
		certificate, key := a.pair("hub-agent")
		for file, content := range map[string][]byte{s.CAFile: a.pem, s.CertFile: certificate, s.KeyFile: key} {
			require.NoError(t, os.WriteFile(file, content, 0o600))
		}
	}
}

func TestMutualTLSFollowsFilesThatAreRotated(t *testing.T) {
	server := serve(t)
	first := newAuthority(t, "first")
	second := newAuthority(t, "second")
	security, write := files(t)
	server.trust(t, first)
	write(first)
	e, err := temporalclient.New(temporalclient.Options{Address: server.address, Namespace: "default", Security: security})
	require.NoError(t, err)
	defer e.SDK.Close()
	require.NoError(t, ask(t, e.SDK))

	server.trust(t, second)
	require.Error(t, try(t, server.address, security), "neither side knows the other any more")
	write(second)
	require.NoError(t, try(t, server.address, security))
}

func TestAClientThatWasRefusedGetsInOnceItsFilesAreRight(t *testing.T) {
	server := serve(t)
	right := newAuthority(t, "right")
	wrong := newAuthority(t, "wrong")
	security, write := files(t)
	server.trust(t, right)
	write(wrong)
	e, err := temporalclient.New(temporalclient.Options{Address: server.address, Namespace: "default", Security: security})
	require.NoError(t, err)
	defer e.SDK.Close()
	require.Error(t, ask(t, e.SDK))
	write(right)
	require.Eventually(t, func() bool { return ask(t, e.SDK) == nil }, 2*time.Minute, 100*time.Millisecond, "the same client, without a restart")
}

func TestTheNameOfTheCertificateIsChecked(t *testing.T) {
	server := serve(t)
	a := newAuthority(t, "authority")
	server.trust(t, a)
	security, write := files(t)
	write(a)
	security.ServerName = "another.test"
	assert.ErrorContains(t, try(t, server.address, security), "another.test")
}

func TestTheAPIKeyIsReadForEveryCall(t *testing.T) {
	server := serve(t)
	a := newAuthority(t, "authority")
	server.trust(t, a)
	security, write := files(t)
	write(a)
	security.APIKeyFile = filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(security.APIKeyFile, []byte("one\n"), 0o600))
	e, err := temporalclient.New(temporalclient.Options{Address: server.address, Namespace: "default", Security: security})
	require.NoError(t, err)
	defer e.SDK.Close()
	require.NoError(t, ask(t, e.SDK))
	assert.Equal(t, []string{"Bearer one"}, server.lastKeys())
	require.NoError(t, os.WriteFile(security.APIKeyFile, []byte("two"), 0o600))
	require.NoError(t, ask(t, e.SDK))
	assert.Equal(t, []string{"Bearer two"}, server.lastKeys())
}

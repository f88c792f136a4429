//go:build integration

// Package principals proves on a real server of Temporal, with an authorizer and principals, who counts as the sender of an
// approval.
package principals

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	temporallog "go.temporal.io/sdk/log"
	"google.golang.org/grpc"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
	"github.com/fleetflow/fleetflow/test/devfleet/progress"
	"github.com/fleetflow/fleetflow/test/devfleet/toolchain"
	"github.com/fleetflow/fleetflow/worker"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

const (
	// patience is how long anything may take; what takes longer never comes.
	patience = time.Minute
	keyID    = "key"
)

// server is a Temporal whose authorizer reads JWTs that the key signs.
type server struct {
	*testing.T
	key     *ecdsa.PrivateKey
	address string
}

// startServer starts Temporal's own server, with its database in memory. With principals it stamps who sent what.
func startServer(t *testing.T, principals bool) *server {
	t.Helper()
	tools, err := toolchain.Ensure(t.Context(), "../..", progress.New(os.Stdout), toolchain.TemporalServer)
	require.NoError(t, err)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	keys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		point, err := key.PublicKey.Bytes()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]string{
			"kty": "EC", "crv": "P-256", "kid": keyID, "alg": "ES256", "use": "sig", "x": encode(point[1:33]), "y": encode(point[33:]),
		}}})
	}))
	t.Cleanup(keys.Close)
	dir := t.TempDir()
	ports := freePorts(t, 10)
	dynamic := filepath.Join(dir, "dynamic.yaml")
	require.NoError(t, os.WriteFile(dynamic, fmt.Appendf(nil, "frontend.enablePrincipalPropagation: [{value: %t}]\n", principals), 0o600))
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(configuration(keys.URL, dynamic, filepath.Join(dir, "temporal.db"), ports)), 0o600))
	output, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	process := exec.CommandContext(context.WithoutCancel(t.Context()), tools[toolchain.TemporalServer], "--config-file", file, "start",
		"--service", "frontend", "--service", "internal-frontend", "--service", "history", "--service", "matching")
	process.Stdout = output
	process.Stderr = output
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if t.Failed() {
			log, _ := os.ReadFile(output.Name())
			t.Logf("%s", log[max(0, len(log)-4000):])
		}
	})
	s := &server{T: t, key: key, address: fmt.Sprintf("127.0.0.1:%d", ports[0])}
	administrator := s.as("administrator", "temporal-system:admin")
	require.Eventually(t, func() bool { return worker.Ensure(t.Context(), administrator, wf.DefaultNamespace) == nil }, patience, 100*time.Millisecond)
	return s
}

func configuration(keys, dynamic, database string, ports []int) string {
	store := fmt.Sprintf(`{sql: {pluginName: sqlite, databaseName: %q, connectAddr: localhost, connectProtocol: tcp, connectAttributes: {mode: rwc, setup: "true"}, maxConns: 1, maxIdleConns: 1}}`, database)
	text := fmt.Sprintf(`
log: {stdout: true, level: warn}
persistence:
  defaultStore: sqlite
  visibilityStore: sqlite
  numHistoryShards: 1
  datastores:
    sqlite: %s
global:
  membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}
  authorization:
    jwtKeyProvider: {keySourceURIs: [%q]}
    authorizer: default
    claimMapper: default
clusterMetadata:
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation: {active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:%d"}}
dcRedirectionPolicy: {policy: noop}
archival: {history: {state: disabled}, visibility: {state: disabled}}
namespaceDefaults: {archival: {history: {state: disabled}, visibility: {state: disabled}}}
dynamicConfigClient: {filepath: %q, pollInterval: 10s}
services:
`, store, keys, ports[0], dynamic)
	for i, service := range []string{"frontend", "internal-frontend", "history", "matching"} {
		text += fmt.Sprintf("  %s: {rpc: {grpcPort: %d, membershipPort: %d, bindOnLocalHost: true}}\n", service, ports[2*i], ports[2*i+1])
	}
	return text
}

// freePorts finds ports that no other process listens on.
func freePorts(t *testing.T, count int) []int {
	t.Helper()
	ports := make([]int, count)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer listener.Close()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// token returns a JWT that names a user and the user's rights.
func (s *server) token(user string, rights ...string) string {
	s.Helper()
	header, err := json.Marshal(map[string]string{"alg": "ES256", "typ": "JWT", "kid": keyID})
	require.NoError(s, err)
	claims, err := json.Marshal(map[string]any{"sub": user, "permissions": rights, "exp": time.Now().Add(time.Hour).Unix()})
	require.NoError(s, err)
	signed := encode(header) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	require.NoError(s, err)
	return signed + "." + encode(append(r.FillBytes(make([]byte, 32)), v.FillBytes(make([]byte, 32))...))
}

// headers are those of each call of a client.
type headers interface {
	GetHeaders(context.Context) (map[string]string, error)
}

// bearer adds a token to each call, also over a connection that is not encrypted.
type bearer string

// GetHeaders returns the header.
func (b bearer) GetHeaders(context.Context) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// as returns the client of a user.
func (s *server) as(user string, rights ...string) client.Client {
	s.Helper()
	return s.connect(bearer(s.token(user, rights...)))
}

// connect returns a client with a token, or without one, that reconnects as the hub agent does. All clients claim to be ada.
func (s *server) connect(token headers) client.Client {
	s.Helper()
	c, err := client.NewLazyClient(client.Options{
		HostPort: s.address, Namespace: wf.DefaultNamespace, Identity: "ada", HeadersProvider: token,
		Logger:            temporallog.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{temporalclient.ReconnectSoon()}},
	})
	require.NoError(s, err)
	s.Cleanup(c.Close)
	return c
}

//go:build integration

package charts

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// gate stands before the fleet's Temporal, which speaks in plain text: it lets in who brings a certificate of its
// authority and its API key.
type gate struct {
	address string

	mu     sync.Mutex
	config *tls.Config
	key    string
	open   map[net.Conn]struct{}
}

// newGate opens a gate to a Temporal frontend.
func newGate(t *testing.T, temporal string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	g := &gate{address: listener.Addr().String(), open: map[net.Conn]struct{}{}}
	var plain, encrypted http.Protocols
	plain.SetUnencryptedHTTP2(true)
	encrypted.SetHTTP2(true)
	silent := log.New(io.Discard, "", 0)
	through := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: temporal}) },
		Transport: &http.Transport{Protocols: &plain}, ErrorLog: silent,
	}
	server := &http.Server{
		Protocols: &encrypted, ErrorLog: silent, ConnState: g.note,
		TLSConfig: &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.config, nil
		}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.mu.Lock()
			known := r.Header.Get("Authorization") == "Bearer "+g.key
			g.mu.Unlock()
			if !known {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			through.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with the server
	t.Cleanup(func() { _ = server.Close() })
	return g
}

// note keeps the connections that are open.
func (g *gate) note(connection net.Conn, state http.ConnState) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if state == http.StateClosed {
		delete(g.open, connection)
	} else {
		g.open[connection] = struct{}{}
	}
}

// trust makes the gate show a certificate of an authority and ask for one of it, and ends all connections.
func (g *gate) trust(t *testing.T, a *authority) {
	t.Helper()
	certificate, key := a.pair(t, "temporal.test")
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}}
	for connection := range g.open {
		_ = connection.Close() // the other side may have been faster
	}
}

// ask makes the gate want another API key.
func (g *gate) ask(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.key = key
}

// keep stores a Secret.
func (c *cluster) keep(t *testing.T, name string, data map[string][]byte) {
	t.Helper()
	secret := manifest(`{apiVersion: v1, kind: Secret, metadata: {name: ` + name + `, namespace: ` + namespace + `}}`)
	encoded := map[string]any{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	secret.Object["data"] = encoded
	c.apply(t, secret)
}

// certify stores a certificate of an authority as cert-manager does.
func (c *cluster) certify(t *testing.T, name string, a *authority) {
	t.Helper()
	certificate, key := a.pair(t, "hub-agent")
	c.keep(t, name, map[string][]byte{"ca.crt": a.pem, "tls.crt": certificate, "tls.key": key})
}

// TestInstalledAgentFollowsItsSecretsIntoTemporal has the agent of the rendered Deployment reach a real Temporal through
// mutual TLS and with an API key, from the Secrets that the values name, and renews both while it runs.
func TestInstalledAgentFollowsItsSecretsIntoTemporal(t *testing.T) {
	f := bringUp(t)
	hub := f.cluster(t, "hub")
	g := newGate(t, f.temporal)
	first := newAuthority(t, "first")
	second := newAuthority(t, "second")
	g.trust(t, first)
	g.ask("one")
	hub.certify(t, "temporal-tls", first)
	hub.keep(t, "temporal-cloud", map[string][]byte{"api-key": []byte("one\n")})
	agents := hub.install(t, "hub-agent", values{"temporal": values{
		"address": g.address, "tls": values{"enabled": true, "secretName": "temporal-tls", "serverName": "temporal.test"},
		"apiKey": values{"secretName": "temporal-cloud"},
	}})
	require.Len(t, agents, 1)
	a := agents[0]
	hub.run(t, a)
	decides := func(label string) {
		hub.apply(t, manifest(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: sealed}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, labelSelector: {matchLabels: {sealed: `+label+`}}}]
  policy: {placementType: PickAll}`))
		await(t, "a workflow decides on a placement", func() bool {
			return hub.condition(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "sealed", "ClusterResourcePlacementScheduled")
		})
	}
	await(t, "the agent is well", func() bool { return f.answers(t, a, "/readyz") })
	decides("first")

	g.trust(t, second)
	await(t, "the gate does not let the old certificate in", func() bool { return !f.answers(t, a, "/readyz/temporal") })
	hub.certify(t, "temporal-tls", second)
	hub.remount(t, a)
	await(t, "the new certificate is let in", func() bool { return f.answers(t, a, "/readyz/temporal") })
	decides("second")

	g.ask("two")
	await(t, "the gate does not take the old key", func() bool { return !f.answers(t, a, "/readyz/temporal") })
	hub.keep(t, "temporal-cloud", map[string][]byte{"api-key": []byte("two\n")})
	hub.remount(t, a)
	await(t, "the new key is taken", func() bool { return f.answers(t, a, "/readyz") })
	decides("third")

	hub.delete(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "sealed")
	await(t, "the placement is gone", func() bool {
		_, err := hub.get(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "sealed")
		return err != nil
	})
	f.requireNothingForbidden(t)
}

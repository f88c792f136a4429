package metricsource

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// sourcesWith asks sources with a Secret for the server at a url.
func sourcesWith(t *testing.T, at string, data map[string][]byte) *Sources {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-system", Name: "a", Labels: map[string]string{fleetflowv1alpha1.MetricSourceLabel: "a"},
		Annotations: map[string]string{fleetflowv1alpha1.MetricSourceURLAnnotation: at},
	}, Data: data}
	return NewSources(fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).WithObjects(secret).Build(), "fleet-system", outbound.Guard{AllowLoopback: true})
}

func sourceOf(kind fleetflowv1alpha1.MetricSourceType, url string, auth fleetflowv1alpha1.MetricSourceAuth) *fleetflowv1alpha1.MetricSource {
	source := &fleetflowv1alpha1.MetricSource{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	source.Spec = fleetflowv1alpha1.MetricSourceSpec{Type: kind, URL: url, Auth: &auth}
	return source
}

func in(key string) *fleetflowv1alpha1.MetricSourceSecret {
	return &fleetflowv1alpha1.MetricSourceSecret{Name: "a", Key: key}
}

func TestWebhooksAreSigned(t *testing.T) {
	var got http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
		_, _ = w.Write([]byte(`{"outcome": "Success"}`))
	}))
	t.Cleanup(server.Close)
	keys := [][]byte{[]byte("an old key of some length"), []byte("a new key of some length")}
	var text []string
	for _, key := range keys {
		text = append(text, "whsec_"+base64.StdEncoding.EncodeToString(key))
	}
	s := sourcesWith(t, server.URL, map[string][]byte{"keys": []byte(strings.Join(text, "\n") + "\n"), "wrong": []byte("whsec_?")})
	s.Clock = clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	auth := fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthHMAC, Secret: in("keys")}
	of := &fleetflowv1alpha1.ClusterStageAnalysisRun{ObjectMeta: metav1.ObjectMeta{Name: "web-17-canary-after", UID: "uid-2"}}
	q := Question{Of: of, Sequence: 7}
	q.Metric.Name = "smoke"
	q.Metric.Webhook = &fleetflowv1alpha1.WebhookCall{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "a"}}
	of.Spec.Attempt = 2
	reading, _, err := s.Ask(t.Context(), sourceOf(fleetflowv1alpha1.MetricSourceWebhook, server.URL, auth), q)
	require.NoError(t, err)
	assert.Equal(t, fleetflowv1alpha1.OutcomeSuccess, reading.Decided, reading.Problem)
	assert.Equal(t, "uid-2/2/smoke/7", got.Get("webhook-id"))
	assert.Equal(t, "1700000000", got.Get("webhook-timestamp"))
	var want []string
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("uid-2/2/smoke/7.1700000000." + string(body)))
		want = append(want, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	assert.Equal(t, strings.Join(want, " "), got.Get("webhook-signature"), "either key of a change is good")

	auth.Secret = in("wrong")
	reading, _, err = s.Ask(t.Context(), sourceOf(fleetflowv1alpha1.MetricSourceWebhook, server.URL, auth), q)
	require.NoError(t, err)
	assert.Contains(t, reading.Problem, "is not whsec_ and base64")
}

// newPair is a certificate that vouches for itself, with its key, in PEM.
func newPair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	of, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: of})
}

func TestTheAuthoritiesOfASourceMayBeInAConfigMap(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`))
	}))
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	public := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "authorities"}, Data: map[string]string{"ca.crt": ca, "text": "none"}}
	s := NewSources(fixture.NewClientBuilder(fixture.Scheme(t, corev1.AddToScheme)).WithObjects(public).Build(), "fleet-system", outbound.Guard{AllowLoopback: true})
	q := Question{}
	q.Metric.Prometheus = &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "a"}, Query: "up"}
	source := sourceOf(fleetflowv1alpha1.MetricSourcePrometheus, server.URL, fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthNone})
	ask := func() string {
		reading, _, err := s.Ask(t.Context(), source, q)
		require.NoError(t, err)
		return reading.Problem
	}
	assert.Contains(t, ask(), "certificate", "the authority is not one that this machine trusts")
	for sentence, test := range map[string]struct{ name, key, asked, reason string }{
		"a ConfigMap without a label": {name: "authorities", key: "ca.crt"},
		"one that is not there":       {"none", "ca.crt", "there is no ConfigMap none in namespace fleet-system", "ConfigMapNotFound"},
		"one without the key":         {"authorities", "ca", "ConfigMap authorities has no key ca", "ConfigMapNotFound"},
		"a text that is no PEM":       {"authorities", "text", "ConfigMap authorities has no certificate in PEM", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			source.Spec.TLS = &fleetflowv1alpha1.MetricSourceTLS{CAConfigMap: &fleetflowv1alpha1.MetricSourceConfigMap{Name: test.name, Key: test.key}}
			assert.Equal(t, test.asked, ask())
			problem, err := s.Check(t.Context(), source)
			require.NoError(t, err)
			if test.reason == "" {
				assert.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, test.reason, problem.Reason)
		})
	}
}

func TestACertificateIsShown(t *testing.T) {
	shown := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = len(r.TLS.PeerCertificates)
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}`))
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	certificate, key := newPair(t)
	_, other := newPair(t)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	s := sourcesWith(t, server.URL, map[string][]byte{"tls.crt": certificate, "tls.key": key, "other.key": other, "ca.crt": ca})
	q := Question{}
	q.Metric.Prometheus = &fleetflowv1alpha1.PrometheusQuery{SourceRef: fleetflowv1alpha1.MetricSourceReference{Name: "a"}, Query: "up"}
	auth := fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthClientCert, Secret: in("tls.crt"), PrivateKey: in("tls.key")}
	source := sourceOf(fleetflowv1alpha1.MetricSourcePrometheus, server.URL, auth)
	source.Spec.TLS = &fleetflowv1alpha1.MetricSourceTLS{CASecret: in("ca.crt")}
	reading, _, err := s.Ask(t.Context(), source, q)
	require.NoError(t, err)
	assert.Empty(t, reading.Problem)
	assert.Equal(t, 1, shown)

	source.Spec.Auth.PrivateKey = in("other.key")
	reading, _, err = s.Ask(t.Context(), source, q)
	require.NoError(t, err)
	assert.Contains(t, reading.Problem, "are no pair")

	source.Spec.Auth.PrivateKey = in("missing")
	problem, err := s.Check(t.Context(), source)
	require.NoError(t, err)
	require.NotNil(t, problem, "before any call")
	assert.Equal(t, fleetflowv1alpha1.ReasonSecretNotFound, problem.Reason)
}

// A writer of sources may delete a source and create one of the same name, with the address of another server.
func TestACredentialIsSentWhereItsSecretSays(t *testing.T) {
	for sentence, test := range map[string]struct {
		given, url string
		sent       bool
	}{
		"as it says":                  {"https://a.example:9090", "https://a.example:9090", true},
		"below it":                    {"https://a.example:9090", "https://a.example:9090/prometheus", true},
		"below its path":              {"https://a.example/prometheus", "https://a.example/prometheus/a", true},
		"its path, with a slash":      {"https://a.example/prometheus/", "https://a.example/prometheus", true},
		"the port of the scheme":      {"https://a.example:443", "https://a.example", true},
		"capital letters":             {"HTTPS://A.example", "https://a.EXAMPLE", true},
		"nothing is said":             {"", "https://a.example", false},
		"another host":                {"https://a.example", "https://b.example", false},
		"a host that begins like it":  {"https://a.example", "https://a.example.b.example", false},
		"another port":                {"https://a.example:9090", "https://a.example:9091", false},
		"without encryption":          {"https://a.example:9090", "http://a.example:9090", false},
		"another path":                {"https://a.example/prometheus", "https://a.example/mine", false},
		"a path that begins like it":  {"https://a.example/prometheus", "https://a.example/prometheus2", false},
		"a path that leads out":       {"https://a.example/prometheus", "https://a.example/prometheus/../mine", false},
		"a user before the host":      {"https://a.example", "https://a.example@b.example", false},
		"a host alone":                {"a.example", "https://a.example", false},
		"a scheme alone":              {"https://", "https://a.example", false},
		"what it says cannot be read": {"https://a.example:port", "https://a.example", false},
	} {
		s := sourcesWith(t, test.given, map[string][]byte{"token": []byte("s3cr3t")})
		source := sourceOf(fleetflowv1alpha1.MetricSourcePrometheus, test.url, fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBearer, Secret: in("token")})
		request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		_, problem, err := s.AddCredentials(t.Context(), serverOf(source), request, "", nil)
		require.NoError(t, err)
		assert.Equal(t, test.sent, request.Header.Get("Authorization") != "", sentence)
		assert.Equal(t, test.sent, problem == "", sentence)
		found, err := s.Check(t.Context(), source)
		require.NoError(t, err)
		assert.Equal(t, test.sent, found == nil, sentence)
		if found != nil {
			assert.Equal(t, fleetflowv1alpha1.ReasonSecretNotForURL, found.Reason)
			assert.Contains(t, found.Text, "by the annotation fleetflow.io/metric-source-url with the beginning of "+test.url)
		}
	}
}

package informer

import (
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// AskOnce has a client of this configuration ask once, where client-go would ask ten times, a second apart: a request whose
// connection is closed before the answer. What asks has pauses of its own that become longer, and thousands of agents must not ask a load
// balancer each second that has no API server behind it.
func AskOnce(config *rest.Config) {
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return onceTransport{inner} })
}

// onceTransport makes an error of a closed connection one that client-go does not take for such.
type onceTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t onceTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request) //nolint:bodyclose // the caller closes it
	if utilnet.IsProbableEOF(err) || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) {
		return nil, closedError{}
	}
	return response, err
}

// WrappedRoundTripper returns the transport that this one is around, for what closes idle connections.
func (t onceTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

// closedError hides from client-go what has closed a connection: it judges by the type and by the words.
type closedError struct{}

// Error implements error.
func (e closedError) Error() string { return "the server closed the connection without an answer" }

package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// Client calls the servers that objects of one kind name, with credentials of Secrets that are labelled for these objects.
type Client struct {
	Caller
	// Live reads Secrets and ConfigMaps past every cache, from Namespace only.
	Live      client.Reader
	Namespace string
	Clock     clock.PassiveClock
	// Of is the word for the objects, as in "source"; Label has, on a Secret, the name of the one object that may use it, and URLAnnotation the
	// url of the server that a credential in it is for, or what that begins with.
	Of, Label, URLAnnotation string
}

// Server is one that an object names.
type Server struct {
	// Object is the name of the object.
	Object string
	URL    string
	Auth   *fleetflowv1alpha1.MetricSourceAuth
	TLS    *fleetflowv1alpha1.MetricSourceTLS
}

// credentials returns the values in Secrets by which the agent says to the server who it is.
func (s *Server) credentials() []fleetflowv1alpha1.MetricSourceSecret {
	if s.Auth == nil {
		return nil
	}
	var needed []fleetflowv1alpha1.MetricSourceSecret
	for _, of := range []*fleetflowv1alpha1.MetricSourceSecret{s.Auth.Secret, s.Auth.Username, s.Auth.PrivateKey} {
		if of != nil {
			needed = append(needed, *of)
		}
	}
	return needed
}

// Check returns why a server cannot be called; nil if it can, as far as that is known without calling it.
func (c *Client) Check(ctx context.Context, server Server) (*analysis.Problem, error) {
	for _, needed := range server.credentials() {
		if _, problem, err := c.credential(ctx, server, needed); err != nil || problem != nil {
			return problem, err
		}
	}
	if _, _, problem, err := c.readAuthorities(ctx, server); err != nil || problem != nil {
		return problem, err
	}
	why, err := c.Refuse(ctx, server.URL)
	if err != nil || why == "" {
		return nil, err
	}
	return &analysis.Problem{Reason: fleetflowv1alpha1.ReasonAddressRefused, Text: why}, nil
}

// Version tells the Secrets and the ConfigMap of a server, as they are now, from what they were.
func (c *Client) Version(ctx context.Context, server Server) (string, error) {
	needed := server.credentials()
	if server.TLS != nil && server.TLS.CASecret != nil {
		needed = append(needed, *server.TLS.CASecret)
	}
	var versions []string
	for _, of := range needed {
		var secret corev1.Secret
		if err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: of.Name}, &secret); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading Secret %s of %s %s: %w", of.Name, c.Of, server.Object, err)
		}
		versions = append(versions, string(secret.UID)+secret.ResourceVersion)
	}
	if server.TLS != nil && server.TLS.CAConfigMap != nil {
		var public corev1.ConfigMap
		name := server.TLS.CAConfigMap.Name
		if err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: name}, &public); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("reading ConfigMap %s of %s %s: %w", name, c.Of, server.Object, err)
		}
		versions = append(versions, string(public.UID)+public.ResourceVersion)
	}
	return strings.Join(versions, " "), nil
}

// Request is what is sent to a server.
type Request struct {
	// Path is below the server's url.
	Path, ContentType string
	Body              []byte
	Header            map[string]string
	// ID is that of the message, which a signature is about, too.
	ID string
}

// Post sends a request to a server. Without an answer there is a failure that says why; an error is trouble with the hub, or the end of the
// context.
func (c *Client) Post(ctx context.Context, server Server, sent Request, bounds Bounds) (*Answer, *Failure, error) {
	bounds.Of = "the " + c.Of
	target := server.URL
	if sent.Path != "" {
		var err error
		if target, err = url.JoinPath(server.URL, sent.Path); err != nil {
			return nil, &Failure{Text: "the url cannot be read"}, nil
		}
	}
	inTime, cancel := context.WithTimeout(ctx, bounds.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(inTime, http.MethodPost, target, bytes.NewReader(sent.Body))
	if err != nil {
		return nil, &Failure{Text: "the url cannot be read"}, nil
	}
	request.Header.Set("Content-Type", sent.ContentType)
	request.Header.Set("User-Agent", "fleetflow-hub-agent")
	for name, value := range sent.Header {
		request.Header.Set(name, value)
	}
	credentials, problem, err := c.AddCredentials(ctx, server, request, sent.ID, sent.Body)
	if err != nil || problem != "" {
		return nil, failureOf(problem), err
	}
	security, problem, err := c.Security(ctx, server)
	if err != nil || problem != "" {
		return nil, failureOf(problem), err
	}
	transport, err := c.Transport(ctx, security)
	if err != nil {
		return nil, nil, err
	}
	defer transport.CloseIdleConnections()
	answer, failure := Fetch(transport, request, bounds, credentials)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	return answer, failure, nil
}

func failureOf(problem string) *Failure {
	if problem == "" {
		return nil
	}
	return &Failure{Text: problem}
}

func textOf(problem *analysis.Problem) string {
	if problem == nil {
		return ""
	}
	return problem.Text
}

// AddCredentials says in a request who the agent is, and returns what must appear in no message. A certificate is shown by the transport.
func (c *Client) AddCredentials(ctx context.Context, server Server, request *http.Request, id string,
	body []byte) (credentials []string, problem string, err error) {
	auth := server.Auth
	if auth == nil || auth.Secret == nil || auth.Type == fleetflowv1alpha1.MetricSourceAuthClientCert {
		return nil, "", nil
	}
	value, refused, err := c.credential(ctx, server, *auth.Secret)
	if err != nil || refused != nil {
		return nil, textOf(refused), err
	}
	credential := strings.TrimSpace(string(value))
	switch auth.Type {
	case fleetflowv1alpha1.MetricSourceAuthBasic:
		username, problem, err := c.readUsername(ctx, server)
		if err != nil || problem != "" {
			return nil, problem, err
		}
		request.SetBasicAuth(username, credential)
		_, sent, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		return []string{sent, credential}, "", nil
	case fleetflowv1alpha1.MetricSourceAuthHMAC:
		keys := strings.Fields(credential)
		return keys, Sign(request, id, body, keys, c.Clock.Now()), nil
	default:
		request.Header.Set("Authorization", "Bearer "+credential)
		return []string{credential}, "", nil
	}
}

// readUsername reads the user's name of type Basic: what is sent is parted at its first colon.
func (c *Client) readUsername(ctx context.Context, server Server) (username, problem string, err error) {
	needed := server.Auth.Username
	if needed == nil {
		return "", "auth of type Basic needs a username", nil
	}
	value, refused, err := c.credential(ctx, server, *needed)
	if err != nil || refused != nil {
		return "", textOf(refused), err
	}
	if username = strings.TrimSpace(string(value)); strings.Contains(username, ":") {
		return "", fmt.Sprintf("the username in Secret %s has a colon", needed.Name), nil
	}
	return username, "", nil
}

// Security returns by which authority a server is known, and which certificate is shown to it.
func (c *Client) Security(ctx context.Context, server Server) (*tls.Config, string, error) {
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if server.TLS != nil {
		security.ServerName = server.TLS.ServerName
	}
	switch pem, of, refused, err := c.readAuthorities(ctx, server); {
	case err != nil || refused != nil:
		return nil, textOf(refused), err
	case of != "":
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(pem) {
			return nil, of + " has no certificate in PEM", nil
		}
	}
	if auth := server.Auth; auth != nil && auth.Type == fleetflowv1alpha1.MetricSourceAuthClientCert && auth.Secret != nil && auth.PrivateKey != nil {
		pair, problem, err := c.readCertificate(ctx, server)
		if err != nil || problem != "" {
			return nil, problem, err
		}
		security.Certificates = []tls.Certificate{pair}
	}
	return security, "", nil
}

// readCertificate reads the certificate that the agent shows to a server.
func (c *Client) readCertificate(ctx context.Context, server Server) (pair tls.Certificate, problem string, err error) {
	var pem [2][]byte
	for i, needed := range []fleetflowv1alpha1.MetricSourceSecret{*server.Auth.Secret, *server.Auth.PrivateKey} {
		value, refused, err := c.credential(ctx, server, needed)
		if err != nil || refused != nil {
			return pair, textOf(refused), err
		}
		pem[i] = value
	}
	if pair, err = tls.X509KeyPair(pem[0], pem[1]); err != nil {
		return pair, "the certificate and the private key of the " + c.Of + " are no pair in PEM", nil //nolint:nilerr // what is wrong with the pair may quote from it
	}
	return pair, "", nil
}

// readAuthorities reads the certificates of the authorities that may vouch for a server, and returns what has them; "" if the object
// names none.
func (c *Client) readAuthorities(ctx context.Context, server Server) (pem []byte, of string, problem *analysis.Problem, err error) {
	switch named := server.TLS; {
	case named == nil:
		return nil, "", nil, nil
	case named.CASecret != nil:
		pem, problem, err = c.ReadSecret(ctx, server.Object, *named.CASecret, &corev1.Secret{})
		return pem, "Secret " + named.CASecret.Name, problem, err
	case named.CAConfigMap != nil:
		pem, problem, err = c.readConfigMap(ctx, server.Object, *named.CAConfigMap)
		return pem, "ConfigMap " + named.CAConfigMap.Name, problem, err
	}
	return nil, "", nil, nil
}

func (c *Client) readConfigMap(ctx context.Context, object string,
	needed fleetflowv1alpha1.MetricSourceConfigMap) ([]byte, *analysis.Problem, error) {
	var public corev1.ConfigMap
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: needed.Name}, &public)
	switch value := public.Data[needed.Key]; {
	case apierrors.IsNotFound(err):
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonConfigMapNotFound,
			Text: fmt.Sprintf("there is no ConfigMap %s in namespace %s", needed.Name, c.Namespace)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading ConfigMap %s of %s %s: %w", needed.Name, c.Of, object, err)
	case value == "":
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonConfigMapNotFound,
			Text: fmt.Sprintf("ConfigMap %s has no key %s", needed.Name, needed.Key)}, nil
	default:
		return []byte(value), nil, nil
	}
}

// credential reads a value that may be told to a server.
func (c *Client) credential(ctx context.Context, server Server, needed fleetflowv1alpha1.MetricSourceSecret) ([]byte, *analysis.Problem, error) {
	var secret corev1.Secret
	value, problem, err := c.ReadSecret(ctx, server.Object, needed, &secret)
	if err != nil || problem != nil {
		return nil, problem, err
	}
	if given := secret.Annotations[c.URLAnnotation]; !isWithin(server.URL, given) {
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotForURL,
			Text: fmt.Sprintf("Secret %s is not for the server of this %s: its owner lets that have it by the annotation %s with the beginning of %s, at least its scheme, host and port",
				needed.Name, c.Of, c.URLAnnotation, server.URL)}, nil
	}
	return value, nil, nil
}

// ReadSecret reads a value of a Secret that is labelled for an object. It does not ask whether the value may be sent to a server: credential does.
func (c *Client) ReadSecret(ctx context.Context, object string, needed fleetflowv1alpha1.MetricSourceSecret,
	secret *corev1.Secret) ([]byte, *analysis.Problem, error) {
	err := c.Live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: needed.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading Secret %s of %s %s: %w", needed.Name, c.Of, object, err)
	}
	value := secret.Data[needed.Key]
	switch {
	case apierrors.IsNotFound(err):
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotFound,
			Text: fmt.Sprintf("there is no Secret %s in namespace %s", needed.Name, c.Namespace)}, nil
	case secret.Labels[c.Label] != object:
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotLabelled,
			Text: fmt.Sprintf("Secret %s is not for this %s: it needs the label %s=%s", needed.Name, c.Of, c.Label, object)}, nil
	case len(value) == 0:
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotFound,
			Text: fmt.Sprintf("Secret %s has no key %s", needed.Name, needed.Key)}, nil
	}
	return value, nil, nil
}

// isWithin reports whether a url is the one given, or below it: of the same scheme, host and port, and with a path that begins with its
// segments.
func isWithin(text, given string) bool {
	at, err := url.Parse(text)
	within, also := url.Parse(given)
	if err != nil || also != nil || within.Host == "" || within.User != nil || within.RawQuery != "" || within.Fragment != "" ||
		at.User != nil || !strings.EqualFold(at.Scheme, within.Scheme) || !strings.EqualFold(at.Hostname(), within.Hostname()) ||
		portOf(at) != portOf(within) {
		return false
	}
	path := at.JoinPath("/").EscapedPath()
	below := within.JoinPath("/").EscapedPath()
	return strings.HasPrefix(path, below)
}

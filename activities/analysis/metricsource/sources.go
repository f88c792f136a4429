package metricsource

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/analysis"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// maxRequests is how many requests one process has under way.
const maxRequests = 32

// Sources asks the servers of MetricSources.
type Sources struct {
	// Live reads Secrets and ConfigMaps past every cache, from Namespace only.
	Live      client.Reader
	Namespace string
	Guard     Guard
	// Hub finds the addresses of the hub's API server, which Guard refuses beside its own; nil where there are none to find.
	Hub   *HubAddresses
	Clock clock.PassiveClock

	mu     sync.Mutex
	all    chan struct{}
	limits map[string]*limit
}

// limit is what one source may be asked by this process.
type limit struct {
	of     fleetflowv1alpha1.MetricSourceLimits
	slots  chan struct{}
	paced  *rate.Limiter
	common chan struct{}
}

// NewSources asks sources whose Secrets and ConfigMaps are in a namespace.
func NewSources(live client.Reader, namespace string, guard Guard) *Sources {
	return &Sources{Live: live, Namespace: namespace, Guard: guard, Clock: clock.RealClock{}, all: make(chan struct{}, maxRequests),
		limits: map[string]*limit{}}
}

func (s *Sources) limitOf(source *fleetflowv1alpha1.MetricSource) *limit {
	wanted := source.EffectiveLimits()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.limits[source.Name]; l != nil && l.of.MaxConcurrent == wanted.MaxConcurrent &&
		l.of.RequestsPerSecond == wanted.RequestsPerSecond {
		return l
	}
	l := &limit{
		of: wanted, slots: make(chan struct{}, wanted.MaxConcurrent), common: s.all,
		paced: rate.NewLimiter(rate.Limit(wanted.RequestsPerSecond), int(wanted.RequestsPerSecond)),
	}
	s.limits[source.Name] = l
	return l
}

// takeTurn waits for its turn; release gives it back.
func (l *limit) takeTurn(ctx context.Context) (release func(), err error) {
	for _, slots := range []chan struct{}{l.slots, l.common} {
		select {
		case slots <- struct{}{}:
			defer func() {
				if err != nil {
					<-slots
				}
			}()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := l.paced.Wait(ctx); err != nil {
		return nil, fmt.Errorf("waiting for the turn of a request: %w", err)
	}
	return func() { <-l.slots; <-l.common }, nil
}

// Check returns why a source cannot be used; nil if it can, as far as that is known without calling it.
func (s *Sources) Check(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (*analysis.Problem, error) {
	for _, needed := range source.Credentials() {
		if _, problem, err := s.credential(ctx, source, needed); err != nil || problem != nil {
			return problem, err
		}
	}
	if _, _, problem, err := s.readAuthorities(ctx, source); err != nil || problem != nil {
		return problem, err
	}
	guard, err := s.Hub.addTo(ctx, s.Guard)
	if err != nil {
		return nil, err
	}
	if why := refuseURL(guard, source.Spec.URL); why != "" {
		return &analysis.Problem{Reason: fleetflowv1alpha1.ReasonAddressRefused, Text: why}, nil
	}
	return nil, nil
}

// refuseURL returns why the address in a url is not called. A name that cannot be resolved now may be later.
func refuseURL(guard Guard, text string) string {
	for _, address := range AddressesOfURL(text) {
		if why := guard.Refuse(address); why != "" {
			return (&refusedAddress{address.String(), why}).Error()
		}
	}
	return ""
}

// credential reads a value that may be told to the server of a source.
func (s *Sources) credential(ctx context.Context, source *fleetflowv1alpha1.MetricSource,
	needed fleetflowv1alpha1.MetricSourceSecret) ([]byte, *analysis.Problem, error) {
	var secret corev1.Secret
	value, problem, err := s.readSecret(ctx, source.Name, needed, &secret)
	if err != nil || problem != nil {
		return nil, problem, err
	}
	if given := secret.Annotations[fleetflowv1alpha1.MetricSourceURLAnnotation]; !isWithin(source.Spec.URL, given) {
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotForURL,
			Text: fmt.Sprintf("Secret %s is not for the server of this source: its owner lets that have it by the annotation %s with the beginning of %s, at least its scheme, host and port",
				needed.Name, fleetflowv1alpha1.MetricSourceURLAnnotation, source.Spec.URL)}, nil
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

// readAuthorities reads the certificates of the authorities that may vouch for a source, and returns what has them; "" if the source
// names none.
func (s *Sources) readAuthorities(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (pem []byte, of string,
	problem *analysis.Problem, err error) {
	switch named := source.Spec.TLS; {
	case named == nil:
		return nil, "", nil, nil
	case named.CASecret != nil:
		pem, problem, err = s.readSecret(ctx, source.Name, *named.CASecret, &corev1.Secret{})
		return pem, "Secret " + named.CASecret.Name, problem, err
	case named.CAConfigMap != nil:
		pem, problem, err = s.readConfigMap(ctx, source.Name, *named.CAConfigMap)
		return pem, "ConfigMap " + named.CAConfigMap.Name, problem, err
	}
	return nil, "", nil, nil
}

func (s *Sources) readConfigMap(ctx context.Context, source string,
	needed fleetflowv1alpha1.MetricSourceConfigMap) ([]byte, *analysis.Problem, error) {
	var public corev1.ConfigMap
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: needed.Name}, &public)
	switch value := public.Data[needed.Key]; {
	case apierrors.IsNotFound(err):
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonConfigMapNotFound,
			Text: fmt.Sprintf("there is no ConfigMap %s in namespace %s", needed.Name, s.Namespace)}, nil
	case err != nil:
		return nil, nil, fmt.Errorf("reading ConfigMap %s of metric source %s: %w", needed.Name, source, err)
	case value == "":
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonConfigMapNotFound,
			Text: fmt.Sprintf("ConfigMap %s has no key %s", needed.Name, needed.Key)}, nil
	default:
		return []byte(value), nil, nil
	}
}

func (s *Sources) readSecret(ctx context.Context, source string, needed fleetflowv1alpha1.MetricSourceSecret,
	secret *corev1.Secret) ([]byte, *analysis.Problem, error) {
	err := s.Live.Get(ctx, types.NamespacedName{Namespace: s.Namespace, Name: needed.Name}, secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, nil, fmt.Errorf("reading Secret %s of metric source %s: %w", needed.Name, source, err)
	}
	value := secret.Data[needed.Key]
	switch {
	case apierrors.IsNotFound(err):
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotFound,
			Text: fmt.Sprintf("there is no Secret %s in namespace %s", needed.Name, s.Namespace)}, nil
	case secret.Labels[fleetflowv1alpha1.MetricSourceLabel] != source:
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotLabelled,
			Text: fmt.Sprintf("Secret %s is not for this source: it needs the label %s=%s", needed.Name, fleetflowv1alpha1.MetricSourceLabel,
				source)}, nil
	case len(value) == 0:
		return nil, &analysis.Problem{Reason: fleetflowv1alpha1.ReasonSecretNotFound,
			Text: fmt.Sprintf("Secret %s has no key %s", needed.Name, needed.Key)}, nil
	}
	return value, nil, nil
}

// answer is what a source has said.
type answer struct {
	status int
	header http.Header
	body   []byte
	// credentials are those of the request: no text of the answer may show them.
	credentials []string
}

// callSource sends a request to a source. Without an answer there is a reading that says why; an error is trouble with the hub, or the end
// of the context.
func (s *Sources) callSource(ctx context.Context, source *fleetflowv1alpha1.MetricSource, path, contentType string, body []byte,
	header map[string]string) (got *answer, none analysis.Reading, err error) {
	limit := s.limitOf(source)
	release, err := limit.takeTurn(ctx)
	if err != nil {
		return nil, none, err
	}
	defer release()
	target, err := url.JoinPath(source.Spec.URL, path)
	if err != nil {
		return nil, analysis.Reading{Problem: "the url cannot be read"}, nil
	}
	bounds := source.EffectiveLimits()
	inTime, cancel := context.WithTimeout(ctx, bounds.Timeout.Duration)
	defer cancel()
	request, err := http.NewRequestWithContext(inTime, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, analysis.Reading{Problem: "the url cannot be read"}, nil
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "fleetflow-hub-agent")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	credentials, problem, err := s.addCredentials(ctx, source, request, body)
	if err != nil || problem != "" {
		return nil, analysis.Reading{Problem: problem}, err
	}
	transport, problem, err := s.transport(ctx, source)
	if err != nil || problem != "" {
		return nil, analysis.Reading{Problem: problem}, err
	}
	defer transport.CloseIdleConnections()
	got, none = fetchAnswer(&http.Client{Transport: transport, CheckRedirect: keepRedirect}, request, bounds)
	if ctx.Err() != nil {
		return nil, analysis.Reading{}, ctx.Err()
	}
	none.Problem = redactCredentials(none.Problem, credentials)
	if got != nil {
		got.credentials = credentials
	}
	return got, none, nil
}

// keepRedirect follows none: a source that redirects could send the credentials, and the agent, anywhere.
func keepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func fetchAnswer(c *http.Client, request *http.Request, bounds fleetflowv1alpha1.MetricSourceLimits) (got *answer, none analysis.Reading) {
	response, err := c.Do(request)
	if err != nil {
		_, refused := errors.AsType[*refusedAddress](err)
		return nil, analysis.Reading{Problem: problemOf(err, bounds.Timeout.Duration), Silent: !refused}
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil, analysis.Reading{Problem: fmt.Sprintf("the source answers with a redirect (%d), which is not followed", response.StatusCode),
			Answered: true}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, bounds.MaxResponseBytes+1))
	if err != nil {
		return nil, analysis.Reading{Problem: problemOf(err, bounds.Timeout.Duration), Silent: true}
	}
	if int64(len(body)) > bounds.MaxResponseBytes {
		return nil, analysis.Reading{Problem: fmt.Sprintf("the answer is longer than %d bytes: see maxResponseBytes", bounds.MaxResponseBytes),
			Answered: true}
	}
	return &answer{response.StatusCode, response.Header, body, nil}, none
}

// problemOf returns an error of a request as a sentence, without the url.
func problemOf(err error, timeout time.Duration) string {
	if refused, is := errors.AsType[*refusedAddress](err); is {
		return refused.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("the source has not answered within %s", timeout)
	}
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return "the source cannot be reached: " + err.Error()
}

// addCredentials says in a request who the hub agent is, and returns what must appear in no message. A certificate is shown by the
// transport.
func (s *Sources) addCredentials(ctx context.Context, source *fleetflowv1alpha1.MetricSource, request *http.Request,
	body []byte) (credentials []string, problem string, err error) {
	auth := source.Spec.Auth
	if auth == nil || auth.Secret == nil || auth.Type == fleetflowv1alpha1.MetricSourceAuthClientCert {
		return nil, "", nil
	}
	value, refused, err := s.credential(ctx, source, *auth.Secret)
	if err != nil || refused != nil {
		return nil, textOf(refused), err
	}
	credential := strings.TrimSpace(string(value))
	switch auth.Type {
	case fleetflowv1alpha1.MetricSourceAuthBasic:
		username, problem, err := s.readUsername(ctx, source)
		if err != nil || problem != "" {
			return nil, problem, err
		}
		request.SetBasicAuth(username, credential)
		_, sent, _ := strings.Cut(request.Header.Get("Authorization"), " ")
		return []string{sent, credential}, "", nil
	case fleetflowv1alpha1.MetricSourceAuthHMAC:
		keys := strings.Fields(credential)
		return keys, signRequest(request, body, keys, s.Clock.Now()), nil
	default:
		request.Header.Set("Authorization", "Bearer "+credential)
		return []string{credential}, "", nil
	}
}

// readUsername reads the user's name of type Basic: what is sent is parted at its first colon.
func (s *Sources) readUsername(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (username, problem string, err error) {
	needed := source.Spec.Auth.Username
	if needed == nil {
		return "", "auth of type Basic needs a username", nil
	}
	value, refused, err := s.credential(ctx, source, *needed)
	if err != nil || refused != nil {
		return "", textOf(refused), err
	}
	if username = strings.TrimSpace(string(value)); strings.Contains(username, ":") {
		return "", fmt.Sprintf("the username in Secret %s has a colon", needed.Name), nil
	}
	return username, "", nil
}

// Headers of Standard Webhooks, and what its keys begin with.
const (
	headerWebhookID        = "webhook-id"
	headerWebhookTimestamp = "webhook-timestamp"
	headerWebhookSignature = "webhook-signature"
	webhookKeyPrefix       = "whsec_"
)

// signRequest signs a request as Standard Webhooks are signed, with each of the keys: while keys change, a receiver may know either.
func signRequest(request *http.Request, body []byte, keys []string, now time.Time) (problem string) {
	id := request.Header.Get(headerID)
	at := strconv.FormatInt(now.Unix(), 10)
	var signatures []string
	for _, text := range keys {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, webhookKeyPrefix))
		if err != nil || len(key) == 0 {
			return "a key of the Secret is not whsec_ and base64"
		}
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(id + "." + at + ".")) // a hash takes all
		_, _ = mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	request.Header.Set(headerWebhookID, id)
	request.Header.Set(headerWebhookTimestamp, at)
	request.Header.Set(headerWebhookSignature, strings.Join(signatures, " "))
	return ""
}

func textOf(problem *analysis.Problem) string {
	if problem == nil {
		return ""
	}
	return problem.Text
}

// transport connects to addresses that the guard lets pass, by no proxy, and keeps no connection.
func (s *Sources) transport(ctx context.Context, source *fleetflowv1alpha1.MetricSource) (*http.Transport, string, error) {
	guard, err := s.Hub.addTo(ctx, s.Guard)
	if err != nil {
		return nil, "", err
	}
	dialer := &net.Dialer{Control: guard.control}
	security := &tls.Config{MinVersion: tls.VersionTLS12}
	if of := source.Spec.TLS; of != nil {
		security.ServerName = of.ServerName
	}
	switch pem, of, refused, err := s.readAuthorities(ctx, source); {
	case err != nil || refused != nil:
		return nil, textOf(refused), err
	case of != "":
		security.RootCAs = x509.NewCertPool()
		if !security.RootCAs.AppendCertsFromPEM(pem) {
			return nil, of + " has no certificate in PEM", nil
		}
	}
	if auth := source.Spec.Auth; auth != nil && auth.Type == fleetflowv1alpha1.MetricSourceAuthClientCert && auth.Secret != nil &&
		auth.PrivateKey != nil {
		pair, problem, err := s.readCertificate(ctx, source, auth)
		if err != nil || problem != "" {
			return nil, problem, err
		}
		security.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: security, ForceAttemptHTTP2: true,
		DisableKeepAlives: true}, "", nil
}

// readCertificate reads the certificate that the hub agent shows to a source.
func (s *Sources) readCertificate(ctx context.Context, source *fleetflowv1alpha1.MetricSource,
	auth *fleetflowv1alpha1.MetricSourceAuth) (pair tls.Certificate, problem string, err error) {
	var pem [2][]byte
	for i, needed := range []fleetflowv1alpha1.MetricSourceSecret{*auth.Secret, *auth.PrivateKey} {
		value, refused, err := s.credential(ctx, source, needed)
		if err != nil || refused != nil {
			return pair, textOf(refused), err
		}
		pem[i] = value
	}
	if pair, err = tls.X509KeyPair(pem[0], pem[1]); err != nil {
		return pair, "the certificate and the private key of the source are no pair in PEM", nil //nolint:nilerr // what is wrong with the pair may quote from it
	}
	return pair, "", nil
}

// words returns a text of an answer as it may be shown: on one line, without credentials, and no longer than so many bytes.
func (a *answer) words(text string, most int) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
	return analysis.Shorten(redactCredentials(visible, a.credentials), most)
}

// shortest is the length from which on a credential is looked for in messages.
const shortest = 6

// redactCredentials takes credentials out of a text.
func redactCredentials(text string, credentials []string) string {
	for _, credential := range credentials {
		if len(credential) >= shortest {
			text = strings.ReplaceAll(text, credential, "[redacted]")
		}
	}
	return text
}

// redactValue takes credentials out of all texts of a value that was read from JSON: what an expression says about them tells what they
// are.
func redactValue(value any, credentials []string) any {
	switch value := value.(type) {
	case string:
		return redactCredentials(value, credentials)
	case []any:
		for i := range value {
			value[i] = redactValue(value[i], credentials)
		}
	case map[string]any:
		redacted := make(map[string]any, len(value))
		for key, of := range value {
			redacted[redactCredentials(key, credentials)] = redactValue(of, credentials)
		}
		return redacted
	}
	return value
}

package notification

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/controllers/hub/delivery"
)

const (
	// timeout is how long the server of a channel has to take a message, and maxAnswer how much of what it says is read.
	timeout   = 10 * time.Second
	maxAnswer = 64 << 10
	// maxWords is how much of what a server says is shown.
	maxWords = 256
)

// Sender sends messages to channels.
type Sender struct {
	// Client reads what channels need, and knows which addresses are not called.
	Client *outbound.Client
	// SlackURL is where Slack takes messages of apps, for tests; empty is Slack's own.
	SlackURL string

	threads threads
}

// NewSender makes a Sender. Secrets and ConfigMaps of channels are where those of metric sources are.
func NewSender(sources *outbound.Client, clk clock.PassiveClock) *Sender {
	return &Sender{Client: &outbound.Client{
		Caller: sources.Caller, Live: sources.Live, Namespace: sources.Namespace, Clock: clk, Of: "channel", Label: fleetflowv1alpha1.ChannelLabel,
		URLAnnotation: fleetflowv1alpha1.ChannelServerAnnotation,
	}}
}

// unusableError says that a channel cannot be used as it is set up.
type unusableError struct{ reason, why string }

func (e *unusableError) Error() string { return e.why }

// posting is a request as a value: what goes where, and what of it must appear in no message.
type posting struct {
	url    string
	header map[string]string
	body   []byte
	// keys sign it as a Standard Webhook.
	keys        []string
	credentials []string
}

// Send sends a message, and returns when the server of the channel has taken it.
func (s *Sender) Send(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := s.send(ctx, channel, message)
	if unusable, is := errors.AsType[*unusableError](err); is {
		return &delivery.RefusedError{Why: unusable.why}
	}
	return err
}

func (s *Sender) send(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) error {
	if channel.Spec.Email != nil {
		return s.sendMail(ctx, channel, message)
	}
	request, err := s.requestOf(ctx, channel, message)
	if err != nil {
		return err
	}
	security, err := s.security(ctx, channel.Name, authoritiesOf(&channel.Spec))
	if err != nil {
		return err
	}
	answer, err := s.post(ctx, request, message.ID, security)
	if err != nil {
		return err
	}
	if answer != nil && channel.Spec.Slack != nil && channel.Spec.Slack.TokenSecret != nil {
		return s.judgeSlack(channel, message, answer)
	}
	return nil
}

// requestOf makes the request that brings a message to a channel.
func (s *Sender) requestOf(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel, message *Message) (request *posting, err error) {
	request = &posting{header: map[string]string{"Content-Type": "application/json; charset=utf-8"}}
	switch of := &channel.Spec; {
	case of.Slack != nil && of.Slack.TokenSecret != nil:
		token, err := s.read(ctx, channel.Name, *of.Slack.TokenSecret, &corev1.Secret{})
		if err != nil {
			return nil, err
		}
		request.url = slackURL
		if s.SlackURL != "" {
			request.url = s.SlackURL
		}
		request.header["Authorization"] = "Bearer " + token
		request.credentials = []string{token}
		request.body, err = slackBody(of.Slack.Channel, s.threads.find(channel, message), message)
		return request, err
	case of.Slack != nil && of.Slack.URLSecret != nil:
		if err := s.addressFrom(ctx, channel.Name, *of.Slack.URLSecret, request); err != nil {
			return nil, err
		}
		request.body, err = slackBody("", "", message)
		return request, err
	case of.Teams != nil:
		if err := s.addressFrom(ctx, channel.Name, of.Teams.URLSecret, request); err != nil {
			return nil, err
		}
		request.body, err = teamsBody(message)
		return request, err
	case of.Webhook != nil:
		keys, err := s.read(ctx, channel.Name, of.Webhook.SigningSecret, &corev1.Secret{})
		if err != nil {
			return nil, err
		}
		request.url = of.Webhook.URL
		request.keys = strings.Fields(keys)
		request.credentials = request.keys
		request.body, err = webhookBody(channel.Name, message)
		return request, err
	default:
		return nil, &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, "the channel does not say where messages go"}
	}
}

// addressFrom has a request go to a url that is a secret. Nothing of it is shown.
func (s *Sender) addressFrom(ctx context.Context, channel string, needed fleetflowv1alpha1.ChannelSecret, request *posting) error {
	text, err := s.read(ctx, channel, needed, &corev1.Secret{})
	if err != nil {
		return err
	}
	to, err := url.Parse(text)
	if err != nil || to.Scheme != "https" && to.Scheme != "http" || to.Host == "" || to.User != nil {
		return &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, fmt.Sprintf("Secret %s has no url under the key %s", needed.Name, needed.Key)}
	}
	request.url = text
	request.credentials = []string{text, to.RequestURI(), to.EscapedPath(), to.Path, to.RawQuery}
	return nil
}

// read reads a value of a Secret that is labelled for a channel.
func (s *Sender) read(ctx context.Context, channel string, needed fleetflowv1alpha1.ChannelSecret, secret *corev1.Secret) (string, error) {
	value, problem, err := s.Client.ReadSecret(ctx, channel, fleetflowv1alpha1.MetricSourceSecret(needed), secret)
	if err != nil {
		return "", err
	}
	if problem != nil {
		return "", &unusableError{problem.Reason, problem.Text}
	}
	return strings.TrimSpace(string(value)), nil
}

// serverKnownBy returns the server of a channel as what reads its authorities takes it.
func serverKnownBy(channel string, authorities *fleetflowv1alpha1.ChannelConfigMap) outbound.Server {
	server := outbound.Server{Object: channel}
	if authorities != nil {
		of := fleetflowv1alpha1.MetricSourceConfigMap(*authorities)
		server.TLS = &fleetflowv1alpha1.MetricSourceTLS{CAConfigMap: &of}
	}
	return server
}

// authoritiesOf returns where the authorities are by which the server of a channel is known; nil if it does not say.
func authoritiesOf(spec *fleetflowv1alpha1.NotificationChannelSpec) *fleetflowv1alpha1.ChannelConfigMap {
	switch {
	case spec.Webhook != nil:
		return spec.Webhook.CAConfigMap
	case spec.Email != nil:
		return spec.Email.CAConfigMap
	default:
		return nil
	}
}

// security returns by which authorities the server of a channel is known.
func (s *Sender) security(ctx context.Context, channel string, authorities *fleetflowv1alpha1.ChannelConfigMap) (*tls.Config, error) {
	security, problem, err := s.Client.Security(ctx, serverKnownBy(channel, authorities))
	if err != nil {
		return nil, err
	}
	if problem != "" {
		return nil, &unusableError{fleetflowv1alpha1.ReasonConfigMapNotFound, problem}
	}
	return security, nil
}

// post sends a request, and returns what the server says if that is that it has taken it.
func (s *Sender) post(ctx context.Context, sent *posting, id string, security *tls.Config) (*outbound.Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, sent.url, bytes.NewReader(sent.body))
	if err != nil {
		return nil, &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, "the url cannot be read"}
	}
	request.Header.Set("User-Agent", "fleetflow-hub-agent")
	for name, value := range sent.header {
		request.Header.Set(name, value)
	}
	if sent.keys != nil {
		if problem := outbound.Sign(request, id, sent.body, sent.keys, s.Client.Clock.Now()); problem != "" {
			return nil, &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, problem}
		}
	}
	transport, err := s.Client.Transport(ctx, security)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	answer, failure := outbound.Fetch(transport, request, outbound.Bounds{Timeout: timeout, MaxBytes: maxAnswer, Of: "the server of the channel"},
		sent.credentials)
	if err := delivery.Judge("the server of the channel", answer, failure, s.Client.Clock.Now()); err != nil {
		return nil, err
	}
	return answer, nil
}

// judgeSlack returns why Slack has not taken the message of an app; nil if it has. One that was to go into a thread which is closed is sent again.
func (s *Sender) judgeSlack(channel *fleetflowv1alpha1.NotificationChannel, message *Message, answer *outbound.Answer) error {
	var said slackAnswer
	if err := json.Unmarshal(answer.Body, &said); err != nil {
		return errors.New("the answer of Slack cannot be read")
	}
	if said.OK {
		s.threads.note(channel, message, said.Time)
		return nil
	}
	why := "Slack answers " + answer.Words(said.Error, maxWords)
	if slices.Contains(slackOfThreads, said.Error) && s.threads.find(channel, message) != "" {
		s.threads.forget(channel, message)
		return errors.New(why)
	}
	if slices.Contains(slackPasses, said.Error) {
		return errors.New(why)
	}
	return &delivery.RefusedError{Why: why, Content: slices.Contains(slackOfContent, said.Error)}
}

// Check returns why a channel cannot be used, as far as that is known without sending anything, and the version of the Secrets that it
// uses, and of its ConfigMap: it changes with them.
func (s *Sender) Check(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel) (*Problem, string, error) {
	var versions []string
	var first *Problem
	for _, needed := range secretsOf(&channel.Spec) {
		var secret corev1.Secret
		_, err := s.read(ctx, channel.Name, needed, &secret)
		versions = append(versions, string(secret.UID)+secret.ResourceVersion)
		problem, err := problemOf(err)
		if err != nil {
			return nil, "", err
		}
		if first == nil {
			first = problem
		}
	}
	if of := authoritiesOf(&channel.Spec); of != nil {
		version, err := s.Client.Version(ctx, serverKnownBy(channel.Name, of))
		if err != nil {
			return nil, "", err
		}
		versions = append(versions, version)
	}
	if first == nil {
		err := s.tryOut(ctx, channel)
		problem, err := problemOf(err)
		if err != nil {
			return nil, "", err
		}
		first = problem
	}
	return first, strings.Join(versions, " "), nil
}

// tryOut makes what would be sent, and does not send it.
func (s *Sender) tryOut(ctx context.Context, channel *fleetflowv1alpha1.NotificationChannel) error {
	message := TestMessage(channel, "", s.Client.Clock.Now())
	to := ""
	switch {
	case channel.Spec.Email != nil:
		if _, _, err := s.account(ctx, channel); err != nil {
			return err
		}
		if _, err := s.security(ctx, channel.Name, channel.Spec.Email.CAConfigMap); err != nil {
			return err
		}
		if _, _, err := hostOf(channel.Spec.Email.Server); err != nil {
			return &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, err.Error()}
		}
		return nil
	case channel.Spec.Webhook != nil:
		to = channel.Spec.Webhook.URL
		if _, err := s.security(ctx, channel.Name, channel.Spec.Webhook.CAConfigMap); err != nil {
			return err
		}
	}
	request, err := s.requestOf(ctx, channel, &message)
	if err != nil {
		return err
	}
	if request.keys != nil {
		signed := &http.Request{Header: http.Header{}}
		if problem := outbound.Sign(signed, message.ID, request.body, request.keys, s.Client.Clock.Now()); problem != "" {
			return &unusableError{fleetflowv1alpha1.ReasonInvalidSecret, problem}
		}
	}
	if to == "" {
		return nil
	}
	why, err := s.Client.Refuse(ctx, to)
	if err != nil || why == "" {
		return err
	}
	return &unusableError{fleetflowv1alpha1.ReasonAddressRefused, why}
}

// problemOf tells what is wrong with a channel from trouble with the hub.
func problemOf(err error) (*Problem, error) {
	if unusable, is := errors.AsType[*unusableError](err); is {
		return &Problem{unusable.reason, unusable.why}, nil
	}
	return nil, err
}

// secretsOf returns the values in Secrets that a channel needs.
func secretsOf(spec *fleetflowv1alpha1.NotificationChannelSpec) []fleetflowv1alpha1.ChannelSecret {
	var needed []fleetflowv1alpha1.ChannelSecret
	add := func(of ...*fleetflowv1alpha1.ChannelSecret) {
		for _, one := range of {
			if one != nil {
				needed = append(needed, *one)
			}
		}
	}
	switch {
	case spec.Slack != nil:
		add(spec.Slack.TokenSecret, spec.Slack.URLSecret)
	case spec.Teams != nil:
		add(&spec.Teams.URLSecret)
	case spec.Webhook != nil:
		add(&spec.Webhook.SigningSecret)
	case spec.Email != nil:
		add(spec.Email.UsernameSecret, spec.Email.PasswordSecret)
	}
	return needed
}

package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/fleetflow/fleetflow/activities/analysis"
)

// Caller connects to addresses that may be called.
type Caller struct {
	Guard Guard
	// Hub finds the addresses of the hub's API server, which Guard refuses beside its own; nil where there are none to find.
	Hub *HubAddresses
}

// Dialer returns what connects to addresses that may be called.
func (c Caller) Dialer(ctx context.Context) (*net.Dialer, error) {
	guard, err := c.Hub.addTo(ctx, c.Guard)
	if err != nil {
		return nil, err
	}
	return &net.Dialer{Control: guard.control}, nil
}

// Transport connects to addresses that may be called, by no proxy, and keeps no connection.
func (c Caller) Transport(ctx context.Context, security *tls.Config) (*http.Transport, error) {
	dialer, err := c.Dialer(ctx)
	if err != nil {
		return nil, err
	}
	return &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: security, ForceAttemptHTTP2: true, DisableKeepAlives: true}, nil
}

// Refuse returns why the address in a url is not called; empty if it may be. A name that cannot be resolved now may be later.
func (c Caller) Refuse(ctx context.Context, text string) (string, error) {
	guard, err := c.Hub.addTo(ctx, c.Guard)
	if err != nil {
		return "", err
	}
	for _, address := range AddressesOfURL(ctx, text) {
		if why := guard.Refuse(address); why != "" {
			return (&refusedAddress{address.String(), why}).Error(), nil
		}
	}
	return "", nil
}

// Bounds are how long a call may take, and how long its answer may be.
type Bounds struct {
	Timeout  time.Duration
	MaxBytes int64
	// Of names what is called, for sentences, as in "the source", and LongerAt what says how long an answer may be; empty if
	// nothing does.
	Of, LongerAt string
}

// Answer is what a server has said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// Credentials are those of the request: no text of the answer may show them.
	Credentials []string
}

// Failure says that there is no answer that could be read. It shows no credentials, and not the url.
type Failure struct {
	Text string
	// Silent is whether nothing has answered, Answered whether something has, although not in a way to be read. Neither is so of an address
	// that is not called.
	Silent, Answered bool
	// Status is what has answered said with its first line; 0 if nothing has.
	Status int
}

func (f *Failure) Error() string { return f.Text }

// Fetch sends a request, whose context is to end with the bounds. No redirect is followed: a server that redirects could send the credentials,
// and the agent, anywhere.
func Fetch(transport http.RoundTripper, request *http.Request, bounds Bounds, credentials []string) (*Answer, *Failure) {
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, failure := fetch(c, request, bounds)
	if failure != nil {
		failure.Text = Redact(failure.Text, credentials)
		return nil, failure
	}
	answer.Credentials = credentials
	return answer, nil
}

func fetch(c *http.Client, request *http.Request, bounds Bounds) (*Answer, *Failure) {
	response, err := c.Do(request)
	if err != nil {
		_, refused := errors.AsType[*refusedAddress](err)
		return nil, &Failure{Text: bounds.problemOf(err), Silent: !refused}
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return nil, &Failure{Text: fmt.Sprintf("%s answers with a redirect (%d), which is not followed", bounds.Of, response.StatusCode), Answered: true,
			Status: response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, bounds.MaxBytes+1))
	if err != nil {
		return nil, &Failure{Text: bounds.problemOf(err), Silent: true, Status: response.StatusCode}
	}
	if int64(len(body)) > bounds.MaxBytes {
		text := fmt.Sprintf("the answer is longer than %d bytes", bounds.MaxBytes)
		if bounds.LongerAt != "" {
			text += ": see " + bounds.LongerAt
		}
		return nil, &Failure{Text: text, Answered: true, Status: response.StatusCode}
	}
	return &Answer{Status: response.StatusCode, Header: response.Header, Body: body}, nil
}

// problemOf returns an error of a request as a sentence, without the url.
func (b Bounds) problemOf(err error) string {
	if refused, is := errors.AsType[*refusedAddress](err); is {
		return refused.Error()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("%s has not answered within %s", b.Of, b.Timeout)
	}
	if of, is := errors.AsType[*url.Error](err); is {
		err = of.Err
	}
	return b.Of + " cannot be reached: " + err.Error()
}

// Words returns a text of an answer as it may be shown: on one line, without credentials, and no longer than so many bytes.
func (a *Answer) Words(text string, most int) string {
	return Words(text, most, a.Credentials)
}

// Words returns a text of a server as it may be shown.
func Words(text string, most int, credentials []string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
	return analysis.Shorten(Redact(visible, credentials), most)
}

// shortest is the length from which on a credential is looked for in messages.
const shortest = 6

// Redact takes credentials out of a text.
func Redact(text string, credentials []string) string {
	for _, credential := range credentials {
		if len(credential) >= shortest {
			text = strings.ReplaceAll(text, credential, "[redacted]")
		}
	}
	return text
}

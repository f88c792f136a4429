package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// limits bound what is waited for and taken from publishers.
type limits struct {
	// answer is how long a host may take until its answer begins, redirects included.
	answer time.Duration
	// silence is how long nothing of a file may arrive.
	silence time.Duration
	// whole is how long all downloads of a run may take where what is missing then can be built.
	whole time.Duration
	// sums and file are how many bytes checksums and a file may have.
	sums, file int64
}

// usualLimits leave room: all files are some hundred MB. Where that takes longer than five minutes, a build is as good.
var usualLimits = limits{answer: 3 * time.Second, silence: 10 * time.Second, whole: 5 * time.Minute, sums: 4 << 20, file: 1 << 30}

// maxRedirects is more than any publisher needs: each redirects once, to where its files are stored.
const maxRedirects = 5

// publishers are the hosts that have released programs. A host that does not answer is not asked again.
type publishers struct {
	client *http.Client
	limits limits

	mu    sync.Mutex
	hosts map[string]*hostState
}

// hostState is what the first request to a host has shown.
type hostState struct {
	asked sync.Once
	err   error
}

// hostError says that a host does not answer.
type hostError struct {
	host  string
	cause error
}

// redirectError says that a host answers with a redirect that is not followed.
type redirectError struct {
	host, why string
}

func (e *redirectError) Error() string { return e.host + " redirects " + e.why }

func (e *hostError) Error() string { return fmt.Sprintf("%s cannot be reached: %s", e.host, e.cause) }

func (e *hostError) Unwrap() error { return e.cause }

// newPublishers returns publishers that are reached through a transport, and over TLS only.
func newPublishers(transport http.RoundTripper, l limits) *publishers {
	return &publishers{
		client: &http.Client{Transport: transport, CheckRedirect: checkRedirect},
		limits: l,
		hosts:  map[string]*hostState{},
	}
}

// usualTransport is Go's, but does not unpack what a host has packed: checksums are of files as they are stored.
func usualTransport() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	return transport
}

func checkRedirect(next *http.Request, before []*http.Request) error {
	from := before[len(before)-1].URL.Host
	if next.URL.Scheme != "https" {
		return &redirectError{from, fmt.Sprintf("to %s, which is not https", next.URL.Redacted())}
	}
	if len(before) > maxRedirects {
		return &redirectError{from, fmt.Sprintf("again after %d times", maxRedirects)}
	}
	return nil
}

// get opens a file of a publisher. Several callers that ask a host for the first time wait for the first of them.
func (p *publishers) get(ctx context.Context, address string) (*http.Response, error) {
	target, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("reading an address: %w", err)
	}
	if target.Scheme != "https" {
		return nil, fmt.Errorf("%s is not https", address)
	}
	state := p.hostOf(target.Host)
	var response *http.Response
	isFirst := false
	state.asked.Do(func() {
		isFirst = true
		response, err = p.request(ctx, target)
		if _, unreachable := errors.AsType[*hostError](err); unreachable {
			state.err = err
		}
	})
	if isFirst {
		return response, err
	}
	if state.err != nil {
		return nil, state.err
	}
	return p.request(ctx, target)
}

func (p *publishers) hostOf(name string) *hostState {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.hosts[name] == nil {
		p.hosts[name] = &hostState{}
	}
	return p.hosts[name]
}

// request asks once; the body of what it returns fails when nothing arrives for too long.
func (p *publishers) request(ctx context.Context, target *url.URL) (*http.Response, error) {
	limited, end := context.WithCancelCause(ctx)
	noAnswer := fmt.Errorf("no answer within %s", p.limits.answer)
	timer := time.AfterFunc(p.limits.answer, func() { end(noAnswer) })
	request, err := http.NewRequestWithContext(limited, http.MethodGet, target.String(), nil)
	if err != nil {
		end(nil)
		return nil, fmt.Errorf("asking %s: %w", target.Host, err)
	}
	request.Header.Set("User-Agent", "fleetflow-devfleet")
	response, err := p.client.Do(request)
	if !timer.Stop() && err == nil { // the limit has passed just now
		response.Body.Close()
		err = &url.Error{URL: response.Request.URL.String(), Err: noAnswer}
	}
	if err != nil {
		err = explainRequest(ctx, limited, target, err)
		end(nil)
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		end(nil)
		return nil, fmt.Errorf("%s answers %s", target, response.Status)
	}
	silent := fmt.Errorf("%s sends nothing for %s", response.Request.URL.Host, p.limits.silence)
	response.Body = &guardedBody{
		body: response.Body, context: limited, end: end, limit: p.limits.silence,
		timer: time.AfterFunc(p.limits.silence, func() { end(silent) }),
	}
	return response, nil
}

// explainRequest returns why there is no answer: the caller's end, a redirect that is not followed, else the host.
func explainRequest(ctx, limited context.Context, target *url.URL, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if redirect, is := errors.AsType[*redirectError](err); is {
		return redirect
	}
	host := target.Host
	cause := err
	if failed, is := errors.AsType[*url.Error](err); is {
		cause = failed.Err
		if at, problem := url.Parse(failed.URL); problem == nil && at.Host != "" {
			host = at.Host
		}
	}
	if limited.Err() != nil {
		cause = context.Cause(limited)
	}
	return &hostError{host: host, cause: cause}
}

// guardedBody is a body that ends with an error when nothing arrives for too long.
type guardedBody struct {
	body    io.ReadCloser
	context context.Context
	end     context.CancelCauseFunc
	limit   time.Duration
	timer   *time.Timer
}

func (b *guardedBody) Read(into []byte) (int, error) {
	n, err := b.body.Read(into)
	if err == nil {
		b.timer.Reset(b.limit)
		return n, nil
	}
	b.timer.Stop()
	if b.context.Err() != nil { // a body that is given up may still end as if it were whole
		err = context.Cause(b.context)
	}
	return n, err
}

func (b *guardedBody) Close() error {
	b.timer.Stop()
	b.end(nil)
	return b.body.Close()
}

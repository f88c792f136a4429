// Package patience bounds for how long a program waits for answers of an API server. One that has lost its etcd takes every request, and
// answers a minute later at best.
package patience

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// Reads is how long a read may wait for an answer if the user does not say.
	Reads = 20 * time.Second
	// Writes is how long a write may: API servers themselves give up after a minute, and say then what became of it.
	Writes = 75 * time.Second
	// less is the part of its time that a read has once the API server did not answer the one before, least the time that it always has.
	less, least = 10, 2 * time.Second
)

// Unanswered is the error of a request that the API server did not answer in time.
type Unanswered struct {
	// For is how long the request has waited.
	For time.Duration
	// Since is when the API server was asked first of all that it has not answered.
	Since time.Time
	// flag sets how long requests wait, if one does.
	flag string
}

// Error returns what did not come. The request itself, and the API server, are named by the error of the HTTP client around it.
func (e *Unanswered) Error() string {
	flag := ""
	if e.flag != "" {
		flag = " (" + e.flag + ")"
	}
	return fmt.Sprintf("the API server has not answered for %s%s, and nothing that it was asked since %s", e.For, flag, e.Since.Format(time.TimeOnly))
}

// Patience bounds requests to API servers. It remembers which of them do not answer, whichever client asks.
type Patience struct {
	// Reads and Writes are how long requests may wait for an answer, and then for each part of it; without end if they are zero. A
	// watch only waits to begin.
	Reads, Writes time.Duration
	// Flag names the flag that sets them, if one does.
	Flag string
	// Now tells the time.
	Now func() time.Time

	mutex sync.Mutex
	// silent has when an API server was asked first of all that it has not answered, by its address.
	silent map[string]time.Time
}

// Wrap has a configuration make clients whose requests are bounded. What the configuration bounds itself would bound watches, too.
func (p *Patience) Wrap(config *rest.Config) *rest.Config {
	config.Timeout = 0
	server := config.Host
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, p, server} })
	return config
}

// limit returns how long a request may wait. After one that was not answered, others wait for less: a command that makes many says soon
// what it does not know.
func (p *Patience) limit(server, method string) time.Duration {
	if method != http.MethodGet && method != http.MethodHead {
		return p.Writes
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if _, is := p.silent[server]; is {
		return min(p.Reads, max(p.Reads/less, least))
	}
	return p.Reads
}

// miss notes that an API server has not answered a request, and returns the error that says so.
func (p *Patience) miss(server string, begun time.Time, limit time.Duration) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if before, is := p.silent[server]; is && before.Before(begun) {
		begun = before
	}
	if p.silent == nil {
		p.silent = map[string]time.Time{}
	}
	p.silent[server] = begun
	return &Unanswered{For: limit, Since: begun, flag: p.Flag}
}

// hear notes that an API server answers.
func (p *Patience) hear(server string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.silent, server)
}

// transport makes the requests of a client.
type transport struct {
	next     http.RoundTripper
	patience *Patience
	server   string
}

// RoundTrip makes a request, and gives it up if no answer comes.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	limit := t.patience.limit(t.server, request.Method)
	if limit <= 0 {
		return t.next.RoundTrip(request)
	}
	begun := t.patience.Now()
	ctx, giveUp := context.WithCancelCause(request.Context())
	alarm := time.AfterFunc(limit, func() { giveUp(t.patience.miss(t.server, begun, limit)) })
	answer, err := t.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		alarm.Stop()
		err = reason(ctx, err)
		giveUp(nil)
		return nil, err
	}
	t.patience.hear(t.server)
	rest := &body{ReadCloser: answer.Body, ctx: ctx, giveUp: giveUp, alarm: alarm, limit: limit}
	if request.URL.Query().Get("watch") != "" && alarm.Stop() {
		rest.limit = 0
	}
	answer.Body = rest
	return answer, nil
}

// WrappedRoundTripper returns what makes the requests, for client-go to find the connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// reason returns that a request was given up, if it was, for an error.
func reason(ctx context.Context, err error) error {
	if given, is := context.Cause(ctx).(*Unanswered); is { //nolint:errorlint // it is the cause itself
		return given
	}
	return err
}

// body is what comes of an answer. Each part of it has the time that the first has.
type body struct {
	io.ReadCloser
	ctx    context.Context
	giveUp context.CancelCauseFunc
	alarm  *time.Timer
	limit  time.Duration
}

// Read reads what has come.
func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	switch {
	case err == io.EOF: //nolint:errorlint // readers return it itself
		b.alarm.Stop()
	case err != nil:
		err = reason(b.ctx, err)
	case b.limit > 0:
		b.alarm.Reset(b.limit)
	}
	return n, err
}

// Close gives up the rest.
func (b *body) Close() error {
	b.alarm.Stop()
	err := b.ReadCloser.Close()
	b.giveUp(nil)
	return err
}

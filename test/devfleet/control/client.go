package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"syscall"
	"time"
)

// ErrNotRunning is returned by Dial when no supervisor serves the folder.
var ErrNotRunning = errors.New("no fleet is running")

// dialTimeout bounds the first question: a supervisor answers at once or not at all.
const dialTimeout = 2 * time.Second

// Client asks the supervisor of one fleet.
type Client struct {
	http *http.Client
	dir  string
}

// Dial connects to the supervisor of a fleet's folder; ErrNotRunning when there is none.
func Dial(dir string) (*Client, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolving the fleet's folder: %w", err)
	}
	socket := SocketPath(dir)
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	client := &Client{http: &http.Client{Transport: transport}, dir: dir}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	_, err = client.Status(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w in %s", ErrNotRunning, dir)
	case err != nil:
		return nil, fmt.Errorf("%w in %s that answers: %w", ErrNotRunning, dir, err)
	}
	return client, nil
}

// Status returns the state of every component.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	status := &Status{}
	return status, c.call(ctx, http.MethodGet, PathStatus, nil, status)
}

// Do asks for a verb and returns when it has its effect: for Stop and Kill when the process is gone, for the others when
// the component is ready.
func (c *Client) Do(ctx context.Context, verb Verb, component string) error {
	return c.request(ctx, Request{Verb: verb, Component: component})
}

// Begin asks for a verb and returns when it is under way, without waiting until the component is ready.
func (c *Client) Begin(ctx context.Context, verb Verb, component string) error {
	return c.request(ctx, Request{Verb: verb, Component: component, NoWait: true})
}

// WaitReady returns when all named components are ready.
func (c *Client) WaitReady(ctx context.Context, components ...string) error {
	for _, component := range components {
		path := PathWait + "?component=" + url.QueryEscape(component)
		if err := c.call(ctx, http.MethodGet, path, nil, nil); err != nil {
			return fmt.Errorf("waiting for %s: %w", component, err)
		}
	}
	return nil
}

// Shutdown ends every component and the supervisor itself and returns when all children are gone.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, PathShutdown, nil, nil)
}

func (c *Client) request(ctx context.Context, request Request) error {
	if err := c.call(ctx, http.MethodPost, PathDo, request, nil); err != nil {
		return fmt.Errorf("asking the supervisor to %s %s: %w", request.Verb, request.Component, err)
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the request: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, content)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		problem := Problem{}
		if err := json.NewDecoder(response.Body).Decode(&problem); err != nil {
			return fmt.Errorf("the supervisor answered %s", response.Status)
		}
		return errors.New(problem.Error)
	}
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("decoding the answer: %w", err)
	}
	return nil
}

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"
)

// trialPatience is how long a dashboard may take to answer a trial.
const trialPatience = 10 * time.Second

// tryPages asks a dashboard at an address for the page that each user sees first, as one who comes by the URL of the dashboard.
// A certificate is for that URL and not for the address, so it is not verified: nothing of worth is sent.
func tryPages(ctx context.Context, address, host string) error {
	ctx, cancel := context.WithTimeout(ctx, trialPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("--try is %q: %w", address, err)
	}
	request.Host = host
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // see above
	// Where the page leads is the login, at the provider maybe.
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := c.Do(request)
	if err != nil {
		return fmt.Errorf("asking the dashboard: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the dashboard at %s answers %s to who comes by %s", address, response.Status, host)
	}
	return nil
}

package question

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestTwentyRequestsASecondAreLetThrough(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	gate := NewGate(clock)
	last := time.Duration(0)
	for i := range 60 {
		last = gate.takeTurn()
		assert.Equal(t, time.Duration(i)*requestInterval, last)
	}
	assert.Less(t, last, 3*time.Second, "60 of them take no three seconds")
	clock.Step(time.Hour)
	assert.Zero(t, gate.takeTurn(), "what was not used is not made up for")
	assert.Equal(t, requestInterval, gate.takeTurn())
}

// counting answers each request.
type counting struct{ asked int }

func (c *counting) RoundTrip(*http.Request) (*http.Response, error) {
	c.asked++
	return &http.Response{StatusCode: http.StatusOK}, nil
}

func TestAWriteThatIsNoDryRunIsNotSent(t *testing.T) {
	inner := &counting{}
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	gate := gated{gate: NewGate(clock), inner: inner}
	// The API server goes by the body of a deletion, if it has one.
	bodies := map[string]string{
		"DELETE https://m/api/v1/pods/tried":              `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"],"propagationPolicy":"Background"}`,
		"DELETE https://m/api/v1/pods/real":               `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`,
		"DELETE https://m/api/v1/pods/both?dryRun=All":    `{"kind":"DeleteOptions","apiVersion":"v1"}`,
		"DELETE https://m/api/v1/pods/damaged?dryRun=All": `{`,
	}
	for request, passes := range map[string]bool{
		"DELETE https://m/api/v1/pods/tried": true, "DELETE https://m/api/v1/pods/real": false,
		"DELETE https://m/api/v1/pods/both?dryRun=All": false, "DELETE https://m/api/v1/pods/damaged?dryRun=All": false,
		"GET https://m/api/v1/pods": true, "POST https://m/api/v1/pods": false, "PATCH https://m/api/v1/pods/a": false,
		"PUT https://m/api/v1/pods/a": false, "DELETE https://m/api/v1/pods/a": false, "POST https://m/api/v1/pods?dryRun=": false,
		"POST https://m/api/v1/pods?dryRun=All": true, "PATCH https://m/api/v1/pods/a?fieldManager=x&dryRun=All": true,
		"DELETE https://m/api/v1/pods/a?dryRun=All": true, "POST https://m/api/v1/pods?dryRun=None": false,
	} {
		clock.Step(time.Second)
		before := inner.asked
		var method, url string
		method = request[:indexOf(request)]
		url = request[indexOf(request)+1:]
		var body io.Reader
		if given, has := bodies[request]; has {
			body = strings.NewReader(given)
		}
		r, err := http.NewRequestWithContext(t.Context(), method, url, body)
		require.NoError(t, err)
		response, err := gate.RoundTrip(r)
		if response != nil && response.Body != nil {
			_ = response.Body.Close()
		}
		assert.Equal(t, passes, err == nil, request)
		assert.Equal(t, passes, inner.asked > before, request)
	}
}

func indexOf(request string) int {
	for i, c := range request {
		if c == ' ' {
			return i
		}
	}
	return 0
}

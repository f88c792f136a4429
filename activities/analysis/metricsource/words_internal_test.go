package metricsource

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/outbound"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestWhatASourceSaysShowsNoCredentialsAndNoCommands(t *testing.T) {
	const secret = "tk-0123456789"
	for body, want := range map[string]string{
		`{"outcome":"Failure","message":"you said Bearer tk-0123456789"}`:   "you said Bearer [redacted]",
		`{"outcome":"Failure","message":"tk-\u00000123456789 hid"}`:         "[redacted] hid",
		`{"outcome":"Failure","message":"a\nb\tc\u001b[31mred\u202edlrow"}`: "a b c[31mreddlrow",
	} {
		got := readWebhook(&outbound.Answer{Status: 200, Body: []byte(body), Credentials: []string{secret}})
		assert.Equal(t, want, got.Message, body)
	}
	got := readWebhook(&outbound.Answer{Status: 200, Body: []byte(`{"outcome":"tk-0123456789"}`), Credentials: []string{secret}})
	assert.NotContains(t, got.Problem, "tk-01")
}

func TestExpressionsSeeNoCredentialsOfARepeatedRequest(t *testing.T) {
	const secret = "tk-0123456789"
	got := readWebhook(&outbound.Answer{Status: 200, Credentials: []string{secret}, Body: []byte(`{"headers":[{"Authorization":"Bearer tk-0123456789"},"tk\u002d0123456789"],"tk-0123456789":1,"count":2}`)})
	assert.Equal(t, map[string]any{
		"headers": []any{map[string]any{"Authorization": "Bearer [redacted]"}, "[redacted]"}, "[redacted]": 1.0, "count": 2.0,
	}, got.Response)
}

func TestBasicCredentialsAreTakenOutAsTheyAreSent(t *testing.T) {
	s := sourcesWith(t, "https://a.example", map[string][]byte{"username": []byte("jane\n"), "password": []byte("open:sesame\n"), "both": []byte("jane:open")})
	auth := fleetflowv1alpha1.MetricSourceAuth{Type: fleetflowv1alpha1.MetricSourceAuthBasic, Username: in("username"), Secret: in("password")}
	source := sourceOf(fleetflowv1alpha1.MetricSourceWebhook, "https://a.example", auth)
	request := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	credentials, problem, err := s.AddCredentials(t.Context(), serverOf(source), request, "", nil)
	require.NoError(t, err)
	require.Empty(t, problem)
	user, password, is := request.BasicAuth()
	assert.True(t, is)
	assert.Equal(t, []string{"jane", "open:sesame"}, []string{user, password})
	assert.Equal(t, "Basic [redacted] is [redacted] of jane", outbound.Redact(request.Header.Get("Authorization")+" is open:sesame of jane", credentials))

	for sentence, username := range map[string]*fleetflowv1alpha1.MetricSourceSecret{
		"the username in Secret a has a colon": in("both"), "Secret a has no key user": in("user"), "auth of type Basic needs a username": nil,
	} {
		source.Spec.Auth.Username = username
		request = httptest.NewRequest(http.MethodPost, "/", http.NoBody)
		_, problem, err = s.AddCredentials(t.Context(), serverOf(source), request, "", nil)
		require.NoError(t, err)
		assert.Contains(t, problem, sentence)
		assert.Empty(t, request.Header.Get("Authorization"))
	}
}

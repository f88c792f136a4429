package metricsource

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatASourceSaysShowsNoCredentialsAndNoCommands(t *testing.T) {
	const secret = "tk-0123456789"
	for body, want := range map[string]string{
		`{"outcome":"Failure","message":"you said Bearer tk-0123456789"}`:   "you said Bearer [redacted]",
		`{"outcome":"Failure","message":"tk-\u00000123456789 hid"}`:         "[redacted] hid",
		`{"outcome":"Failure","message":"a\nb\tc\u001b[31mred\u202edlrow"}`: "a b c[31mreddlrow",
	} {
		got := readWebhook(&answer{status: 200, body: []byte(body), credentials: []string{secret}})
		assert.Equal(t, want, got.Message, body)
	}
	got := readWebhook(&answer{status: 200, body: []byte(`{"outcome":"tk-0123456789"}`), credentials: []string{secret}})
	assert.NotContains(t, got.Problem, "tk-01")
}

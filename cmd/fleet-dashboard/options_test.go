package main

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFlagsThatDoNotGoTogetherAreNamed(t *testing.T) {
	const url, keys, issuer = "--url=https://fleet.example.com", "--session-keys=/keys", "--oidc-issuer-url=https://id.example.com"
	for sentence, test := range map[string]struct{ args, want string }{
		"no URL":                     {"--allow-tokens " + keys, "--url is required"},
		"a URL with a path":          {"--allow-tokens --url=https://fleet.example.com/x " + keys, "it must be a scheme and a host"},
		"plain http":                 {"--allow-tokens --url=http://fleet.example.com " + keys, "use https, or --insecure-cookies for a trial"},
		"no way in":                  {url + " " + keys, "say how users log in"},
		"no keys":                    {url + " --allow-tokens", "one of --session-keys and --session-secret is required"},
		"keys in two places":         {url + " --allow-tokens --session-secret=fleet-system/keys " + keys, "one of --session-keys and --session-secret is required"},
		"a Secret of no namespace":   {url + " --allow-tokens --session-secret=keys", `--session-secret is "keys"; it must be <namespace>/<name>`},
		"anyone who could write":     {url + " --anonymous-read-only=guest --allow-tokens", "leave out --oidc-issuer-url and --allow-tokens, or it"},
		"anyone as an administrator": {url + " --anonymous-read-only=system:admin", "names of Kubernetes itself are not for people"},
		"no client":                  {url + " " + keys + " " + issuer, "--oidc-client-id is required"},
		"an issuer over http":        {url + " " + keys + " --oidc-issuer-url=http://id.example.com --oidc-client-id=x", "it must be a URL of https"},
		"a pattern that is none":     {url + " " + keys + " " + issuer + " --oidc-client-id=x --oidc-keep-groups=[", "which is no pattern"},
		"a session of a week":        {url + " --allow-tokens --session-duration=168h " + keys, "at most 12h0m0s"},
		"half of a certificate":      {url + " --allow-tokens --tls-cert-file=x " + keys, "belong together"},
		"a script for Temporal":      {url + " --allow-tokens --temporal-ui=javascript:alert(1) " + keys, "it must be a URL such as"},
		"a word":                     {"serve", `"serve" is no flag`},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parseOptions(strings.Fields(test.args), io.Discard)
			assert.ErrorContains(t, err, test.want)
		})
	}
	o, err := parseOptions([]string{"--url=https://Fleet.example.com:443", keys, issuer, "--oidc-client-id=x", "--oidc-keep-groups=fleet-*, team-a"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, list{"fleet-*", "team-a"}, o.keepGroups)
	assert.Equal(t, "Fleet.example.com", hostOf(o))
}

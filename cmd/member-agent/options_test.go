package main

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

const pem = "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n"

// environment returns a look-up of a complete environment with these changes; an empty value
// takes a variable away.
func environment(changes map[string]string) func(string) (string, bool) {
	all := map[string]string{envCluster: "one", envHubURL: "https://hub.example.com:6443", envTokenFile: "/token"}
	maps.Copy(all, changes)
	return func(name string) (string, bool) { value, ok := all[name]; return value, ok && value != "" }
}

func TestParseSaysWhatIsMissing(t *testing.T) {
	tests := map[string]struct {
		args    []string
		changes map[string]string
		want    []string // parts of the message; none if all is well
	}{
		"a complete environment is enough": {},
		"what is missing is named, all of it": {
			changes: map[string]string{envCluster: "", envHubURL: "", envTokenFile: ""}, want: []string{envCluster, envHubURL, envTokenFile},
		},
		"an address without a scheme is refused":       {changes: map[string]string{envHubURL: "hub:6443"}, want: []string{envHubURL, `"hub:6443"`}},
		"an address without encryption is refused":     {changes: map[string]string{envHubURL: "http://hub:6443"}, want: []string{envHubURL, "is not https: the agent shows its token there"}},
		"a CA that is nothing of the kind is refused":  {changes: map[string]string{envHubCA: "nonsense"}, want: []string{envHubCA, "neither"}},
		"the other variable is named if it is used":    {changes: map[string]string{envCABundle: "nonsense"}, want: []string{envCABundle}},
		"an unknown log format is refused":             {args: []string{"--log-format=xml"}, want: []string{`"xml"`}},
		"an unknown propagation policy is refused":     {args: []string{"--prune-propagation-policy=Sideways"}, want: []string{`"Sideways"`, "Foreground"}},
		"a property provider it does not have":         {args: []string{"--property-provider=azure"}, want: []string{`"azure"`, "this agent has none"}},
		"no property provider at all":                  {args: []string{"--property-provider=none"}},
		"a Secret for the token does without the file": {args: []string{"--hub-token-secret=default/s"}, changes: map[string]string{envTokenFile: ""}},
		"a Secret without a namespace is refused":      {args: []string{"--hub-token-secret=s"}, want: []string{"--hub-token-secret", "<namespace>/<name>"}},
		"a denied kind that is written as a resource":  {args: []string{"--denied-kinds=secrets"}, want: []string{`"secrets"`, "such as Secret or Deployment.apps"}},
		"a denied kind without its group":              {args: []string{"--denied-kinds=Secret,Deployment"}, want: []string{`"Deployment"`, "name its group"}},
		"an allowed kind without its group":            {args: []string{"--allowed-kinds=Ingress"}, want: []string{"name its group"}},
		"a denied namespace that could be none":        {args: []string{"--denied-namespaces=istio_system"}, want: []string{"no name of a namespace"}},
		"a scope without namespaces":                   {args: []string{"--scope=Namespaced"}, want: []string{"--namespaces is empty"}},
		"namespaces without a scope":                   {args: []string{"--namespaces=team"}, want: []string{"--scope is Cluster"}},
		"an unknown scope":                             {args: []string{"--scope=All"}, want: []string{"it must be Cluster or Namespaced"}},
		"no name of a namespace in scope":              {args: []string{"--scope=Namespaced", "--namespaces=a_b"}, want: []string{`"a_b" is no name of a namespace`}},
		"a scope with its namespaces is not":           {args: []string{"--scope=Namespaced", "--namespaces=team-a, team-b"}},
		"a veto that makes sense is not":               {args: []string{"--allowed-kinds=*", "--denied-kinds=*.rbac.authorization.k8s.io, Secret", "--denied-namespaces=istio-*,team"}},
		"a known one is not":                           {args: []string{"--prune-propagation-policy=Orphan", "--reconcile-timeout=15m", "--prune-timeout=1m"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseOptions(tc.args, environment(tc.changes))
			if len(tc.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, part := range tc.want {
				assert.ErrorContains(t, err, part)
			}
		})
	}
}

func TestHubConfigFindsTheAuthority(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(file, []byte(pem), 0o600))
	tests := map[string]struct {
		args       []string
		changes    map[string]string
		file, data string
		insecure   bool
	}{
		"none uses the system's":          {},
		"as a file":                       {changes: map[string]string{envHubCA: file}, file: file},
		"as text":                         {changes: map[string]string{envHubCA: pem}, data: "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----"},
		"as text in base64":               {changes: map[string]string{envHubCA: base64.StdEncoding.EncodeToString([]byte(pem))}, data: pem},
		"from the older variable":         {changes: map[string]string{envCABundle: file}, file: file},
		"not at all if told not to check": {args: []string{"--tls-insecure"}, changes: map[string]string{envHubCA: file}, insecure: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			o, err := parseOptions(tc.args, environment(tc.changes))
			require.NoError(t, err)
			store, err := o.tokenStore(&rest.Config{})
			require.NoError(t, err)
			config := o.hubConfig(store)
			assert.Equal(t, "https://hub.example.com:6443", config.Host)
			assert.Equal(t, "/token", config.BearerTokenFile)
			assert.Equal(t, tc.file, config.CAFile)
			assert.Equal(t, tc.data, string(config.CAData))
			assert.Equal(t, tc.insecure, config.Insecure)
		})
	}
}

func TestTheVersionNeedsNothingElse(t *testing.T) {
	o, err := parseOptions([]string{"--version"}, func(string) (string, bool) { return "", false })
	require.NoError(t, err)
	assert.True(t, o.Version)
}

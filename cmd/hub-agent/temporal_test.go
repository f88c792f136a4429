package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/controllers/hub/temporalclient"
)

func TestMistakesInTheConnectionToTemporalAreNamed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	const bundled = "--temporal-mode=Bundled"
	const off = "--temporal-approvals=off"
	for sentence, test := range map[string]struct {
		args []string
		want []string
	}{
		"an address without a port": {[]string{"--temporal-address=temporal"}, []string{`--temporal-address is "temporal"`, "host:port"}},
		"an address that is a URL":  {[]string{"--temporal-address=https://temporal:7233"}, []string{"--temporal-address"}},
		"no namespace":              {[]string{"--temporal-namespace="}, []string{"--temporal-namespace must not be empty"}},
		"approvals of any sender over an unencrypted connection": {[]string{"--temporal-approvals=any", "--temporal-address=temporal.example.com:7233"},
			[]string{"--temporal-approvals=any lets every client that reaches Temporal approve, and the connection to temporal.example.com:7233 is not encrypted: use --temporal-approvals=verified, or encrypt the connection with --temporal-tls"}},
		"a certificate without a key":              {[]string{"--temporal-tls-cert-file=" + empty}, []string{"--temporal-tls-cert-file needs --temporal-tls-key-file"}},
		"a key without a certificate":              {[]string{"--temporal-tls-key-file=" + empty}, []string{"--temporal-tls-key-file needs --temporal-tls-cert-file"}},
		"a certificate that is none":               {[]string{"--temporal-tls-cert-file=" + empty, "--temporal-tls-key-file=" + empty}, []string{"--temporal-tls-cert-file and --temporal-tls-key-file: "}},
		"a CA that does not exist":                 {[]string{"--temporal-tls-ca-file=/nowhere/ca.crt"}, []string{"--temporal-tls-ca-file: ", "/nowhere/ca.crt"}},
		"a CA that is none":                        {[]string{"--temporal-tls-ca-file=" + empty}, []string{"--temporal-tls-ca-file: ", "no certificate in PEM"}},
		"an API key that does not exist":           {[]string{"--temporal-api-key-file=/nowhere/key"}, []string{"--temporal-api-key-file: ", "/nowhere/key"}},
		"an API key that is empty":                 {[]string{"--temporal-api-key-file=" + empty}, []string{"--temporal-api-key-file: ", "is empty"}},
		"a mode that does not exist":               {[]string{"--temporal-mode=Own"}, []string{`--temporal-mode is "Own"; it must be Bundled or External`}},
		"builds where controllers have no workers": {[]string{"--temporal-worker-versions", "--role=controllers"}, []string{"--temporal-worker-versions has the agent that leads", "--role"}},
		"builds with the bundled one":              {[]string{bundled, off, "--temporal-worker-versions"}, []string{"--temporal-mode=External"}},
		"a build that is not asked for":            {[]string{"--temporal-build=mine"}, []string{"--temporal-build names a build for --temporal-worker-versions, which is not set"}},
		"the bundled one elsewhere":                {[]string{bundled, off, "--temporal-address=temporal:7233"}, []string{"takes the Temporal of this machine", "temporal:7233"}},
		"the bundled one, encrypted":               {[]string{bundled, off, "--temporal-tls"}, []string{"takes the Temporal of this machine"}},
		"the bundled one and verified":             {[]string{bundled}, []string{"--temporal-approvals=verified takes no approval with --temporal-mode=Bundled"}},
		"the bundled one and workers":              {[]string{bundled, off, "--role=worker"}, []string{"leave --role as it is"}},
		"the bundled one without a lease":          {[]string{bundled, off, "--leader-elect=false"}, []string{"set --leader-elect"}},
		"patience below zero":                      {[]string{bundled, off, "--temporal-patience=-1s"}, []string{"must not be negative"}},
		"a cache below zero":                       {[]string{"--workflow-cache-size=-1"}, []string{"must not be negative"}},
		"patience with one that is shared":         {[]string{"--temporal-patience=2m"}, []string{"--temporal-patience is for --temporal-mode=Bundled"}},
		"all mistakes, not just the first":         {[]string{"--temporal-namespace=", "--temporal-api-key-file=" + empty}, []string{"--temporal-namespace", "--temporal-api-key-file"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parseOptions(test.args, io.Discard, nothing)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestApprovalsOfAnySenderNeedAnEncryptedConnectionUnlessTemporalIsOnThisMachine(t *testing.T) {
	for sentence, args := range map[string][]string{
		"encrypted":               {"--temporal-address=temporal.example.com:7233", "--temporal-tls"},
		"by name on this machine": {"--temporal-address=localhost:7233"},
		"by address":              {"--temporal-address=127.0.0.1:7233"},
		"by an address of IPv6":   {"--temporal-address=[::1]:7233"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := parseOptions(append(args, "--temporal-approvals=any"), io.Discard, nothing)
			assert.NoError(t, err)
		})
	}
}

func TestTheBundledTemporalIsStartedAnewFasterThanASharedOne(t *testing.T) {
	o, err := parseOptions([]string{"--temporal-mode=Bundled", "--temporal-approvals=any", "--temporal-patience=2m", "--leader-elect"}, io.Discard, nothing)
	require.NoError(t, err)
	assert.True(t, o.temporal.bundled())
	assert.Equal(t, 100, o.temporal.auditPokes())
	o, err = parseOptions([]string{"--temporal-mode=External"}, io.Discard, nothing)
	require.NoError(t, err)
	assert.Zero(t, o.temporal.auditPokes())
}

func TestTheTemporalNamespaceIsTheFleetsOwn(t *testing.T) {
	o, err := parseOptions(nil, io.Discard, nothing)
	require.NoError(t, err)
	assert.Equal(t, "fleetflow", o.temporal.namespace)
}

func TestTheAPIKeyIsOfTheFileOrElseOfTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("of the file\n"), 0o600))
	environment := func(name string) (string, bool) { return " of the environment ", name == envTemporalAPIKey }

	o, err := parseOptions(nil, io.Discard, environment)
	require.NoError(t, err)
	assert.Equal(t, temporalclient.Security{APIKey: "of the environment"}, o.temporal.security)
	assert.True(t, o.temporal.security.Encrypted(), "a key is not sent in plain text")

	o, err = parseOptions([]string{"--temporal-api-key-file=" + file}, io.Discard, environment)
	require.NoError(t, err)
	assert.Equal(t, temporalclient.Security{APIKeyFile: file}, o.temporal.security)

	o, err = parseOptions(nil, io.Discard, nothing)
	require.NoError(t, err)
	assert.False(t, o.temporal.security.Encrypted())
}

func TestABuildHasANameWhereTemporalTellsBuildsApart(t *testing.T) {
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"builds are not told apart": {nil, "^$"},
		"the program is named":      {[]string{"--temporal-worker-versions"}, `^\S+-[0-9a-f]{12}$`},
		"the name is given":         {[]string{"--temporal-worker-versions", "--temporal-build=mine"}, "^mine$"},
	} {
		o, err := parseOptions(test.args, io.Discard, func(string) (string, bool) { return "", false })
		require.NoError(t, err, sentence)
		assert.Regexp(t, test.want, o.temporal.build, sentence)
	}
}

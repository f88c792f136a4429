// Package terminal runs commands of the plugin against a hub in memory, at a time that stands still, and keeps what they print. No
// production code imports it.
package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// Now is when all tests take place.
var Now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// Ago is a time before that.
func Ago(d time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-d)) }

// Console runs commands against a hub in memory and keeps what they print.
type Console struct {
	T        *testing.T
	Hub      client.WithWatch
	Contexts map[string]client.WithWatch
	Out, Err bytes.Buffer
	Stdin    string
	// Kubernetes is the version of the hub, Discover says what it serves.
	Kubernetes string
	Discover   func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// New returns a console for a hub with these objects.
func New(t *testing.T, objects ...client.Object) *Console {
	t.Helper()
	return &Console{T: t, Hub: InMemory(objects...), Kubernetes: "v1.36.3", Discover: Discovered}
}

// Factory is what commands of the console work with. What was printed before is forgotten.
func (c *Console) Factory() (*cli.Factory, genericiooptions.IOStreams) {
	f := cli.NewFactory()
	f.Clock = testingclock.NewFakeClock(Now)
	f.Configure = func(kubeContext string) (*rest.Config, error) { return &rest.Config{Host: kubeContext}, nil }
	f.Connect = func(config *rest.Config) (client.WithWatch, error) {
		if config.Host == "" {
			return c.Hub, nil
		}
		require.Contains(c.T, c.Contexts, config.Host, "a context that the test does not have")
		return c.Contexts[config.Host], nil
	}
	f.Mapper = func() (meta.RESTMapper, error) { return ServedKinds(), nil }
	f.Discover = c.Discover
	f.ServerVersion = func() (string, error) { return c.Kubernetes, nil }
	c.Out.Reset()
	c.Err.Reset()
	return f, genericiooptions.IOStreams{In: strings.NewReader(c.Stdin), Out: &c.Out, ErrOut: &c.Err}
}

// Run runs a command with a command line and returns its error.
func (c *Console) Run(make func(*cli.Factory, genericiooptions.IOStreams) *cobra.Command, args ...string) error {
	c.T.Helper()
	cmd := make(c.Factory())
	cmd.SetArgs(args)
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	return cmd.ExecuteContext(c.T.Context())
}

// Golden compares what was printed with testdata/<name>; UPDATE_GOLDEN=1 writes that file.
func (c *Console) Golden(name string) {
	c.T.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(c.T, os.MkdirAll("testdata", 0o750))
		require.NoError(c.T, os.WriteFile(path, c.Out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path) //nolint:gosec // a test names it
	require.NoError(c.T, err, "write it with UPDATE_GOLDEN=1")
	assert.Equal(c.T, string(want), c.Out.String())
}

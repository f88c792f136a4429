package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// now is when all tests take place.
var now = time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)

// ago is a time before that.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// console runs commands against a hub in memory and keeps what they print.
type console struct {
	t        *testing.T
	hub      client.WithWatch
	contexts map[string]client.WithWatch
	out, err bytes.Buffer
	stdin    string
	// kubernetes is the version of the hub, discover says what it serves, lacking what its definitions lack.
	kubernetes string
	discover   func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
	lacking    []definitions.Gap
}

// newConsole returns a console for a hub with these objects.
func newConsole(t *testing.T, objects ...client.Object) *console {
	t.Helper()
	return &console{t: t, hub: inMemory(objects...), kubernetes: "v1.36.3", discover: discovered}
}

func inMemory(objects ...client.Object) client.WithWatch {
	scheme := cli.Scheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	builder := fixture.NewClientBuilder(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(objects...)
	// API servers select by name without being told.
	name := func(object client.Object) []string { return []string{object.GetName()} }
	for _, kind := range []client.Object{
		&placementv1beta1.ClusterStagedUpdateRun{}, &placementv1beta1.StagedUpdateRun{},
		&placementv1beta1.ClusterResourcePlacement{}, &placementv1beta1.ResourcePlacement{}, &coordinationv1.Lease{}, &corev1.Namespace{},
	} {
		builder = builder.WithIndex(kind, "metadata.name", name)
	}
	return builder.WithInterceptorFuncs(interceptor.Funcs{Patch: fixture.PatchAsAPIServer, Create: createOrReview}).Build()
}

// createOrReview creates an object, and answers the questions who the user is and what he may do: all.
func createOrReview(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if review, is := object.(*authenticationv1.SelfSubjectReview); is {
		review.Status.UserInfo.Username = "jane"
		return nil
	}
	if review, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
		review.Status.Allowed = true
		return nil
	}
	return c.Create(ctx, object, options...)
}

// noHub answers as a cluster without the fleet's kinds.
func noHub(of client.WithWatch) client.WithWatch {
	unserved := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: placementv1beta1.GroupName, Kind: "Any"}}
	return interceptor.NewClient(of, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unserved
		},
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return unserved
		},
	})
}

// run runs a command line and returns its error.
func (c *console) run(args ...string) error {
	c.t.Helper()
	f, streams := c.factory()
	root := NewRoot(f, streams)
	root.SetArgs(args)
	return root.ExecuteContext(c.t.Context())
}

// factory is what commands of the console work with. What was printed before is forgotten.
func (c *console) factory() (*cli.Factory, genericiooptions.IOStreams) {
	f := cli.NewFactory()
	f.Clock = testingclock.NewFakeClock(now)
	f.Configure = func(kubeContext string) (*rest.Config, error) { return &rest.Config{Host: kubeContext}, nil }
	f.Connect = func(config *rest.Config) (client.WithWatch, error) {
		if config.Host == "" {
			return c.hub, nil
		}
		require.Contains(c.t, c.contexts, config.Host, "a context that the test does not have")
		return c.contexts[config.Host], nil
	}
	f.Mapper = func() (meta.RESTMapper, error) { return servedKinds(), nil }
	f.Discover = c.discover
	f.Lacking = func(context.Context) ([]definitions.Gap, error) { return c.lacking, nil }
	f.ServerVersion = func() (string, error) { return c.kubernetes, nil }
	c.out.Reset()
	c.err.Reset()
	return f, genericiooptions.IOStreams{In: strings.NewReader(c.stdin), Out: &c.out, ErrOut: &c.err}
}

// golden compares what was printed with testdata/<name>; UPDATE_GOLDEN=1 writes that file.
func (c *console) golden(name string) {
	c.t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(c.t, os.MkdirAll("testdata", 0o755))
		require.NoError(c.t, os.WriteFile(path, c.out.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(c.t, err, "write it with UPDATE_GOLDEN=1")
	assert.Equal(c.t, string(want), c.out.String())
}

// object reads an object from YAML.
func object[T any](t *testing.T, text string) *T {
	t.Helper()
	into := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), into))
	return into
}

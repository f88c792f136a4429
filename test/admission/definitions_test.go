//go:build integration

package admission

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
	"github.com/fleetflow/fleetflow/cmd/agent"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	// suspended is a placement that changes no cluster, as long as the hub has the field that says so.
	suspended = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: suspended},
  spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}], policy: {placementType: PickAll}, strategy: {suspension: {all: true}}}}`
	// dropped is how the loss is told.
	dropped = "ClusterResourcePlacement.placement.kubernetes-fleet.io v1beta1: spec."
	// mended is what to do about it.
	mended = "helm show crds <chart hub-agent> | kubectl apply --server-side --force-conflicts -f -"
)

// TestKubeFleetsDefinitionsOverOurs has KubeFleet's definitions applied over ours. An agent that works ends, one that is started waits,
// and both say which fields of which kinds are gone and what to do; so does the plugin. What was stored is as it was once the definitions
// are mended.
func TestKubeFleetsDefinitionsOverOurs(t *testing.T) {
	fleet, down, err := start(t.TempDir())
	t.Cleanup(down)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	require.NoError(t, controlplane.SetUpHub(ctx, fleet, root))
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	s, err := newSession(config)
	require.NoError(t, err)
	resource, err := s.resource(parse(t, suspended))
	require.NoError(t, err)
	_, err = resource.Create(t.Context(), parse(t, suspended), strict())
	require.NoError(t, err)
	isSuspended := func() bool {
		stored, err := resource.Get(t.Context(), "suspended", metav1.GetOptions{})
		require.NoError(t, err)
		found, _, err := unstructured.NestedBool(stored.Object, "spec", "strategy", "suspension", "all")
		require.NoError(t, err)
		return found
	}
	require.True(t, isSuspended())

	working, err := (&agent.Process{}).AwaitDefinitions(t.Context(), config, s.Scheme(), logr.Discard())
	require.NoError(t, err, "our definitions lack nothing")
	ended := make(chan error, 1)
	go func() { ended <- working.Start(t.Context()) }()
	applyKubeFleetsDefinitions(t, s)
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		require.Fail(t, "the agent goes on")
	}
	require.ErrorContains(t, err, dropped)
	assert.ErrorContains(t, err, "spec.strategy.suspension")
	assert.ErrorContains(t, err, mended)
	assert.False(t, isSuspended(), "the test proves nothing")

	address := freeAddress(t)
	waiting := &agent.Process{}
	flags := flag.NewFlagSet("agent", flag.ContinueOnError)
	waiting.Add(flags, agent.Defaults{})
	require.NoError(t, flags.Parse([]string{"-health-probe-bind-address=" + address}))
	var said bytes.Buffer
	begun := make(chan error, 1)
	go func() {
		_, err := waiting.AwaitDefinitions(t.Context(), config, s.Scheme(), funcr.New(func(_, line string) { said.WriteString(line) }, funcr.Options{}))
		begun <- err
	}()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		answer := readyz(t, address)
		assert.Contains(c, answer, "503 the definitions of ")
		assert.Contains(c, answer, dropped)
		assert.Contains(c, answer, mended)
	}, time.Minute, 10*time.Millisecond)
	assert.Empty(t, begun)
	assert.Contains(t, checkOf(t, fleet), "FieldsMissing")
	assert.Contains(t, checkOf(t, fleet), dropped)

	require.NoError(t, controlplane.InstallDefinitions(fleet, state.Hub, filepath.Join(root, "deploy", "charts", "hub-agent")))
	select {
	case err = <-begun:
	case <-time.After(time.Minute):
		require.Fail(t, "the agent goes on waiting", readyz(t, address))
	}
	require.NoError(t, err)
	assert.Contains(t, said.String(), dropped, "the log says it, too")
	assert.NotContains(t, checkOf(t, fleet), "FieldsMissing")
	assert.True(t, isSuspended(), "nothing has written the placement without the field")
}

// applyKubeFleetsDefinitions updates the definitions of KubeFleet's kinds to those that have KubeFleet's fields.
func applyKubeFleetsDefinitions(t *testing.T, s *session) {
	t.Helper()
	definitions := s.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	listed, err := definitions.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	changed := 0
	for _, item := range listed.Items {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			latest, err := definitions.Get(t.Context(), item.GetName(), metav1.GetOptions{})
			if err != nil {
				return err
			}
			definition := &apiextensionsv1.CustomResourceDefinition{}
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(latest.Object, definition))
			dropped := false
			for i := range definition.Spec.Versions {
				version := &definition.Spec.Versions[i]
				version.SelectableFields = nil // KubeFleet's have none
				if kind := definition.Spec.Names.Kind; kubefleet.KnowsSpec(kind, version.Name) {
					spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
					dropAdded(kind, version.Name, "spec", &spec)
					version.Schema.OpenAPIV3Schema.Properties["spec"] = spec
					version.Schema.OpenAPIV3Schema.XValidations = nil
					dropped = true
				}
			}
			if !dropped {
				return nil
			}
			changed++
			update, err := runtime.DefaultUnstructuredConverter.ToUnstructured(definition)
			require.NoError(t, err)
			_, err = definitions.Update(t.Context(), &unstructured.Unstructured{Object: update}, metav1.UpdateOptions{})
			return err
		})
		require.NoError(t, err, item.GetName())
	}
	require.GreaterOrEqual(t, changed, 10)
}

// dropAdded removes from a schema what KubeFleet's has not, and rules, which may ask for it.
func dropAdded(kind, version, path string, of *apiextensionsv1.JSONSchemaProps) {
	of.XValidations = nil
	for name, property := range of.Properties {
		at := path + "." + name
		if !kubefleet.HasField(kind, version, at) {
			delete(of.Properties, name)
			continue
		}
		dropAdded(kind, version, at, &property)
		of.Properties[name] = property
	}
	if of.Items != nil && of.Items.Schema != nil {
		dropAdded(kind, version, path+"[]", of.Items.Schema)
	}
}

// checkOf returns what `kubectl fleet check -o json` prints of a hub. How it ends is of no matter: nothing acts on this hub.
func checkOf(t *testing.T, fleet *state.Fleet) string {
	t.Helper()
	var out, complaints bytes.Buffer
	plugin := command.NewRoot(cli.NewFactory(), genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &complaints})
	plugin.SetArgs([]string{"check", "-o", "json", "--kubeconfig", fleet.Kubeconfig()})
	_ = plugin.ExecuteContext(t.Context())
	require.NotEmpty(t, out.String(), complaints.String())
	return out.String()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

// readyz returns the status and the answer of an agent that is asked whether it is ready; nothing if it does not answer.
func readyz(t *testing.T, address string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return fmt.Sprint(response.StatusCode, " ", string(body))
}

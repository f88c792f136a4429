package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

const (
	fieldManager = "devfleet"
	// establishEvery is short because the API server establishes a definition within a fraction of a second.
	establishEvery   = 50 * time.Millisecond
	establishTimeout = 30 * time.Second
)

// mutatingPolicies is what an API server serves that can note who creates and approves runs.
const mutatingPolicies = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// Scheme knows Kubernetes' own kinds and the fleet's.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(placementv1beta1.AddToScheme(scheme))
	utilruntime.Must(clusterv1beta1.AddToScheme(scheme))
	utilruntime.Must(fleetflowv1alpha1.AddToScheme(scheme))
	return scheme
}

// RESTConfig returns an administrator's access to a cluster of the fleet.
func RESTConfig(fleet *state.Fleet, cluster string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: fleet.Kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: cluster},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the access to %s: %w", cluster, err)
	}
	config.QPS = 100
	config.Burst = 200
	return config, nil
}

// Client returns an administrator's client of a cluster, which knows the fleet's kinds.
func Client(fleet *state.Fleet, cluster string) (client.WithWatch, error) {
	config, err := RESTConfig(fleet, cluster)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", cluster, err)
	}
	return c, nil
}

// SetUpHub gives the hub its system namespace, its definitions, the hub agent's access and one MemberCluster per member.
func SetUpHub(ctx context.Context, fleet *state.Fleet, root string) error {
	chart := filepath.Join(root, "deploy", "charts", "hub-agent")
	if err := InstallDefinitions(fleet, state.Hub, chart); err != nil {
		return err
	}
	c, err := Client(fleet, state.Hub)
	if err != nil {
		return err
	}
	if err := apply(ctx, c, namespaceNamed(SystemNamespace)); err != nil {
		return err
	}
	if err := GrantHub(ctx, c, root); err != nil {
		return err
	}
	for i := range fleet.Members {
		if err := apply(ctx, c, memberCluster(i+1)); err != nil {
			return err
		}
	}
	if notes, err := (served{c.RESTMapper()}).Has(mutatingPolicies); err != nil || !notes {
		return err
	}
	return awaitCreatorNoted(ctx, c)
}

// localValues has the values of the hub agent's chart say what the flags of the local hub agent say: metrics run Jobs in
// ChecksNamespace, and placements have PlacementDecisions. The agent may keep records,
// which --records has it do. What the chart gives an agent whose metrics read objects of the hub, it gives every agent. Runs without a state
// roll out on purpose here, and their creators are not warned.
func localValues(values map[string]any) {
	if analysis, is := values["analysis"].(map[string]any); is {
		analysis["jobNamespaces"] = []any{ChecksNamespace}
	}
	if runs, is := values["updateRuns"].(map[string]any); is {
		runs["defaultState"] = "Run"
	}
	if records, is := values["records"].(map[string]any); is {
		records["enabled"] = true
	}
	values["enablePlacementDecisions"] = true
}

// GrantHub gives the hub agent what its chart gives it: its rights, and the policies that guard the hub.
func GrantHub(ctx context.Context, c client.Client, root string) error {
	if err := apply(ctx, c, namespaceNamed(ChecksNamespace)); err != nil {
		return err
	}
	return grant(ctx, c, filepath.Join(root, "deploy", "charts", "hub-agent"), hubAgentUser, localValues)
}

// awaitCreatorNoted waits until the hub takes update runs. Its API server reads every five seconds which kinds its mutating
// policies may change; until it has read of runs, it refuses them as unavailable.
func awaitCreatorNoted(ctx context.Context, c client.Client) error {
	for _, version := range []string{placementv1beta1.GroupVersion.Version, "v1"} {
		run := &unstructured.Unstructured{}
		run.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterStagedUpdateRun"))
		run.SetAPIVersion(placementv1beta1.GroupVersion.Group + "/" + version)
		run.SetName("is-the-creator-noted")
		run.Object["spec"] = map[string]any{"placementName": "none", "stagedRolloutStrategyName": "none"}
		var refusal error
		err := wait.PollUntilContextTimeout(ctx, establishEvery, establishTimeout, true, func(ctx context.Context) (bool, error) {
			answer := run.DeepCopy()
			refusal = c.Create(ctx, answer, client.DryRunAll)
			return answer.GetAnnotations()[placementv1beta1.CreatorAnnotation] != "", nil
		})
		if err != nil {
			return fmt.Errorf("waiting for the hub to take update runs of version %s: %w", version, errors.Join(err, refusal))
		}
	}
	return nil
}

// SetUpNodes gives a cluster simulated nodes, if it is to have any.
func SetUpNodes(ctx context.Context, fleet *state.Fleet, cluster string) error {
	if cluster == state.Hub || fleet.IsReal(cluster) { // kubelet makes its own
		return nil
	}
	c, err := Client(fleet, cluster)
	if err != nil {
		return err
	}
	for i := range nodesPerMember {
		if err := ensureNode(ctx, c, node(fmt.Sprintf("%s-node-%d", cluster, i+1), i)); err != nil {
			return err
		}
	}
	return nil
}

// SetUpMember gives a member its nodes, its definitions and its agent's access.
func SetUpMember(ctx context.Context, fleet *state.Fleet, root, member string) error {
	if err := SetUpNodes(ctx, fleet, member); err != nil {
		return err
	}
	c, err := Client(fleet, member)
	if err != nil {
		return err
	}
	chart := filepath.Join(root, "deploy", "charts", "member-agent")
	if err := InstallDefinitions(fleet, member, chart); err != nil {
		return err
	}
	return Grant(ctx, c, chart, memberAgentUser)
}

// InstallDefinitions gives a cluster the definitions of a chart and returns when their kinds are served.
func InstallDefinitions(fleet *state.Fleet, cluster, chart string) error {
	config, err := RESTConfig(fleet, cluster)
	if err != nil {
		return err
	}
	_, err = envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(chart, "crds")}, ErrorIfPathMissing: true, MaxTime: establishTimeout, PollInterval: establishEvery,
	})
	if err != nil {
		return fmt.Errorf("installing the definitions of %s: %w", filepath.Base(chart), err)
	}
	return nil
}

// ensureNode creates a node and gives it a size, once: from then on KWOK writes its status.
func ensureNode(ctx context.Context, c client.Client, wanted *unstructured.Unstructured) error {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for node %s: %w", wanted.GetName(), err)
	}
	if err := apply(ctx, c, wanted); err != nil {
		return err
	}
	if err := c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted.DeepCopy()), client.FieldOwner(fieldManager),
		client.ForceOwnership); err != nil {
		return fmt.Errorf("giving node %s its size: %w", wanted.GetName(), err)
	}
	return nil
}

// apply applies an object server-side; one that is already as wanted costs one request and no change. An API server reads every five seconds
// which kinds its mutating policies may change; until it has read of the kind it is not available, and is asked again.
func apply(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	var refusal error
	err := wait.PollUntilContextTimeout(ctx, establishEvery, establishTimeout, true, func(ctx context.Context) (bool, error) {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.FieldOwner(fieldManager), client.ForceOwnership)
		if apierrors.IsServiceUnavailable(err) {
			refusal = err
			return false, nil
		}
		return err == nil, err
	})
	if refusal != nil && wait.Interrupted(err) {
		err = refusal
	}
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("applying %s %s: the API server does not know the kind: %w", object.GetKind(), object.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

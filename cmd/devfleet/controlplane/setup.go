package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
)

const (
	fieldManager = "devfleet"
	// establishEvery is short because the API server establishes a definition within a fraction of a second.
	establishEvery   = 50 * time.Millisecond
	establishTimeout = 30 * time.Second
)

var (
	definitions    = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces     = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	nodes          = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	memberClusters = schema.GroupVersionResource{Group: "cluster.kubernetes-fleet.io", Version: "v1beta1", Resource: "memberclusters"}
)

// RESTConfig returns an administrator's access to a cluster of the fleet.
func RESTConfig(fleet *state.Fleet, cluster string) (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: fleet.Kubeconfig()},
		&clientcmd.ConfigOverrides{CurrentContext: cluster},
	).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the access to %s: %w", cluster, err)
	}
	config.QPS, config.Burst = 100, 200
	return config, nil
}

// Client returns an administrator's dynamic client of a cluster.
func Client(fleet *state.Fleet, cluster string) (dynamic.Interface, error) {
	config, err := RESTConfig(fleet, cluster)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", cluster, err)
	}
	return client, nil
}

// SetUpHub gives the hub its system namespace, its definitions, the hub agent's access and one MemberCluster per member.
func SetUpHub(ctx context.Context, fleet *state.Fleet, root string) error {
	client, err := Client(fleet, state.Hub)
	if err != nil {
		return err
	}
	if err := apply(ctx, client, namespaces, systemNamespace()); err != nil {
		return err
	}
	chart := filepath.Join(root, "deploy", "charts", "hub-agent")
	if err := applyDefinitions(ctx, client, filepath.Join(chart, "crds")); err != nil {
		return err
	}
	if err := Grant(ctx, client, chart, hubAgentUser); err != nil {
		return err
	}
	for i := range fleet.Members {
		if err := apply(ctx, client, memberClusters, memberCluster(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// SetUpMember gives a member its nodes, its definitions and its agent's access.
func SetUpMember(ctx context.Context, fleet *state.Fleet, root, member string) error {
	client, err := Client(fleet, member)
	if err != nil {
		return err
	}
	for i := range nodesPerMember {
		if err := ensureNode(ctx, client, node(fmt.Sprintf("%s-node-%d", member, i+1), i)); err != nil {
			return err
		}
	}
	chart := filepath.Join(root, "deploy", "charts", "member-agent")
	if err := applyDefinitions(ctx, client, filepath.Join(chart, "crds")); err != nil {
		return err
	}
	return Grant(ctx, client, chart, memberAgentUser)
}

// ensureNode creates a node and gives it a size, once: from then on KWOK writes its status.
func ensureNode(ctx context.Context, client dynamic.Interface, wanted *unstructured.Unstructured) error {
	_, err := client.Resource(nodes).Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for node %s: %w", wanted.GetName(), err)
	}
	if err := apply(ctx, client, nodes, wanted); err != nil {
		return err
	}
	if err := apply(ctx, client, nodes, wanted, "status"); err != nil {
		return err
	}
	return nil
}

// applyDefinitions applies every definition of a folder and returns when all are established.
func applyDefinitions(ctx context.Context, client dynamic.Interface, dir string) error {
	objects, err := readDefinitions(dir)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := apply(ctx, client, definitions, object); err != nil {
			return err
		}
	}
	for _, object := range objects {
		if err := awaitEstablished(ctx, client, object.GetName()); err != nil {
			return err
		}
	}
	return nil
}

func readDefinitions(dir string) ([]*unstructured.Unstructured, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the definitions: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) != ".yaml" {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a definition: %w", err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &object.Object); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", path, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func awaitEstablished(ctx context.Context, client dynamic.Interface, name string) error {
	err := wait.PollUntilContextTimeout(ctx, establishEvery, establishTimeout, true, func(ctx context.Context) (bool, error) {
		definition, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return conditionStatus(definition, "Established") == string(metav1.ConditionTrue), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for definition %s to be established: %w", name, err)
	}
	return nil
}

// conditionStatus returns the status of a condition, "" when the object has no such condition.
func conditionStatus(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	i := slices.IndexFunc(conditions, func(c any) bool {
		condition, ok := c.(map[string]any)
		return ok && condition["type"] == kind
	})
	if i < 0 {
		return ""
	}
	status, _, _ := unstructured.NestedString(conditions[i].(map[string]any), "status")
	return status
}

// apply applies an object server-side; a definition that is already as wanted costs one request and no change.
func apply(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource, object *unstructured.Unstructured, subresources ...string) error {
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	var resource dynamic.ResourceInterface = client.Resource(gvr)
	if object.GetNamespace() != "" {
		resource = client.Resource(gvr).Namespace(object.GetNamespace())
	}
	_, err := resource.Apply(ctx, object.GetName(), object.DeepCopy(), options, subresources...)
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("applying %s %s: the API server does not know the kind: %w", object.GetKind(), object.GetName(), err)
	}
	if err != nil {
		return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return nil
}

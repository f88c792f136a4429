// Package ceiling measures what a bare client needs to write what an update of a cluster takes on the hub: the binding, the
// Work, the status of the Work and that of the binding, each once and in this order. Nothing else happens: nothing
// decides, waits or remembers. The objects have the labels, annotations, finalizers and conditions of the real ones, so
// that what is left of the difference to an update run is what the product adds.
package ceiling

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/workmodel"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	namespace = "bench-ceiling"
	// WritesPerCluster is how many writes there are for each cluster.
	WritesPerCluster = 4
)

// Ceiling is a number of clusters to update. Nothing must act on the hub meanwhile but its API server.
type Ceiling struct {
	client   client.Client
	bindings []*placementv1beta1.ClusterResourceBinding
	works    []*placementv1beta1.Work
	round    int
}

// SetUp creates a binding and a Work for each of n clusters.
func SetUp(ctx context.Context, c client.Client, n int) (*Ceiling, error) {
	ceiling := &Ceiling{client: c, bindings: make([]*placementv1beta1.ClusterResourceBinding, n), works: make([]*placementv1beta1.Work, n)}
	if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating namespace %s: %w", namespace, err)
	}
	err := ceiling.each(ctx, n, func(ctx context.Context, i int) error {
		ceiling.bindings[i] = binding(i)
		ceiling.works[i] = work(i)
		if err := c.Create(ctx, ceiling.bindings[i]); err != nil {
			return fmt.Errorf("creating a binding: %w", err)
		}
		if err := c.Create(ctx, ceiling.works[i]); err != nil {
			return fmt.Errorf("creating a Work: %w", err)
		}
		return nil
	})
	return ceiling, err
}

// Clear deletes what SetUp has created.
func (c *Ceiling) Clear(ctx context.Context) error {
	return c.each(ctx, len(c.bindings), func(ctx context.Context, i int) error {
		for _, object := range []client.Object{c.bindings[i], c.works[i]} {
			if err := c.patch(ctx, object, "", operation{"replace", "/metadata/finalizers", []string{}}); client.IgnoreNotFound(err) != nil {
				return err
			}
			if err := client.IgnoreNotFound(c.client.Delete(ctx, object)); err != nil {
				return fmt.Errorf("deleting %T %s: %w", object, object.GetName(), err)
			}
		}
		return nil
	})
}

// Update makes the four writes for the first n clusters and returns how long that took.
func (c *Ceiling) Update(ctx context.Context, n int) (time.Duration, error) {
	c.round++
	began := time.Now()
	err := c.each(ctx, n, c.update)
	return time.Since(began), err
}

// atOnce is how many clusters are written to at the same time: as many as the product does.
const atOnce = 32

func (c *Ceiling) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (c *Ceiling) update(ctx context.Context, i int) error {
	binding := c.bindings[i]
	work := c.works[i]
	index := strconv.Itoa(c.round)
	snapshot := fmt.Sprintf("ceiling-%d-snapshot", c.round)
	if err := c.patch(ctx, binding, "", append(annotate(map[string]string{
		placementv1beta1.UpdateRunAnnotation: fmt.Sprintf("ceiling-%d", c.round), placementv1beta1.UpdateRunUIDAnnotation: string(uuid.NewUUID()),
		placementv1beta1.UpdateRunCreatedAnnotation: time.Now().Format(time.RFC3339),
	}), operation{"replace", "/spec/resourceSnapshotName", snapshot})...); err != nil {
		return err
	}
	if err := c.patch(ctx, work, "", append(annotate(map[string]string{
		placementv1beta1.BindingGenerationAnnotation:          strconv.FormatInt(binding.Generation, 10),
		placementv1beta1.RevisionAnnotation:                   "4613cfae663" + index,
		placementv1beta1.ParentResourceSnapshotNameAnnotation: snapshot, workmodel.RevisionTimeAnnotation: time.Now().Format(time.RFC3339),
	}), operation{"add", "/metadata/labels/" + escaped(placementv1beta1.ParentResourceSnapshotIndexLabel), index},
		operation{"add", "/spec", workSpec(c.round)})...); err != nil {
		return err
	}
	if err := c.patch(ctx, work, "status", operation{"add", "/status", workStatus(work.Generation)}); err != nil {
		return err
	}
	return c.patch(ctx, binding, "status", operation{"add", "/status", bindingStatus(binding.Generation)})
}

func annotate(annotations map[string]string) []operation {
	var all []operation
	for key, value := range annotations {
		all = append(all, operation{"add", "/metadata/annotations/" + escaped(key), value})
	}
	return all
}

func escaped(key string) string { return strings.ReplaceAll(key, "/", "~1") }

// patch changes an object, provided it is still the same one.
func (c *Ceiling) patch(ctx context.Context, object client.Object, subresource string, operations ...operation) error {
	content, err := json.Marshal(append([]operation{{"test", "/metadata/uid", object.GetUID()}}, operations...))
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	patch := client.RawPatch(types.JSONPatchType, content)
	if subresource == "" {
		err = c.client.Patch(ctx, object, patch)
	} else {
		err = c.client.SubResource(subresource).Patch(ctx, object, patch)
	}
	if err != nil {
		return fmt.Errorf("writing %T %s %s: %w", object, object.GetName(), subresource, err)
	}
	return nil
}

func binding(i int) *placementv1beta1.ClusterResourceBinding {
	cluster := fmt.Sprintf("ceiling-%04d", i)
	return &placementv1beta1.ClusterResourceBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: cluster, Finalizers: []string{placementv1beta1.WorkFinalizer},
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "staged-100-100-000"},
			Annotations: map[string]string{
				placementv1beta1.UpdateRunAnnotation: "none", placementv1beta1.UpdateRunUIDAnnotation: "none",
				placementv1beta1.UpdateRunCreatedAnnotation: "none",
			},
		},
		Spec: placementv1beta1.ResourceBindingSpec{
			State: placementv1beta1.BindingStateBound, ResourceSnapshotName: "ceiling-0-snapshot",
			SchedulingPolicySnapshotName: "ceiling-0", TargetCluster: cluster,
			ClusterDecision: placementv1beta1.ClusterDecision{
				ClusterName: cluster, Selected: true, ClusterScore: &placementv1beta1.ClusterScore{AffinityScore: new(int32),
					TopologySpreadScore: new(int32)},
				Reason: fmt.Sprintf("Successfully scheduled resources for placement in %q (affinity score: 0, topology spread score: 0): picked by scheduling policy", cluster),
			},
		},
	}
}

func work(i int) *placementv1beta1.Work {
	return &placementv1beta1.Work{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("ceiling-%04d", i), Namespace: namespace, Finalizers: []string{placementv1beta1.WorkFinalizer},
			Labels: map[string]string{
				placementv1beta1.ParentPlacementLabel:             "staged-100-100-000",
				placementv1beta1.ParentBindingLabel:               "staged-100-100-000-hollow-0000-ce4dcb0a",
				placementv1beta1.ParentResourceSnapshotIndexLabel: "0",
			},
			Annotations: map[string]string{
				placementv1beta1.BindingGenerationAnnotation: "0", placementv1beta1.BindingUIDAnnotation: "d2540f87-e312-469e-869a-9c51f9319b1f",
				placementv1beta1.ParentResourceSnapshotNameAnnotation: "ceiling-0-snapshot", placementv1beta1.RevisionAnnotation: "4613cfae6630",
				workmodel.RevisionTimeAnnotation: "2026-11-21T23:32:45Z", placementv1beta1.WorkCountAnnotation: "1",
			},
		},
		Spec: workSpec(0),
	}
}

func workSpec(round int) placementv1beta1.WorkSpec {
	return placementv1beta1.WorkSpec{Workload: placementv1beta1.WorkloadTemplate{Manifests: manifests(round)}}
}

func manifests(round int) []placementv1beta1.Manifest {
	raw := func(text string) placementv1beta1.Manifest {
		return placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}}
	}
	return []placementv1beta1.Manifest{
		raw(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"bench","labels":{"kubernetes.io/metadata.name":"bench"}},"spec":{"finalizers":["kubernetes"]}}`),
		raw(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bench","namespace":"bench"},"data":{"key":"value-%d"}}`, round)),
	}
}

func conditions(generation int64, kinds ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range kinds {
		all = append(all, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "Ceiling", ObservedGeneration: generation,
			LastTransitionTime: metav1.Now(), Message: "A message of about the length that such messages have",
		})
	}
	return all
}

func workStatus(generation int64) placementv1beta1.WorkStatus {
	both := []string{placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable}
	return placementv1beta1.WorkStatus{
		Conditions: conditions(generation, both...),
		ManifestConditions: []placementv1beta1.ManifestCondition{
			{Identifier: placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "Namespace", Name: "bench"},
				Conditions: conditions(1, both...)},
			{Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: 1, Version: "v1", Kind: "ConfigMap", Namespace: "bench", Name: "bench"},
				Conditions: conditions(1, both...)},
		},
	}
}

func bindingStatus(generation int64) placementv1beta1.ResourceBindingStatus {
	return placementv1beta1.ResourceBindingStatus{Conditions: conditions(generation,
		placementv1beta1.ConditionTypeRolloutStarted, placementv1beta1.ConditionTypeOverridden, placementv1beta1.ConditionTypeWorkSynchronized,
		placementv1beta1.ConditionTypeApplied, placementv1beta1.ConditionTypeAvailable)}
}

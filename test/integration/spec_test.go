//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// logLines is how much of the hub agent's log a failed spec prints.
	logLines = 40
	// printTimeout bounds the printing of a failed spec's objects.
	printTimeout = time.Minute
)

// spec is one spec: a test with names that no other spec uses.
type spec struct {
	*testing.T
	*fleet
	// name is that of the placement, of its namespace and of its strategy; runs begin with it.
	name string
	// blinded says that the hub's API server was away, so that recordings have gaps.
	blinded bool
}

// began tells runs of the suite on one fleet apart, count the specs of this run.
var (
	began = time.Now().Unix() % 1_000_000
	count atomic.Int32
)

// newSpec gives a test names of its own and sees to what is left when it ends.
func newSpec(t *testing.T) *spec {
	t.Helper()
	s := &spec{T: t, fleet: shared, name: fmt.Sprintf("it%d-%d", began, count.Add(1))}
	t.Cleanup(func() {
		// The test's own context is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), printTimeout)
		defer cancel()
		if t.Failed() {
			s.explain(ctx)
		}
		s.remove(ctx)
	})
	return s
}

// create creates an object on the hub.
func (s *spec) create(object client.Object) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	require.NoError(s, access.CreateWhenAdmitted(ctx, s.hub, object), "creating %T %s", object, object.GetName())
}

// updateBackoff has a change tried again for about as long as a spec waits for anything.
var updateBackoff = wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.1, Steps: 22}

// update changes an object on a cluster, again if another writer was faster.
func update[T client.Object](s *spec, c *cluster, object T, change func(T)) T {
	s.Helper()
	err := retry.RetryOnConflict(updateBackoff, func() error {
		if err := c.Get(s.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return c.Update(s.Context(), object)
	})
	require.NoError(s, err, "updating %T %s", object, object.GetName())
	return object
}

// delete deletes an object on a cluster.
func (s *spec) delete(c *cluster, object client.Object) {
	s.Helper()
	require.NoError(s, c.Delete(s.Context(), object), "deleting %T %s on %s", object, object.GetName(), c.name)
}

// mine selects what was made for the spec's placement.
func (s *spec) mine() client.MatchingLabels {
	return client.MatchingLabels{placementv1beta1.ParentPlacementLabel: s.name}
}

// owns says whether a name is one of the spec's.
func (s *spec) owns(name string) bool { return name == s.name || strings.HasPrefix(name, s.name+"-") }

// remove deletes what the spec has made on the hub, and what stayed on members, so that a long run does not pile objects up.
func (s *spec) remove(ctx context.Context) {
	s.acceptRemovals(ctx)
	for _, list := range []client.ObjectList{
		&fleetflowv1alpha1.RolloutHoldList{},
		&placementv1beta1.ClusterStagedUpdateRunList{}, &placementv1beta1.ClusterResourcePlacementList{},
		&placementv1beta1.ClusterResourceOverrideList{}, &placementv1beta1.ClusterStagedUpdateStrategyList{}, &rbacv1.ClusterRoleList{}, &corev1.NamespaceList{},
		&placementv1beta1.ClusterResourceEnvelopeList{}, &placementv1beta1.ClusterResourcePlacementEvictionList{},
		&placementv1beta1.ClusterResourcePlacementDisruptionBudgetList{},
	} {
		s.removeAll(ctx, s.hub, list)
	}
	for _, member := range s.members {
		s.removeAll(ctx, member, &corev1.NamespaceList{})
	}
}

// acceptRemovals has placements in the spec's namespaces end with these at once.
func (s *spec) acceptRemovals(ctx context.Context) {
	list := &placementv1beta1.ResourcePlacementList{}
	if err := s.hub.List(ctx, list); err != nil {
		s.Logf("cleaning up: listing placements: %v", err)
		return
	}
	accept := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, placementv1beta1.AcceptRemovalsAnnotation))
	for i := range list.Items {
		if !s.owns(list.Items[i].Namespace) {
			continue
		}
		if err := s.hub.Patch(ctx, &list.Items[i], accept); client.IgnoreNotFound(err) != nil {
			s.Logf("cleaning up: %v", err)
		}
	}
}

// removeAll deletes the spec's objects of a kind.
func (s *spec) removeAll(ctx context.Context, c *cluster, list client.ObjectList) {
	if err := c.List(ctx, list); err != nil {
		s.Logf("cleaning up: listing %T on %s: %v", list, c.name, err)
		return
	}
	_ = eachOf(list, func(object client.Object) {
		if !s.owns(object.GetName()) {
			return
		}
		if err := c.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			s.Logf("cleaning up: %v", err)
		}
	})
}

// explain prints the objects of a failed spec, their events and the end of the hub agent's log.
func (s *spec) explain(ctx context.Context) {
	var out strings.Builder
	fmt.Fprintf(&out, "\n===== what %s left behind\n", s.name)
	for _, list := range []client.ObjectList{
		&placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ClusterStagedUpdateRunList{},
		&placementv1beta1.ClusterApprovalRequestList{}, &placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.WorkList{},
		&placementv1beta1.ClusterSchedulingPolicySnapshotList{}, &placementv1beta1.ClusterResourceSnapshotList{},
		&placementv1beta1.ClusterResourceOverrideList{}, &placementv1beta1.ClusterResourceOverrideSnapshotList{},
		&placementv1beta1.ClusterResourcePlacementEvictionList{}, &placementv1beta1.ClusterResourcePlacementDisruptionBudgetList{},
	} {
		if err := s.hub.List(ctx, list); err != nil {
			fmt.Fprintf(&out, "listing %T: %v\n", list, err)
			continue
		}
		_ = eachOf(list, func(object client.Object) {
			if s.owns(object.GetName()) {
				out.WriteString(printed(object))
			}
		})
	}
	s.explainEvents(ctx, &out)
	fmt.Fprintf(&out, "===== last lines of the hub agent's log\n%s", lastLines(s.Fleet.LogFile("hub-agent"), logLines))
	s.Log(out.String())
}

func (s *spec) explainEvents(ctx context.Context, out *strings.Builder) {
	var events corev1.EventList
	if err := s.hub.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		fmt.Fprintf(out, "listing events: %v\n", err)
	}
	for i := range events.Items {
		e := &events.Items[i]
		if s.owns(e.InvolvedObject.Name) {
			fmt.Fprintf(out, "event %s %s %s: %s\n", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		}
	}
}

// printed is an object as YAML, without what only tells who wrote which field and without manifests.
func printed(object client.Object) string {
	copied := object.DeepCopyObject().(client.Object)
	copied.SetManagedFields(nil)
	switch o := copied.(type) {
	case *placementv1beta1.Work:
		o.Spec.Workload = placementv1beta1.WorkloadTemplate{}
	case *placementv1beta1.ClusterResourceSnapshot:
		o.Spec.SelectedResources = nil
	}
	content, err := yaml.Marshal(copied)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("--- %T %s\n%s", object, object.GetName(), content)
}

func eachOf(list client.ObjectList, do func(client.Object)) error {
	return meta.EachListItem(list, func(o runtime.Object) error {
		do(o.(client.Object))
		return nil
	})
}

func lastLines(path string, n int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error() + "\n"
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n") + "\n"
}

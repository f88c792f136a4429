package bind_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/activities/bind"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

var (
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	deed = rules.Workload{Kind: "ConfigMap", Namespace: "app", Name: "deed"}
)

func placement() *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "crp-uid"}}
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{
		PurgeMode:         placementv1beta1.PurgeDirectly,
		StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.job}"}}},
	}}}
	return p
}

func binding(cluster string, state placementv1beta1.BindingState, snapshot string, annotations map[string]string) *placementv1beta1.ClusterResourceBinding {
	b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{
		Name: "crp-" + cluster, UID: types.UID(cluster + "-uid"), Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}, Annotations: annotations,
	}}
	b.Spec = placementv1beta1.ResourceBindingSpec{State: state, ResourceSnapshotName: snapshot, TargetCluster: cluster}
	return b
}

func left() *placementv1beta1.ClusterResourceBinding {
	return binding("old", placementv1beta1.BindingStateUnscheduled, "crp-0-snapshot", map[string]string{placementv1beta1.FailedOverAnnotation: now.Format(time.RFC3339)})
}

func carrying(job string) map[string]string {
	return map[string]string{placementv1beta1.PreservedStateAnnotation: rules.PreservedState{deed: {"job": job}}.Encode()}
}

// work is that of the old binding; it reports the job.
func work(job string, change ...func(*placementv1beta1.Work)) *placementv1beta1.Work {
	w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-member-old", Name: "crp-work", Labels: map[string]string{placementv1beta1.ParentBindingLabel: "crp-old", placementv1beta1.ParentPlacementLabel: "crp"},
		Annotations: map[string]string{placementv1beta1.BindingUIDAnnotation: "old-uid", placementv1beta1.RevisionAnnotation: "r"},
	}}
	w.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"app","name":"deed"}}`)}}}
	w.Status.ManifestConditions = []placementv1beta1.ManifestCondition{{
		Identifier:  placementv1beta1.WorkResourceIdentifier{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "deed"},
		StateValues: []placementv1beta1.StateValue{{JSONPath: "{.job}", Value: job}},
	}}
	for _, c := range change {
		c(w)
	}
	return w
}

func TestTheLastReportIsHandedOver(t *testing.T) {
	none := func(*placementv1beta1.ClusterResourcePlacement) {}
	for sentence, tc := range map[string]struct {
		old       *placementv1beta1.ClusterResourceBinding
		others    []client.Object
		placement func(*placementv1beta1.ClusterResourcePlacement)
		want      string
		writes    int
	}{
		"what was reported since":          {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2")}, want: "2", writes: 1},
		"what was not there before":        {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", nil), work("2")}, want: "2", writes: 1},
		"what is there already":            {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("2")), work("2")}, want: "2"},
		"nothing is reported any more":     {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1"))}, want: "1"},
		"another binding's Work":           {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2", func(w *placementv1beta1.Work) { w.Annotations[placementv1beta1.BindingUIDAnnotation] = "before" })}, want: "1"},
		"once the replacement was written": {others: []client.Object{binding("new", placementv1beta1.BindingStateBound, "crp-0-snapshot", carrying("1")), work("2")}, want: "1"},
		"there are two, which cannot be":   {others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), binding("third", placementv1beta1.BindingStateScheduled, "", nil), work("2")}, want: "1"},
		"the placement does not preserve any": {placement: func(p *placementv1beta1.ClusterResourcePlacement) {
			p.Spec.Strategy.Failover.Cluster.StatePreservation = nil
		}, others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2")}, want: "1"},
		"it goes for another reason": {old: binding("old", placementv1beta1.BindingStateUnscheduled, "crp-0-snapshot", nil), others: []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1")), work("2")}, want: "1"},
	} {
		t.Run(sentence, func(t *testing.T) {
			old := tc.old
			change := tc.placement
			writes := 0
			if old == nil {
				old = left()
			}
			if change == nil {
				change = none
			}
			p := placement()
			change(p)
			hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(append(tc.others, old)...).WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
					writes++
					return c.Patch(ctx, o, patch, options...)
				},
			}).Build()
			require.NoError(t, remove(t, hub, p, nil, old.Name))
			assert.Equal(t, tc.writes, writes)
			replacement := &placementv1beta1.ClusterResourceBinding{}
			require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-new"}, replacement))
			assert.Equal(t, tc.want, rules.PreservedStateOf(replacement)[deed]["job"])
		})
	}
}

func TestAReplacementThatIsBeingWrittenIsLeftAlone(t *testing.T) {
	written := false
	hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(left(), work("2"), binding("new", placementv1beta1.BindingStateScheduled, "", carrying("1"))).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
				if !written {
					written = true
					bound := &placementv1beta1.ClusterResourceBinding{}
					require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "crp-new"}, bound))
					bound.Spec.State = placementv1beta1.BindingStateBound
					bound.Spec.ResourceSnapshotName = "crp-0-snapshot"
					require.NoError(t, c.Update(ctx, bound))
				}
				if err := c.Patch(ctx, o, patch, options...); err != nil { // as an API server says that a test has failed
					return apierrors.NewInvalid(schema.GroupKind{}, o.GetName(), nil)
				}
				return nil
			},
		}).Build()
	replacement := &bind.Replacement{}
	require.ErrorIs(t, remove(t, hub, placement(), replacement, "crp-old"), bind.ErrFenced, "the removal is decided anew")
	require.NoError(t, remove(t, hub, placement(), replacement, "crp-old"), "by then it is read again")
}

// A call that removes many clusters asks once what takes their place: a placement may have thousands of bindings.
func TestTheReplacementIsReadOnceForAllThatLeave(t *testing.T) {
	const clusters = 20
	objects := []client.Object{binding("new", placementv1beta1.BindingStateScheduled, "", nil)}
	for i := range clusters {
		old := left()
		old.Name = fmt.Sprintf("crp-old-%d", i)
		old.UID = types.UID(old.Name)
		old.Spec.TargetCluster = fmt.Sprintf("old-%d", i)
		objects = append(objects, old, work(strconv.Itoa(i), func(w *placementv1beta1.Work) {
			w.Namespace = "fleet-member-" + old.Spec.TargetCluster
			w.Labels[placementv1beta1.ParentBindingLabel] = old.Name
			w.Annotations[placementv1beta1.BindingUIDAnnotation] = string(old.UID)
		}))
	}
	read := 0
	hub := fixture.NewClientBuilder(fixture.Scheme(t)).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, list, options...)
			if _, bindings := list.(*placementv1beta1.ClusterResourceBindingList); bindings {
				read += meta.LenList(list)
			}
			return err
		},
	}).Build()
	replacement := &bind.Replacement{}
	for i := range clusters {
		require.NoError(t, remove(t, hub, placement(), replacement, fmt.Sprintf("crp-old-%d", i)))
		found := &placementv1beta1.ClusterResourceBinding{}
		require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "crp-new"}, found))
		assert.Equal(t, strconv.Itoa(i), rules.PreservedStateOf(found)[deed]["job"])
	}
	assert.Equal(t, clusters+1, read, "as many bindings as there are, not as many for each")
}

// remove removes a binding as the call does that shares what it knows of the replacement.
func remove(t *testing.T, hub client.Client, p *placementv1beta1.ClusterResourcePlacement, replacement *bind.Replacement, name string) error {
	t.Helper()
	old := &placementv1beta1.ClusterResourceBinding{}
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: name}, old))
	w := &bind.Writer{Client: hub, Live: hub, Clock: clocktesting.NewFakePassiveClock(now), Placement: p, Replacement: replacement}
	_, err := w.Remove(t.Context(), old, "")
	return err
}

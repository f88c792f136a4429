package membership

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/fixture"
)

func TestAClusterIsReplacedOnlyOnceEverythingWasSeen(t *testing.T) {
	for name, test := range map[string]struct {
		known   Replacement
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"nothing is left, and all is available": {Replacement{Fit: true, TakenOver: []string{"a", "b"}}, metav1.ConditionTrue, clusterv1beta1.ReasonMemberClusterReplaced,
			"Nothing is left on the cluster; new has taken over 2 placement(s), and all are available"},
		"a copy is to go": {Replacement{Fit: true, Leaving: []string{"a"}, Works: 1}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing,
			"What is placed here stays until the copy on new is available; to go: a"},
		"a copy is to go, and the new cluster is silent": {Replacement{Leaving: []string{"a"}}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing,
			"What is placed here stays until the copy on new is available, and new is not known to be healthy; to go: a"},
		"only the removal on the member goes on": {Replacement{Fit: true, Works: 2}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing,
			"What is placed here stays until the copy on new is available; 2 work(s) are being removed"},
		"a placement stays": {Replacement{Fit: true, Staying: []string{"a"}, Works: 1}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing,
			"Placements are on the cluster; of one that stays, the condition Scheduled says why; still here: a"},
		"it is refused": {Replacement{Refused: "it is so", Staying: []string{"a"}}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacementRefused,
			"The cluster is not replaced by new: it is so; still here: a"},
		"nothing is left, and the new cluster is silent": {Replacement{TakenOver: []string{"a"}}, metav1.ConditionUnknown, clusterv1beta1.ReasonMemberClusterTakenOverUnknown,
			"Nothing is left on the cluster, and it is not known whether what was taken over is available: new is not known to be healthy"},
		"nothing is left, and the new cluster is gone": {Replacement{Refused: "there is no member cluster new"}, metav1.ConditionUnknown,
			clusterv1beta1.ReasonMemberClusterTakenOverUnknown, "Nothing is left on the cluster, and it is not known whether what was taken over is available: there is no member cluster new"},
		"what was taken over has fallen ill": {Replacement{Fit: true, TakenOver: []string{"a"}, Unavailable: []string{"a"}}, metav1.ConditionFalse,
			clusterv1beta1.ReasonMemberClusterReplacing, "Nothing is left on the cluster; what was taken over is not available on new: a"},
		"seven are to go": {Replacement{Fit: true, Leaving: []string{"a", "b", "c", "d", "e", "f", "g"}}, metav1.ConditionFalse, clusterv1beta1.ReasonMemberClusterReplacing,
			"What is placed here stays until the copy on new is available; to go: a, b, c, d, e, and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			test.known.By = "new"
			said := test.known.condition()
			assert.Equal(t, test.status, said.Status)
			assert.Equal(t, test.reason, said.Reason)
			assert.Equal(t, test.message, said.Message)
		})
	}
}

// The cache of a hub agent may lag behind: it has dropped a binding that is still there, as the API server says.
func TestNothingIsCalledDoneThatTheAPIServerDoesNotSay(t *testing.T) {
	old := member()
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	taker := member()
	taker.Name = "new"
	for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
		meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	left := fixture.Binding("member1", 1)
	cached := fixture.APIServer(t, old, taker)
	for _, test := range []struct {
		live client.Client
		want metav1.ConditionStatus
	}{{fixture.APIServer(t, old, taker, left), metav1.ConditionFalse}, {cached, metav1.ConditionTrue}} {
		found, err := replacements{cached, test.live}.read(t.Context(), old)
		require.NoError(t, err)
		assert.Equal(t, test.want, found.condition().Status, found.condition().Message)
	}
	found, err := replacements{fixture.APIServer(t, old, taker, left), nil}.read(t.Context(), old)
	require.NoError(t, err, "while something is left, nothing is read past the cache")
	assert.Equal(t, []string{"crp"}, found.Staying)
}

// What was said of another cluster, or is so by now only in the cache, does not count either.
func TestTheNewClusterIsLookedAtLiveBeforeAnythingIsCalledDone(t *testing.T) {
	old, taker := member(), member()
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	taker.Name = "new"
	for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
		meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	cached := fixture.APIServer(t, old, taker)
	silent := taker.DeepCopy()
	meta.SetStatusCondition(&silent.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionUnknown, Reason: "Said"})
	live := fixture.APIServer(t, old, silent)
	for by, want := range map[string]metav1.ConditionStatus{"": metav1.ConditionUnknown, "other": metav1.ConditionUnknown, "new": metav1.ConditionTrue} {
		asked := old.DeepCopy()
		if by != "" {
			said := (&Replacement{By: by, Fit: true}).condition()
			said.Type = clusterv1beta1.ConditionTypeReplaced
			meta.SetStatusCondition(&asked.Status.Conditions, said)
		}
		found, err := replacements{cached, live}.read(t.Context(), asked)
		require.NoError(t, err)
		assert.Equal(t, want, found.condition().Status, "it was said of %q", by)
	}
}

func TestOfTheFleetOnlyMembersAreReadThatTheReplacementConcerns(t *testing.T) {
	old, taker, other := member(), member(), member()
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	taker.Name, other.Name = "new", "other"
	for by, refused := range map[string]string{"": "new has not joined the fleet", "new": "new is to replace other already: one cluster replaces one other at a time",
		"member1": "member1 is itself to replace other: wait until that is replaced, or give that up"} {
		third := other.DeepCopy()
		metav1.SetMetaDataAnnotation(&third.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, by)
		hub := interceptor.NewClient(fixture.APIServer(t, old, taker, third), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if _, is := list.(*clusterv1beta1.MemberClusterList); is {
					var by client.ListOptions
					by.ApplyOptions(options)
					require.NotNil(t, by.FieldSelector, "by an index")
				}
				return c.List(ctx, list, options...)
			},
		})
		found, err := replacements{hub, nil}.read(t.Context(), old)
		require.NoError(t, err)
		assert.Equal(t, refused, found.Refused)
	}
}

// This hub has no index of bindings: what becomes of the copies cannot be read.
func TestAReplacementThatCannotBeReadHidesNothingElse(t *testing.T) {
	b := newBench(t, member())
	b.reconcile(t)
	b.beat(t, 0, yes, yes)
	b.reconcile(t)
	m := b.member(t)
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	require.NoError(t, b.hub.Update(t.Context(), m))
	b.beat(t, 0, yes, notReady)
	_, err := b.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "member1"}})
	require.Error(t, err, "it is tried again")
	assert.Equal(t, metav1.ConditionFalse, b.condition(t, clusterv1beta1.ConditionTypeHealthy).Status)
	said := b.condition(t, clusterv1beta1.ConditionTypeReplaced)
	assert.Equal(t, metav1.ConditionUnknown, said.Status)
	assert.Equal(t, "It could not be read how far the replacement by new is, which is tried again", said.Message)
}

// TestWhatWasTakenOverIsReadAtOnce counts the lists that it takes to look at many copies: no more than at one.
func TestWhatWasTakenOverIsReadAtOnce(t *testing.T) {
	old := member()
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	taker := member()
	taker.Name = "new"
	for _, kind := range []string{clusterv1beta1.ConditionTypeJoined, clusterv1beta1.ConditionTypeHealthy} {
		meta.SetStatusCondition(&taker.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Said"})
	}
	counts := map[int]int{}
	for _, n := range []int{1, 30} {
		objects := []client.Object{old.DeepCopy(), taker.DeepCopy()}
		for i := range n {
			taken := fixture.Binding("new", 1)
			taken.Name = fmt.Sprintf("taken-%d", i)
			metav1.SetMetaDataAnnotation(&taken.ObjectMeta, placementv1beta1.TookOverFromAnnotation, old.Name)
			objects = append(objects, taken)
		}
		lists := 0
		hub := interceptor.NewClient(fixture.APIServer(t, objects...), interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				lists++
				return c.List(ctx, list, options...)
			},
		})
		found, err := replacements{hub, hub}.read(t.Context(), old)
		require.NoError(t, err)
		assert.Len(t, found.TakenOver, n)
		assert.Len(t, found.Unavailable, n, "nothing has been written there")
		counts[n] = lists
	}
	assert.Equal(t, counts[1], counts[30])
}

func TestABindingConcernsOnlyMembersThatAreReplaced(t *testing.T) {
	old := member()
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, "new")
	others := member()
	others.Name = "other"
	for name, test := range map[string]struct {
		fleet    []client.Object
		binding  string
		requests []reconcile.Request
		reads    int
	}{
		"no member is replaced":            {fleet: []client.Object{others}, binding: "other", reads: 1},
		"another member is replaced":       {fleet: []client.Object{others, old}, binding: "other", reads: 1},
		"its own member is replaced":       {fleet: []client.Object{others, old}, binding: old.Name, requests: requestMemberNamed(old.Name), reads: 1},
		"its member is to replace another": {fleet: []client.Object{others, old}, binding: "new", requests: requestMemberNamed(old.Name), reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			hub := interceptor.NewClient(fixture.APIServer(t, test.fleet...), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
					reads++
					return c.List(ctx, list, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, options...)
				},
			})
			assert.Equal(t, test.requests, replacements{hub, hub}.replacedByCopy(t.Context(), fixture.Binding(test.binding, 1)))
			assert.Equal(t, test.reads, reads)
		})
	}
}

func requestMemberNamed(name string) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: name}}}
}

//go:build integration

package integration

import (
	"errors"
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var allMembers = []string{"member-1", "member-2", "member-3"}

func namespaceReachesAllMembers(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.deployment())
	s.create(s.service())
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", Namespace: s.name}, Data: map[string][]byte{"token": []byte("secret")}})
	s.place()

	placed := s.awaitAvailable("0")
	s.requireAvailable(placed, "0", "", allMembers...)
	require.ElementsMatch(s, []placementv1beta1.ResourceIdentifier{
		{Version: "v1", Kind: "Namespace", Name: s.name},
		{Version: "v1", Kind: "ConfigMap", Namespace: s.name, Name: configMapName},
		{Version: "v1", Kind: "Secret", Namespace: s.name, Name: "login"},
		{Version: "v1", Kind: "Service", Namespace: s.name, Name: "web"},
		{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: s.name, Name: "web"},
	}, placed.Status.SelectedResources)
	for _, m := range s.members {
		var deployment appsv1.Deployment
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.deployment()), &deployment))
		require.EqualValues(s, 2, deployment.Status.AvailableReplicas, "replicas on %s", m.name)
		require.NoError(s, m.Get(s.Context(), client.ObjectKeyFromObject(s.service()), &corev1.Service{}))
		var secret corev1.Secret
		require.NoError(s, m.Get(s.Context(), client.ObjectKey{Namespace: s.name, Name: "login"}, &secret))
		require.Equal(s, []byte("secret"), secret.Data["token"])
	}
	s.awaitValue(value1, allMembers...)
}

func changeGoesOneByOne(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	works := s.record(s.hub, &placementv1beta1.Work{}, s.mine())

	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	placement := s.awaitAvailable("1")
	s.requireAvailable(placement, "1", "", allMembers...)

	newest := s.bindings()
	require.Len(s, newest, members)
	last := uint64(0)
	for _, b := range newest {
		require.Equal(s, s.name+"-1-snapshot", b.Spec.ResourceSnapshotName)
		last = max(last, revisionOf(b))
	}
	seen := merge(bindings.upTo(s, last), works.upTo(s, newestWork(s)))
	requireWindow(s, initialClusters(bindings, works), seen, 1)
	requirePromise(s, placement, seen, bindings, works)
	s.requireUntracked()
}

// requireUntracked looks for records of which client has written which field: bindings and Works have none once the fleet has changed
// them.
func (s *spec) requireUntracked() {
	s.Helper()
	for _, list := range []client.ObjectList{&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.WorkList{}} {
		require.NoError(s, s.hub.List(s.Context(), list, s.mine()))
		require.NotZero(s, meta.LenList(list))
		require.NoError(s, meta.EachListItem(list, func(o runtime.Object) error {
			object, err := meta.Accessor(o)
			require.NoError(s, err)
			require.Empty(s, object.GetManagedFields(), "%T %s", o, object.GetName())
			return nil
		}))
	}
}

// whatUsersApplyToBindingsStaysTheirs applies a label to a binding on the server side, as a controller may that answers lifecycle hooks.
func whatUsersApplyToBindingsStaysTheirs(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	binding := s.bindings()[0]
	apply := func(labels string) {
		s.Helper()
		content := fmt.Sprintf(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourceBinding","metadata":{"name":%q,"labels":{%s}}}`, binding.Name, labels)
		require.NoError(s, s.hub.Patch(s.Context(), binding, client.RawPatch(types.ApplyYAMLPatchType, []byte(content)), client.FieldOwner("load-balancer")))
	}
	apply(`"example.com/in-service":"yes"`)
	require.Equal(s, "yes", binding.Labels["example.com/in-service"])

	s.changeTo(value2)
	s.awaitValue(value2, allMembers...)
	s.awaitAvailable("1")
	apply("")
	require.NotContains(s, binding.Labels, "example.com/in-service", "the API server knows that it was theirs")
	require.Equal(s, s.name, binding.Labels[placementv1beta1.ParentPlacementLabel])
}

func pickFixedPlacesOnTheNamedClusters(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickFixed("member-1", "member-3"))
	s.requireAvailable(s.awaitAvailable("0"), "0", "", "member-1", "member-3")
	s.awaitValue(value1, "member-1", "member-3")
	s.requireNothingOn("member-2")

	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Policy.ClusterNames = []string{"member-2", "member-3"}
	})
	s.awaitValue(value1, "member-2")
	s.awaitCleared("member-1")
	placed := await(s, s.hub, s.placement(), "to be available on member-2 and member-3", func(p *placementv1beta1.ClusterResourcePlacement) error {
		if err := isTrue(p.Status.Conditions, ofPlacement("Available"), p.Generation); err != nil {
			return err
		}
		return wantClusters(p, "member-2", "member-3")
	})
	s.requireAvailable(placed, "0", "", "member-2", "member-3")
}

// wantClusters says what is missing until a placement has these clusters, and no other that is still cleaned up.
func wantClusters(p *placementv1beta1.ClusterResourcePlacement, want ...string) error {
	if c := placementv1beta1.FindTrue(p.Status.Conditions, placementv1beta1.ConditionTypeClustersLeaving); c != nil {
		return errors.New(c.Message)
	}
	var names []string
	for _, entry := range p.Status.PerClusterPlacementStatuses {
		names = append(names, entry.ClusterName)
	}
	if !slices.Equal(want, names) {
		return fmt.Errorf("its clusters are %v", names)
	}
	return nil
}

func pickNTakesTheHighestName(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickN(1, "canary"))
	s.requireAvailable(s.awaitAvailable("0"), "0", "", "member-3")
	s.awaitValue(value1, "member-3")
	s.requireNothingOn("member-1", "member-2")
}

func pickNThatIsNotFulfilledSaysSo(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickN(2, "staging"))
	s.awaitValue(value1, "member-2")
	placed := await(s, s.hub, s.placement(), "to be available on member-2", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return isTrue(p.Status.Conditions, ofPlacement("Available"), p.Generation)
	})
	scheduled := meta.FindStatusCondition(placed.Status.Conditions, ofPlacement("Scheduled"))
	require.Equal(s, metav1.ConditionFalse, scheduled.Status)
	require.Equal(s, "SchedulingPolicyUnfulfilled", scheduled.Reason)
	require.Equal(s, "1 of 2 clusters found: ClusterAffinity keeps 2 out (could not find all clusters needed as specified by the scheduling policy, found 1 cluster(s) instead)", scheduled.Message)
	require.NoError(s, wantClusters(placed, "member-2", ""))
	s.requireConditions(placed.Status.PerClusterPlacementStatuses[1].Conditions, placed.Generation, said{"Scheduled", "False", "ScheduleFailed", ""})
	s.requireNothingOn("member-1", "member-3")
}

func clusterScopedObjectIsPlacedByName(s *spec) {
	role := func(name string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		}
	}
	s.create(role(s.name))
	s.create(role(s.name + "-other"))
	s.place(selecting(placementv1beta1.ResourceSelectorTerm{
		Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", Name: s.name,
	}))
	placed := s.awaitAvailable("0")
	s.requireAvailable(placed, "0", "", allMembers...)
	require.Equal(s, []placementv1beta1.ResourceIdentifier{{Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRole", Name: s.name}},
		placed.Status.SelectedResources)
	for _, m := range s.members {
		var got rbacv1.ClusterRole
		require.NoError(s, m.Get(s.Context(), client.ObjectKey{Name: s.name}, &got))
		require.Equal(s, role(s.name).Rules, got.Rules)
		require.Error(s, m.Get(s.Context(), client.ObjectKey{Name: s.name + "-other"}, &rbacv1.ClusterRole{}))
	}
}

func externalPlacesNothing(s *spec) {
	s.externalPlacement()
	s.changeTo(value2)
	placed := s.awaitIndex("1")
	s.requireConditions(placed.Status.Conditions, placed.Generation,
		said{ofPlacement("Scheduled"), "True", "SchedulingPolicyFulfilled", "found all cluster needed as specified by the scheduling policy, found 3 cluster(s)"},
		said{ofPlacement("RolloutStarted"), "Unknown", "RolloutStartedUnknown", "3 clusters wait for an update run: unless one is under way, kubectl fleet run " + s.name + " --strategy STRATEGY creates it " +
			"(There are still 3 cluster(s) in the process of deciding whether to roll out the latest resources or not)"},
	)
	require.NoError(s, wantClusters(placed, allMembers...))
	for _, entry := range placed.Status.PerClusterPlacementStatuses {
		scheduled := fmt.Sprintf("Successfully scheduled resources for placement in %q (affinity score: 0, topology spread score: 0): picked by scheduling policy", entry.ClusterName)
		s.requireConditions(entry.Conditions, placed.Generation,
			said{"Scheduled", "True", "Scheduled", scheduled},
			said{"RolloutStarted", "Unknown", "RolloutStartedUnknown", "In the process of deciding whether to roll out the latest resources or not"},
		)
	}
	s.requireSnapshots(map[string]string{"0": "false", "1": "true"})
	s.requireNothingOn(allMembers...)
	s.requireNoWorks()

	out, err := s.command(s.Context(), "kubectl", "get", "crp", s.name, "-o", "wide")
	require.NoError(s, err, out)
	require.Contains(s, out, "SCHEDULED-GEN")
	require.Contains(s, out, "AVAILABLE-GEN")
}

// requireSnapshots asserts the indexes of the placement's resource snapshots, with the label that says which is latest.
func (s *spec) requireSnapshots(latestByIndex map[string]string) {
	s.Helper()
	var snapshots placementv1beta1.ClusterResourceSnapshotList
	require.NoError(s, s.hub.List(s.Context(), &snapshots, s.mine()))
	got := map[string]string{}
	for i := range snapshots.Items {
		labels := snapshots.Items[i].Labels
		index := labels[placementv1beta1.ResourceIndexLabel]
		require.Equal(s, s.name+"-"+index+"-snapshot", snapshots.Items[i].Name)
		got[index] = labels[placementv1beta1.IsLatestSnapshotLabel]
	}
	require.Equal(s, latestByIndex, got)
}

func (s *spec) requireNoWorks() {
	s.Helper()
	var works placementv1beta1.WorkList
	require.NoError(s, s.hub.List(s.Context(), &works, s.mine()))
	require.Empty(s, works.Items)
}

func deletedPlacementLeavesNothing(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.deployment())
	placement := s.place()
	s.awaitAvailable("0")
	s.changeTo(value2)
	s.awaitAvailable("1")

	s.delete(s.hub, placement)
	awaitGone(s, s.hub, placement)
	s.awaitCleared(allMembers...)
	s.requireNoneLeft()
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: s.name}, &corev1.Namespace{}), "the hub keeps its own objects")
}

// deletedPlacementCanLeaveWhatItPlaced asks for it with its delete strategy.
func deletedPlacementCanLeaveWhatItPlaced(s *spec) {
	s.namespaceWithConfigMap()
	placement := s.place(func(p *placementv1beta1.PlacementSpec) {
		p.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: &placementv1beta1.DeleteStrategy{
			PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon,
		}}
	})
	s.awaitAvailable("0")
	before := map[string]types.UID{}
	for _, name := range allMembers {
		c := s.configMap("")
		require.NoError(s, s.member(name).Get(s.Context(), client.ObjectKeyFromObject(c), c))
		before[name] = c.UID
	}
	s.delete(s.hub, placement)
	awaitGone(s, s.hub, placement)
	s.requireNoneLeft()
	for _, name := range allMembers {
		c := s.configMap("")
		require.NoError(s, s.member(name).Get(s.Context(), client.ObjectKeyFromObject(c), c))
		require.Equal(s, before[name], c.UID, "the ConfigMap on %s stays what it was", name)
		require.Empty(s, c.OwnerReferences, "the ConfigMap on %s is nobody's", name)
		err := s.member(name).Get(s.Context(), client.ObjectKey{Name: s.name + "-work"}, &placementv1beta1.AppliedWork{})
		require.True(s, apierrors.IsNotFound(err), "no AppliedWork is left on %s: %v", name, err)
	}
}

// requireNoneLeft asserts that nothing that was made for the placement is on the hub.
func (s *spec) requireNoneLeft() {
	s.Helper()
	for _, list := range []client.ObjectList{
		&placementv1beta1.ClusterResourceSnapshotList{}, &placementv1beta1.ClusterSchedulingPolicySnapshotList{},
		&placementv1beta1.ClusterResourceBindingList{}, &placementv1beta1.WorkList{},
	} {
		require.NoError(s, s.hub.List(s.Context(), list, s.mine()))
		require.Zero(s, meta.LenList(list), "%T", list)
	}
}

func whatAMemberLosesComesBack(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.loseConfigMapOn("member-1")
}

// loseConfigMapOn deletes the ConfigMap on a member and waits for another one in its place.
func (s *spec) loseConfigMapOn(name string) {
	s.Helper()
	member := s.member(name)
	lost := s.configMap("")
	require.NoError(s, member.Get(s.Context(), client.ObjectKeyFromObject(lost), lost))
	s.delete(member, lost.DeepCopy())
	await(s, member, s.configMap(""), "to be there again", func(c *corev1.ConfigMap) error {
		if c.UID == lost.UID {
			return fmt.Errorf("it has not been deleted yet")
		}
		return nil
	})
}

func (s *spec) bindings() []*placementv1beta1.ClusterResourceBinding {
	s.Helper()
	var list placementv1beta1.ClusterResourceBindingList
	require.NoError(s, s.hub.List(s.Context(), &list, s.mine()))
	all := make([]*placementv1beta1.ClusterResourceBinding, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all
}

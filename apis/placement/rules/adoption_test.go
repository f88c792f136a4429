package rules

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatAnObjectIsToTheOwnerThatItsLabelsName(t *testing.T) {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "app", UID: "now"}}
	owner := PlacementOwner(placement)
	named := func(kind, name string, uid types.UID) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "placement.kubernetes-fleet.io/v1", Kind: kind, Name: name, UID: uid}
	}
	before := named("ClusterResourcePlacement", "app", "before")
	another := named("ClusterResourcePlacement", "other", "another")
	namesake := named("ClusterStagedUpdateRun", "other", "run")
	cases := map[string]struct {
		owners []metav1.OwnerReference
		want   Kinship
		heirs  []metav1.OwnerReference
	}{
		"it names the owner": {[]metav1.OwnerReference{owner}, KinshipOwn, []metav1.OwnerReference{owner}},
		"it names no owner":  {nil, KinshipInherited, []metav1.OwnerReference{owner}},
		"it names the owner by the UID that it had before":     {[]metav1.OwnerReference{before}, KinshipInherited, []metav1.OwnerReference{owner}},
		"it names another owner":                               {[]metav1.OwnerReference{another}, KinshipDisputed, nil},
		"it names two owners":                                  {[]metav1.OwnerReference{owner, another}, KinshipDisputed, nil},
		"it names two owners, the other one first":             {[]metav1.OwnerReference{another, owner}, KinshipDisputed, nil},
		"it names one of the twin kind in another scope":       {[]metav1.OwnerReference{named("ResourcePlacement", "other", "x")}, KinshipDisputed, nil},
		"an owner of another kind is of no account, and stays": {[]metav1.OwnerReference{namesake}, KinshipInherited, []metav1.OwnerReference{namesake, owner}},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			object := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: "app-0-snapshot", OwnerReferences: tc.owners}}
			assert.Equal(t, tc.want, KinshipOf(object, owner))
			if tc.heirs != nil {
				assert.Equal(t, tc.heirs, InheritedBy(object, owner))
			}
		})
	}
}

func TestWhichOfSeveralBindingsHoldsACluster(t *testing.T) {
	early := metav1.Unix(1000, 0)
	late := metav1.Unix(2000, 0)
	made := func(name string, state placementv1beta1.BindingState, at metav1.Time, deleted bool) placementv1beta1.BindingObject {
		b := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: at}}
		b.Spec.State = state
		b.Spec.TargetCluster = "member-1"
		if deleted {
			b.DeletionTimestamp = &metav1.Time{Time: time.Unix(3000, 0)}
		}
		return b
	}
	cases := map[string]struct {
		bindings []placementv1beta1.BindingObject
		want     string
	}{
		"the one there is": {[]placementv1beta1.BindingObject{made("a", placementv1beta1.BindingStateScheduled, late, false)}, "a"},
		"the one that carries resources, whenever it was made": {[]placementv1beta1.BindingObject{
			made("a", placementv1beta1.BindingStateScheduled, early, false), made("b", placementv1beta1.BindingStateBound, late, false)}, "b"},
		"of two alike the one that was there first": {[]placementv1beta1.BindingObject{
			made("a", placementv1beta1.BindingStateBound, late, false), made("b", placementv1beta1.BindingStateBound, early, false)}, "b"},
		"of two of the same second the lower name": {[]placementv1beta1.BindingObject{
			made("b", placementv1beta1.BindingStateBound, early, false), made("a", placementv1beta1.BindingStateBound, early, false)}, "a"},
		"one that is picked before one that is not": {[]placementv1beta1.BindingObject{
			made("a", placementv1beta1.BindingStateUnscheduled, early, false), made("b", placementv1beta1.BindingStateScheduled, late, false)}, "b"},
		"one that is being deleted last of all": {[]placementv1beta1.BindingObject{
			made("a", placementv1beta1.BindingStateBound, early, true), made("b", placementv1beta1.BindingStateUnscheduled, late, false)}, "b"},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.want, BindingOfCluster(tc.bindings, "member-1").GetName())
			assert.Nil(t, BindingOfCluster(tc.bindings, "member-2"))
		})
	}
}

func TestThePlacementOfABindingThatHasLostItsLabels(t *testing.T) {
	cases := map[string]struct{ label, policy, want string }{
		"the label says it":                              {"app", "other-3", "app"},
		"the policy snapshot says it":                    {"", "app-3", "app"},
		"so it does if the name has dashes and digits":   {"", "app-2-1", "app-2"},
		"a policy snapshot of another name does not":     {"", "app", ""},
		"nor one whose index is written in another form": {"", "app-03", ""},
		"nor none": {"", "", ""},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			b := &placementv1beta1.ClusterResourceBinding{}
			if tc.label != "" {
				b.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: tc.label}
			}
			b.Spec.SchedulingPolicySnapshotName = tc.policy
			assert.Equal(t, tc.want, PlacementNameOf(b))
		})
	}
}

func TestWhatKubeFleetsWorkSaysOfItself(t *testing.T) {
	const none = "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b" // as recorded
	binding := &placementv1beta1.ClusterResourceBinding{ObjectMeta: metav1.ObjectMeta{Name: "app-member-1-x", UID: "b", Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app"}}}
	binding.Spec.ResourceSnapshotName = "app-1-snapshot"
	made := func(change func(*placementv1beta1.Work)) *placementv1beta1.Work {
		w := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "app", placementv1beta1.ParentBindingLabel: "app-member-1-x", placementv1beta1.ParentResourceSnapshotIndexLabel: "1"},
			Annotations: map[string]string{
				placementv1beta1.ParentResourceSnapshotNameAnnotation:         "app-1-snapshot",
				placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation: none, placementv1beta1.ParentClusterResourceOverrideSnapshotHashAnnotation: none,
			},
		}}
		change(w)
		return w
	}
	cases := map[string]struct {
		change        func(*placementv1beta1.Work)
		ofBinding, is bool
	}{
		"it is what the binding wants":      {func(*placementv1beta1.Work) {}, true, true},
		"it was made from another snapshot": {func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel] = "0" }, true, false},
		"it does not say from which":        {func(w *placementv1beta1.Work) { delete(w.Labels, placementv1beta1.ParentResourceSnapshotIndexLabel) }, true, false},
		"it was made with other overrides": {func(w *placementv1beta1.Work) {
			w.Annotations[placementv1beta1.ParentResourceOverrideSnapshotHashAnnotation] = "x"
		}, true, false},
		"it has another apply strategy": {func(w *placementv1beta1.Work) {
			w.Spec.ApplyStrategy = &placementv1beta1.ApplyStrategy{Type: placementv1beta1.ApplyStrategyTypeServerSideApply}
		}, true, false},
		"it is of another binding":                    {func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentBindingLabel] = "other" }, false, true},
		"it is of a binding of its name elsewhere":    {func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentNamespaceLabel] = "team" }, false, true},
		"it is signed for an earlier one of its name": {func(w *placementv1beta1.Work) { w.Annotations[placementv1beta1.BindingUIDAnnotation] = "a" }, false, true},
		"it is signed for it, and its labels are lost": {func(w *placementv1beta1.Work) {
			w.Labels = nil
			w.Annotations[placementv1beta1.BindingUIDAnnotation] = "b"
		}, true, false},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, tc.ofBinding, IsWorkOf(made(tc.change), binding))
			assert.Equal(t, tc.is, SaysWhatBindingWants(made(tc.change), binding))
		})
	}
}

func TestHashesOfOverrideNamesAreKubeFleets(t *testing.T) {
	assert.Equal(t, "e8491fec37a267069f4a999f2693581d33d816032a7caecf1fc90072974696db", hashOfNames([]string{"cro-0"}), "as recorded")
	assert.Equal(t, "834af1d79680ac8afe1140d0b2bd5f0305c3ba5cbd72c17a78f00d87e0b6627c", hashOfNames([]placementv1beta1.NamespacedName{{Name: "ro-0", Namespace: "roll"}}))
}

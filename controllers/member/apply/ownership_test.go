package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/kubefleet"
)

var (
	me      = OwnerReference("mine", "uid-mine")
	former  = OwnerReference("mine", "uid-earlier")
	other   = OwnerReference("other", "uid-other")
	foreign = metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "App", Name: "app", UID: "uid-app"}
)

func TestOwnersOf(t *testing.T) {
	tests := map[string]struct {
		refs []metav1.OwnerReference
		want Owners
	}{
		"nobody owns the object":             {nil, Owners{}},
		"we do":                              {[]metav1.OwnerReference{me}, Owners{Mine: true}},
		"another AppliedWork does":           {[]metav1.OwnerReference{other}, Owners{Before: []metav1.OwnerReference{other}}},
		"we came first":                      {[]metav1.OwnerReference{me, other}, Owners{Mine: true, After: []metav1.OwnerReference{other}}},
		"the other came first":               {[]metav1.OwnerReference{other, me}, Owners{Mine: true, Before: []metav1.OwnerReference{other}}},
		"an AppliedWork of our name did":     {[]metav1.OwnerReference{former}, Owners{Former: []metav1.OwnerReference{former}}},
		"somebody outside the fleet does":    {[]metav1.OwnerReference{foreign, me}, Owners{Mine: true, Foreign: []metav1.OwnerReference{foreign}}},
		"an AppliedWork of an older version": {[]metav1.OwnerReference{formerReference(other)}, Owners{Before: []metav1.OwnerReference{formerReference(other)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Empty(t, cmp.Diff(tc.want, OwnersOf(tc.refs, me)))
		})
	}
}

func formerReference(ref metav1.OwnerReference) metav1.OwnerReference {
	ref.APIVersion = "placement.kubernetes-fleet.io/v1alpha1"
	return ref
}

func TestDecideOwnership(t *testing.T) {
	var (
		always = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways}
		shared = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeAlways, AllowCoOwnership: true}
		noDiff = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeIfNoDiff}
		never  = placementv1beta1.ApplyStrategy{WhenToTakeOver: placementv1beta1.WhenToTakeOverTypeNever}
		rival  = []Rival{{Name: "other", Placement: "crp-2"}}
	)
	tests := map[string]struct {
		refs     []metav1.OwnerReference
		rivals   []Rival
		strategy placementv1beta1.ApplyStrategy
		reason   string // empty if the object may be applied
		message  string
		compared bool // whether it is to be compared first
	}{
		"an object nobody owns is taken over by default":   {strategy: always},
		"it is left alone if it shall never be taken over": {strategy: never, reason: placementv1beta1.ReasonNotTakenOver},
		"or is to be compared first":                       {strategy: noDiff, compared: true},
		"which makes no owner outside the fleet welcome": {
			refs: []metav1.OwnerReference{foreign}, strategy: noDiff, reason: placementv1beta1.ReasonFailedToTakeOver, message: "App app",
		},
		"our own object is not compared, as it was taken over once": {refs: []metav1.OwnerReference{me}, strategy: noDiff},
		"our own object needs no taking over":                       {refs: []metav1.OwnerReference{me}, strategy: never},
		"nor does one that an earlier AppliedWork of our name owns": {refs: []metav1.OwnerReference{former}, strategy: never},
		"an object with an owner outside the fleet is refused": {
			refs: []metav1.OwnerReference{foreign}, strategy: always,
			reason: placementv1beta1.ReasonFailedToTakeOver, message: "App app",
		},
		"unless co-ownership is allowed": {refs: []metav1.OwnerReference{foreign}, strategy: shared},
		"an object of another placement is refused, and its owner named": {
			refs: []metav1.OwnerReference{other}, rivals: rival, strategy: always,
			reason: placementv1beta1.ReasonApplyConflictBetweenPlacements, message: "placement crp-2 (AppliedWork other)",
		},
		"whatever co-ownership says": {
			refs: []metav1.OwnerReference{other}, rivals: rival, strategy: shared,
			reason: placementv1beta1.ReasonApplyConflictBetweenPlacements,
		},
		"even if both own it, the first keeps it": {
			refs: []metav1.OwnerReference{other, me}, rivals: rival, strategy: always,
			reason: placementv1beta1.ReasonApplyConflictBetweenPlacements,
		},
		"a dangling owner is in nobody's way": {refs: []metav1.OwnerReference{other}, strategy: always},
		"but does not make the object ours":   {refs: []metav1.OwnerReference{other}, strategy: never, reason: placementv1beta1.ReasonNotTakenOver},
		"an object that a Work of the same binding gives up is handed over": {
			refs: []metav1.OwnerReference{other}, rivals: []Rival{{Name: "other", Yields: true}}, strategy: never,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			problem, compared := DecideOwnership(OwnersOf(tc.refs, me), tc.rivals, tc.strategy)
			assert.Equal(t, tc.compared, compared)
			if tc.reason == "" {
				assert.Nil(t, problem)
				return
			}
			require.NotNil(t, problem)
			assert.Equal(t, tc.reason, problem.Reason)
			assert.Contains(t, problem.Message, tc.message)
		})
	}
}

func TestWithOwner(t *testing.T) {
	refs := []metav1.OwnerReference{other, foreign}
	assert.Equal(t, []metav1.OwnerReference{other, foreign, me}, WithOwner(refs, me, nil))
	assert.Equal(t, []metav1.OwnerReference{foreign, me}, WithOwner(refs, me, map[types.UID]bool{other.UID: true}))
	assert.Equal(t, []metav1.OwnerReference{me}, WithOwner([]metav1.OwnerReference{me}, me, nil), "ours is not added twice")
	assert.Equal(t, []metav1.OwnerReference{foreign}, WithoutOwner(refs, other.UID))
}

// The reference as recorded on a member of KubeFleet's. One of an earlier version, which does not block, stays as it is.
func TestTheOwnerReferenceIsTheOneThatKubeFleetWrites(t *testing.T) {
	objects, err := kubefleet.Member(3)
	require.NoError(t, err)
	compared := 0
	for _, object := range objects {
		for _, ref := range object.GetOwnerReferences() {
			if IsAppliedWork(ref) {
				assert.Equal(t, ref, OwnerReference(ref.Name, ref.UID))
				compared++
				earlier := ref
				earlier.BlockOwnerDeletion = new(false)
				assert.Equal(t, []metav1.OwnerReference{earlier}, WithOwner([]metav1.OwnerReference{earlier}, ref, nil))
			}
		}
	}
	assert.Positive(t, compared)
}

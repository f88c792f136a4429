//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ending is how a user has a placement want an object no more.
type ending struct {
	name            string
	leave, override bool
	// enveloped is whether the placement has the object in an envelope.
	enveloped bool
	do        func(*rivalry, int)
}

var endings = []ending{
	{name: "the placement is deleted", do: (*rivalry).deletePlacement},
	{name: "the placement is deleted and leaves what it placed", leave: true, do: (*rivalry).deletePlacement},
	{name: "it is selected no more", do: (*rivalry).deselect},
	{name: "an override takes it off the cluster", override: true, do: (*rivalry).overrideAway},
}

// endingsOfEnvelopes are those of a placement that has the object in an envelope.
var endingsOfEnvelopes = []ending{
	{name: "the placement of its envelope is deleted", enveloped: true, do: (*rivalry).deletePlacement},
	{name: "its envelope is deleted", enveloped: true, do: (*rivalry).deleteEnvelope},
	{name: "it leaves its envelope", enveloped: true, do: (*rivalry).leaveEnvelope},
}

// rivalry is about a ConfigMap that two placements select, or have in an envelope.
type rivalry struct {
	*spec
	number     int
	ends       [2]ending
	placements [2]*placementv1beta1.ResourcePlacement
	uid        types.UID
}

func (r *rivalry) String() string { return r.ends[0].name + ", then " + r.ends[1].name }

func (r *rivalry) object() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.name, Name: fmt.Sprintf("wanted-%d", r.number)}}
}

func (r *rivalry) placement(which int) string {
	return fmt.Sprintf("%s-%d", [2]string{"first", "second"}[which], r.number)
}

func named(names ...string) placementOption {
	var terms []placementv1beta1.ResourceSelectorTerm
	for _, name := range names {
		terms = append(terms, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap", Name: name})
	}
	return selecting(terms...)
}

// begin has a placement select the object, and another one that only it has.
func (r *rivalry) begin(which int) {
	r.Helper()
	own := r.configMap("own")
	own.Name = r.placement(which)
	r.create(own)
	placement := r.teamPlacement(named(r.object().Name, own.Name), pickFixed("member-1"))
	placement.Name = own.Name
	if r.ends[which].enveloped {
		envelope := r.envelopeOf(which)
		r.create(envelope)
		placement.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{
			{Version: "v1", Kind: "ConfigMap", Name: own.Name},
			{Group: placementv1beta1.GroupVersion.Group, Version: "v1beta1", Kind: "ResourceEnvelope", Name: envelope.Name},
		}
	}
	if r.ends[which].leave {
		abandon := &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}
		placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{DeleteStrategy: abandon}
	}
	r.create(placement)
	r.placements[which] = placement
}

// wantedKey is under what an envelope has the object that two want.
const wantedKey = "wanted.yaml"

// envelopeOf is an envelope with the object, and with one that only it has.
func (r *rivalry) envelopeOf(which int) *placementv1beta1.ResourceEnvelope {
	r.Helper()
	own := r.configMap("own")
	own.Name = r.placement(which) + "-wrapped"
	envelope := r.envelope(map[string]client.Object{wantedKey: r.object(), "own.yaml": own})
	envelope.Name = r.placement(which)
	return envelope
}

func (r *rivalry) deleteEnvelope(which int) { r.delete(r.hub, r.envelopeOf(which)) }

func (r *rivalry) leaveEnvelope(which int) {
	update(r.spec, r.hub, r.envelopeOf(which), func(e *placementv1beta1.ResourceEnvelope) { delete(e.Data, wantedKey) })
}

// awaitTold waits until a placement has been told that its cluster has what it selects, or that another placement has it.
func (r *rivalry) awaitTold(which int, status metav1.ConditionStatus) {
	r.Helper()
	await(r.spec, r.hub, r.placements[which].DeepCopy(), "to be told of "+r.object().Name, func(p *placementv1beta1.ResourcePlacement) error {
		return has(p.Status.Conditions, r.team().PlacementConditionType(placementv1beta1.ConditionTypeApplied), status, p.Generation)
	})
}

func (r *rivalry) deletePlacement(which int) { r.delete(r.hub, r.placements[which]) }

func (r *rivalry) deselect(which int) {
	update(r.spec, r.hub, r.placements[which], func(p *placementv1beta1.ResourcePlacement) { named(p.Name)(&p.Spec) })
}

func (r *rivalry) overrideAway(which int) {
	all := placementv1beta1.OverrideRule{OverrideType: placementv1beta1.DeleteOverrideType, ClusterSelector: &placementv1beta1.ClusterSelector{
		ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{{LabelSelector: in("canary")}},
	}}
	override := r.configMapOverride(all)
	override.Name = r.placement(which)
	override.Spec.Placement = &placementv1beta1.PlacementRef{Name: r.placement(which), Scope: placementv1beta1.NamespaceScoped}
	override.Spec.ResourceSelectors[0].Name = r.object().Name
	r.create(override)
}

// awaitOwner waits until the object on the member, which was never made anew, is that of a placement, or of none.
func (r *rivalry) awaitOwner(placement string) {
	r.Helper()
	await(r.spec, r.member("member-1"), r.object(), fmt.Sprintf("to be that of %q (%s)", placement, r), func(c *corev1.ConfigMap) error {
		require.Equal(r, r.uid, c.UID, r.String())
		require.Nil(r, c.DeletionTimestamp, r.String())
		owners := c.OwnerReferences
		if len(owners) == 0 && placement == "" || len(owners) == 1 && placement != "" && strings.Contains(owners[0].Name, placement) {
			return nil
		}
		return fmt.Errorf("its owners are %v", owners)
	})
}

// everyPairOfEndsOfPlacements has two placements select the same objects and end in each order: the other gets the object as it is, and
// nobody's object goes.
func everyPairOfEndsOfPlacements(s *spec) {
	s.runRivalries(endings, func(first, second ending) bool { return !first.override || !second.override }) // the hub admits one override for an object
}

// everyPairOfEndsOfEnvelopes does so with an object that one of the two placements, or each, has in an envelope.
func everyPairOfEndsOfEnvelopes(s *spec) {
	s.runRivalries(slices.Concat(endings, endingsOfEnvelopes), func(first, second ending) bool { return first.enveloped || second.enveloped })
}

// runRivalries has a rivalry for each pair of endings that fits.
func (s *spec) runRivalries(ends []ending, fits func(first, second ending) bool) {
	s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}})
	require.NoError(s, s.member("member-1").Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.name}}))
	var all []*rivalry
	for _, first := range ends {
		for _, second := range ends {
			if fits(first, second) {
				all = append(all, &rivalry{spec: s, number: len(all), ends: [2]ending{first, second}})
			}
		}
	}
	for _, r := range all {
		r.create(r.object())
		r.begin(0)
	}
	for _, r := range all {
		r.awaitTold(0, metav1.ConditionTrue)
		r.uid = s.uidOf("member-1", r.object())
		r.begin(1)
	}
	for _, r := range all {
		r.awaitTold(1, metav1.ConditionFalse)
	}
	for _, r := range all {
		r.ends[0].do(r, 0)
	}
	for _, r := range all {
		r.awaitOwner(r.placement(1))
		r.ends[1].do(r, 1)
	}
	for _, r := range all {
		if r.ends[1].leave {
			r.awaitOwner("")
			continue
		}
		awaitGone(s, s.member("member-1"), r.object())
	}
}

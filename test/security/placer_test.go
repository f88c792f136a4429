//go:build integration

package security

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

func TestPlacer(t *testing.T) {
	attempt(t, attacks{
		"a placer places kube-system":                selectionIsInvalid("kube-system"),
		"a placer places the namespace of the fleet": selectionIsInvalid("fleet-system"),
		"a placer places the namespace of a member":  selectionIsInvalid("fleet-member-member-2"),
		"a placer places the namespace of the accounts of members": placementFails(`{group: "", version: v1, kind: Namespace, name: connect-to-fleet}`,
			`namespace \"connect-to-fleet\", which the hub agent's flag --skipped-propagating-namespaces keeps from being placed`),
		"a placer places the roles by which Kubernetes works": rolesOfKubernetesStay,
		"a placer places what the owner of a cluster refuses": vetoHolds,
		"a placer gives a placement a name that does not fit into labels": refused(placer,
			creates(placement(strings.Repeat("a", 64), "shop")), "the name field cannot have length exceeding 63: choose a shorter metadata.name"),
		"a placer gives a placement a name that is no name": refused(placer, creates(placement(`"../shop"`, "shop")), "metadata.name"),
		"a placer places MemberClusters": placementFails(`{group: cluster.kubernetes-fleet.io, version: v1beta1, kind: MemberCluster, name: member-1}`,
			"resourceSelectors[0] selects MemberCluster"),
		"a placer places the Works of a member by a selector of their kind": placementFails(`{group: placement.kubernetes-fleet.io, version: v1beta1, kind: Work, name: shop-work}`,
			"resourceSelectors[0] selects Work"),
		"a placer takes over what another placement has placed":     placementFails(`{group: "", version: v1, kind: Namespace, name: bank}`, "ApplyConflictBetweenPlacements"),
		"a placer labels its objects as those of another placement": forbidden(placer, patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"labels":{"kubernetes-fleet.io/parent-CRP":"bank"}}}`)),
		"an override makes an object one of another kind":           refused(placer, creates(overriding("/kind", `"ClusterRole"`)), "cannot override"),
		"an override moves an object to another namespace":          refused(placer, creates(overriding("/metadata/namespace", `"kube-system"`)), "cannot override"),
		"an override gives an object a finalizer":                   refused(placer, creates(overriding("/metadata/finalizers", `["a.b/c"]`)), "cannot override"),
		"an override gives an object an owner":                      refused(placer, creates(overriding("/metadata/ownerReferences", `[]`)), "cannot override"),
		"a placer writes the verdict on its placement itself":       forbidden(placer, patches(fmt.Sprintf(ofFleet, "ClusterResourcePlacement", placed), `{status: {conditions: []}}`, "status")),
		"a placer has update runs created": refused(placer, creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: by-itself},
			spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}],
			strategy: {type: External, external: {trigger: OnChange, strategyName: `+gated+`}}}}`),
			"takes the right to create clusterstagedupdateruns.placement.kubernetes-fleet.io, which the user lacks"),
		"a placer has the API server of the hub compute for hours":                           refused(placer, creates(requiring(hours)), "value "+hours+" is not a Kubernetes quantity"),
		"a placer overrides a quantity so that the API servers of members compute for hours": overriddenQuantity,
		"a placer has aliases make hundreds of megabytes of an envelope":                     manyAliases,
		"a placer deletes a member": forbidden(placer, deletes(itself)),
	})
}

// overriding is an override of a cluster-scoped object by one operation.
func overriding(path, value string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceOverride, metadata: {name: mine},
		spec: {clusterResourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}], policy: {overrideRules: [
		{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: ` + path + `, value: ` + value + `}]}]}}}`
}

// selectionIsInvalid has the placer place a reserved namespace.
func selectionIsInvalid(namespace string) func(*spec) {
	return placementFails(`{group: "", version: v1, kind: Namespace, name: `+namespace+`}`,
		`namespace \"`+namespace+`\", which is reserved: namespaces named default, kube-* and fleet-* are never placed`)
}

// placementFails has the placer place something, and asserts that the placement says why not.
func placementFails(selector, sentence string) func(*spec) {
	return func(s *spec) {
		name := fmt.Sprintf("grab-%d", rounds.Add(1)) // the one before may still be on its way out
		s.createAs(placer.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: `+name+`},
			spec: {resourceSelectors: [`+selector+`], policy: {placementType: PickAll}}}`)
		s.awaitFailure(name, sentence)
	}
}

// rolesOfKubernetesStay has the placer place a role that every cluster has: nothing is selected.
func rolesOfKubernetesStay(s *spec) {
	before := map[string]*rbacv1.ClusterRole{}
	for name, member := range s.members {
		before[name] = &rbacv1.ClusterRole{}
		require.NoError(s, member.Get(s.Context(), client.ObjectKey{Name: "view"}, before[name]))
	}
	name := fmt.Sprintf("grab-%d", rounds.Add(1))
	s.createAs(placer.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: `+name+`},
		spec: {resourceSelectors: [{group: rbac.authorization.k8s.io, version: v1, kind: ClusterRole, name: view}], policy: {placementType: PickAll},
		strategy: {applyStrategy: {whenToTakeOver: Always}}}}`)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	found, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
		if p == nil || !meta.IsStatusConditionTrue(p.Status.Conditions, "ClusterResourcePlacementAvailable") {
			return "not available yet"
		}
		return ""
	})
	require.NoError(s, err)
	assert.Empty(s, found.Status.SelectedResources)
	for name, member := range s.members {
		after := &rbacv1.ClusterRole{}
		require.NoError(s, member.Get(s.Context(), client.ObjectKey{Name: "view"}, after))
		assert.Equal(s, before[name].ResourceVersion, after.ResourceVersion, name)
	}
}

// vetoHolds has the placer place a kind that the owner of member-2 denies.
func vetoHolds(s *spec) {
	const urgent = `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 1000}`
	s.create(urgent)
	name := fmt.Sprintf("grab-%d", rounds.Add(1))
	s.createAs(placer.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: `+name+`},
		spec: {resourceSelectors: [{group: scheduling.k8s.io, version: v1, kind: PriorityClass, name: urgent}], policy: {placementType: PickFixed, clusterNames: [member-2]}}}`)
	s.awaitFailure(name, "PriorityClass.scheduling.k8s.io urgent is refused by the owner of the cluster: no "+vetoedKind+" may be placed")
	s.requireAbsent(urgent)
}

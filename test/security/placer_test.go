//go:build integration

package security

import (
	"fmt"
	"testing"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestPlacer(t *testing.T) {
	attempt(t, attacks{
		"a placer places kube-system":                selectionIsInvalid("kube-system"),
		"a placer places the namespace of the fleet": selectionIsInvalid("fleet-system"),
		"a placer places the namespace of a member":  selectionIsInvalid("fleet-member-member-2"),
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
		"a placer deletes a member":                                 forbidden(placer, deletes(itself)),
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

//go:build integration

package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

const (
	// seize makes every service account of a namespace an administrator of the cluster.
	seize = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: seized},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
		subjects: [{kind: ServiceAccount, name: default, namespace: shop}]}`

	envelopeMap = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: wrapped,
		annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}, data: {seize: '` + seize + `'}}`
	aPod = `{apiVersion: v1, kind: Pod, metadata: {namespace: %s, name: mine}, spec: {containers: [{name: c, image: pause}]}}`
	work = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, metadata: {namespace: fleet-member-member-1, name: shop-work}}`

	// platformMap is an envelope that the platform has made in the namespace of the editor.
	platformMap = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: platform,
		annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}, data: {quota: '{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: quota}}'}}`

	noEnvelope = "that takes the right to create clusterresourceenvelopes.placement.kubernetes-fleet.io, which the user lacks"
)

func TestEditorOfAPlacedNamespace(t *testing.T) {
	attempt(t, attacks{
		"an editor makes a ConfigMap an envelope of a ClusterRoleBinding": func(s *spec) {
			s.requireRefusal(editor, creates(envelopeMap), noEnvelope)
			s.awaitMarker(placed)
			s.requireAbsent(seize)
		},
		"an editor makes an ordinary ConfigMap an envelope": refused(editor,
			patches(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: shop, name: marker}}`,
				`{metadata: {annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}}`), noEnvelope),
		"an editor makes an envelope of the platform an ordinary ConfigMap": envelopeStays(
			patches(platformMap, `{metadata: {annotations: {kubernetes-fleet.io/envelope-configmap: null}}}`)),
		"an editor deletes an envelope of the platform": envelopeStays(deletes(platformMap)),
		"an editor labels an envelope of the platform so that no placement selects it": envelopeStays(
			patches(platformMap, `{metadata: {labels: {team: shop}}}`)),
		"an editor gives an envelope of the platform an owner that does not exist": envelopeStays(
			patches(platformMap, `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: "1"}]}}`)),
		"an editor writes a ResourceEnvelope": forbidden(editor, creates(envelope("secret", `{apiVersion: v1, kind: Secret, metadata: {name: s}}`))),
		"an editor writes a ClusterResourceEnvelope": forbidden(editor,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: mine}, data: {seize: `+seize+`}}`)),
		"an editor creates a placement": forbidden(editor, creates(placement("mine", "shop"))),
		"an editor overrides what is placed": forbidden(editor,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {namespace: shop, name: mine},
				spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: marker}],
				policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}}}`)),
		"an editor writes into the namespace of another team": forbidden(editor,
			patches(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: bank, name: marker}}`, `{data: {mine: "1"}}`)),
		"an editor reads the Secrets of all teams in resource snapshots": forbidden(editor,
			lists(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot}`, "")),
		"an editor reads the Secrets of all teams in the Works of a member": forbidden(editor, lists(work, "fleet-member-member-1")),
		"an editor runs a pod on the hub":                                   refused(editor, creates(fmt.Sprintf(aPod, placed)), "Pod shop/mine creation is disallowed in the fleet hub cluster"),
		"an editor runs a replica set on the hub": refused(editor,
			creates(`{apiVersion: apps/v1, kind: ReplicaSet, metadata: {namespace: shop, name: mine}, spec: {selector: {matchLabels: {a: b}},
				template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: pause}]}}}}`),
			"ReplicaSet shop/mine creation is disallowed in the fleet hub cluster"),
		"an editor evicts the placement of another team": forbidden(editor,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementEviction, metadata: {name: mine},
				spec: {placementName: bank, clusterName: member-1}}`)),
		"an editor fills a namespace with more than a placement may select":       hoardIsNotPlaced,
		"an editor takes the places of the overrides of all teams":                overridesOfOthersCount,
		"an editor writes texts that take the agents of members hours to compare": textsThatCostHours,
		"an administrator of a namespace becomes one of the cluster by a role binding": refused(namespaceAdmin,
			creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: shop, name: mine},
				roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
				subjects: [{kind: ServiceAccount, namespace: shop, name: default}]}`), "is attempting to grant RBAC permissions not currently held"),
	})
}

// envelopeStays has an editor do something to an envelope of the platform, which is refused.
func envelopeStays(do deed) func(*spec) {
	return func(s *spec) {
		s.create(platformMap)
		s.requireRefusal(editor, do, noEnvelope)
	}
}

func TestWriterOfResourceEnvelopes(t *testing.T) {
	attempt(t, attacks{
		"a ResourceEnvelope holds a ClusterRoleBinding": envelopeFails(seize, "ClusterRoleBinding seized is cluster-scoped"),
		"a ResourceEnvelope holds a cluster-scoped object that claims a namespace": envelopeFails(
			`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {namespace: shop, name: mine}, provisioner: x}`, "StorageClass shop/mine is cluster-scoped and has a namespace"),
		"a ResourceEnvelope holds an object of another namespace": envelopeFails(
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: bank, name: planted}}`, "ConfigMap bank/planted is not in the namespace of the envelope"),
		"a ResourceEnvelope holds an object of kube-system": envelopeFails(
			`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: kube-system, name: planted}}`, "ConfigMap kube-system/planted is not in the namespace of the envelope"),
		"a ResourceEnvelope holds a Work": envelopeFails(
			`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, metadata: {name: planted}}`, "of the fleet's own API group"),
		"a ResourceEnvelope holds an object of an API that the operator skips": envelopeFails(
			`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {namespace: shop, name: open}, spec: {podSelector: {}}}`,
			"NetworkPolicy shop/open is of a kind that the hub agent's flag --skipped-propagating-apis names"),
		"a ResourceEnvelope holds a quantity that takes the API servers of members hours to read": envelopeFails(
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {namespace: shop, name: costly}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "`+hours+`"}}}}`,
			"field spec.resources.requests.storage "+unread),
		"a ResourceEnvelope holds another envelope": envelopeFails(
			`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: inner}, data: {seize: `+seize+`}}`, "envelopes cannot be nested"),
		"a ResourceEnvelope holds a cluster-scoped object of a kind that only members serve": unknownKindStaysOut,
	})
}

// envelope is a ResourceEnvelope in the placed namespace.
func envelope(key, object string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {namespace: shop, name: mine}, data: {` + key + `: ` + object + `}}`
}

func placement(name, namespace string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: ` + name + `},
		spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + namespace + `}]}}`
}

// envelopeFails has the writer of envelopes wrap an object, and asserts that the placement says why it is not placed and
// that no member gets it.
func envelopeFails(object, sentence string) func(*spec) {
	return func(s *spec) {
		s.createAs(wrapper.session(s), envelope("stolen", object))
		s.awaitMarker(placed)
		s.awaitFailure(placed, sentence)
		s.requireAbsent(object)
	}
}

// awaitFailure waits until the status of a placement says why it does not place something.
func (s *spec) awaitFailure(name, sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
		if told, err := json.Marshal(p); err != nil || !strings.Contains(string(told), sentence) {
			return fmt.Sprintf("its status does not say %q: %s", sentence, told)
		}
		return ""
	})
	require.NoError(s, err)
}

func unknownKindStaysOut(s *spec) {
	for _, member := range s.members {
		definition, err := creates(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: thrones.example.com},
			spec: {group: example.com, scope: Cluster, names: {plural: thrones, kind: Throne}, versions: [{name: v1, served: true, storage: true,
			schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`)(s.Context(), member)
		require.NoError(s, err)
		s.Cleanup(func() { require.NoError(s, member.Delete(context.WithoutCancel(s.Context()), definition)) })
	}
	const throne = `{apiVersion: example.com/v1, kind: Throne, metadata: {namespace: shop, name: mine}}`
	s.createAs(wrapper.session(s), envelope("stolen", throne))
	s.awaitMarker(placed)
	s.awaitFailure(placed, "its kind is cluster-scoped on this cluster, and the object names a namespace")
	s.requireAbsent(throne)
}

// hoardIsNotPlaced has an editor make more objects than a placement may select: what there is of the placement stays, and
// its status says why.
func hoardIsNotPlaced(s *spec) {
	for i := range selectionCeiling + 1 {
		s.createAs(hoarder.session(s), fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: hoard, name: part-%d}}`, i))
	}
	name := fmt.Sprintf("hoard-%d", rounds.Add(1))
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: ` + name + `},
		spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: hoard}], policy: {placementType: PickAll}}}`)
	s.awaitFailure(name, fmt.Sprintf("%d", selectionCeiling))
	s.awaitFailure(name, placementv1beta1.ReasonSelectionTooLarge)
	s.awaitMarker(placed) // the other placements go on
	s.requireAbsent(`{apiVersion: v1, kind: Namespace, metadata: {name: hoard}}`)
}

// overridesOfOthersCount has an editor make more overrides than count in a namespace: those of another one do.
func overridesOfOthersCount(s *spec) {
	overriding := func(namespace string, i int) string {
		return fmt.Sprintf(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {namespace: %s, name: taken-%d},
			spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: nowhere-%d}],
			policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, overrideType: Delete}]}}}`, namespace, i, i)
	}
	const limit = 100
	for i := range limit + 1 {
		s.createAs(hoarder.session(s), overriding(hoard, i))
	}
	s.create(overriding(other, limit))
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, s.hub, func(all []*placementv1beta1.ResourceOverride) string {
		refused := 0
		fine := false
		for _, o := range all {
			valid := meta.FindStatusCondition(o.Status.Conditions, placementv1beta1.ConditionTypeValid)
			switch {
			case valid == nil:
				return o.Name + " is not judged"
			case o.Namespace == other:
				fine = valid.Status == "True"
			case valid.Status == "False" && strings.Contains(valid.Message, "at most 100 resources can be created in namespace hoard; this override has no effect"):
				refused++
			}
		}
		if refused != 1 || !fine {
			return fmt.Sprintf("%d of namespace hoard are refused; that of the other team counts: %t", refused, fine)
		}
		return ""
	})
	require.NoError(s, err)
}

//go:build integration

package security

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// hours is a quantity that takes a program hours and gigabytes to compute.
	hours = "1234567890123456789e1000000000"
	// unread is said of such a quantity.
	unread = "is no quantity that can be read: its exponent has more than two digits"
)

// textsThatCostHours has an editor write such quantities where there is only text, and take them back: each time the agents compare old
// and new, and go on.
func textsThatCostHours(s *spec) {
	texts := func(value string) string {
		var list []string
		for i := range 10 {
			list = append(list, fmt.Sprintf("x%d: %q", i, value))
		}
		return "{data: {" + strings.Join(list, ", ") + "}}"
	}
	const costly = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + placed + `, name: costly}}`
	s.create(costly)
	for _, value := range []string{hours, "-" + hours, hours + "0", "1"} {
		_, err := patches(costly, texts(value))(s.Context(), editor.session(s))
		require.NoError(s, err)
		for name, member := range s.members {
			ctx, cancel := context.WithTimeout(s.Context(), patience)
			defer cancel()
			_, err := access.Await(ctx, member, client.ObjectKey{Namespace: placed, Name: "costly"}, func(m *corev1.ConfigMap) string {
				if m == nil || m.Data["x9"] != value {
					return "not changed yet"
				}
				return ""
			})
			require.NoError(s, err, name)
		}
	}
	s.awaitMarker(placed)
}

// overriddenQuantity has the placer put such a quantity into an object on its way to the members.
func overriddenQuantity(s *spec) {
	const quota = `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: ` + placed + `, name: overridden}, spec: {hard: {pods: "5"}}}`
	// An override that names its placement counts at once. One for all placements counts from the next rollout on, which the quota
	// itself may be if the hub agent is quicker to select it than to take the override up.
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceOverride, metadata: {namespace: ` + placed + `, name: costly},
		spec: {placement: {name: ` + placed + `}, resourceSelectors: [{group: "", version: v1, kind: ResourceQuota, name: overridden}], policy: {overrideRules: [
		{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: add, path: /spec/hard/pods, value: "` + hours + `"}]}]}}}`)
	s.create(quota)
	s.awaitFailure(placed, "field spec.hard.pods "+unread)
	s.requireAbsent(quota)
	s.awaitMarker(placed)
}

// reportedQuantity has a thief report such a quantity as a property, while a placement asks for the property.
func reportedQuantity(s *spec) {
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	agent := controlplane.MemberAgent("member-1")
	require.NoError(s, s.order(ctx, control.Stop, agent)) // the thief reports in its place
	defer func() { require.NoError(s, s.order(context.WithoutCancel(s.Context()), control.Start, agent)) }()
	stolen := thief.session(s)
	box := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(s, stolen.Get(ctx, client.ObjectKey{Namespace: "fleet-member-member-1", Name: "member-1"}, box))
	box.Status.Properties["example.com/cost"] = clusterv1beta1.PropertyValue{Value: hours, ObservationTime: metav1.Now()}
	require.NoError(s, stolen.Status().Update(ctx, box))
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "member-1"}, func(m *clusterv1beta1.MemberCluster) string {
		if m == nil || m.Status.Properties["example.com/cost"].Value != hours {
			return "not reported yet"
		}
		return ""
	})
	require.NoError(s, err)
	const name = "costly"
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: ` + name + `}, spec: {
		resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + placed + `}],
		policy: {placementType: PickN, numberOfClusters: 2, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [
			{propertySelector: {matchExpressions: [{name: example.com/cost, operator: Gt, values: ["1"]}]}}]}}}}}}`)
	_, err = access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
		if p == nil || !meta.IsStatusConditionFalse(p.Status.Conditions, "ClusterResourcePlacementScheduled") {
			told, _ := json.Marshal(p)
			return "the scheduler does not say that it finds no cluster: " + string(told)
		}
		return ""
	})
	require.NoError(s, err)
}

// requiring is a placement that takes clusters whose property compares with a text.
func requiring(text string) string {
	return `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: costly-policy},
		spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}], policy: {placementType: PickAll, affinity: {clusterAffinity: {
		requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [
		{name: a, operator: Ge, values: ["1"]}, {name: a, operator: Le, values: ["` + text + `"]}]}}]}}}}}}`
}

// manyAliases has the placer place an envelope whose text stands for hundreds of times as much.
func manyAliases(s *spec) {
	text := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: &a " + strings.Repeat("x", 1000) + ", b: [" + strings.Repeat("*a,", 100_000) + "]}}"
	namespace := fmt.Sprintf("aliases-%d", rounds.Add(1))
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + namespace + `}}`)
	s.create(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + namespace + `, name: bomb, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}, data: {a.yaml: "` + text + `"}}`)
	placementFails(`{group: "", version: v1, kind: Namespace, name: `+namespace+`}`, "its aliases make more than 2 times of it what is written")(s)
}

//go:build integration

package security

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	ownBox = `{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: InternalMemberCluster, metadata: {namespace: fleet-member-member-1, name: member-1}}`
	itself = `{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: member-1}}`

	// noJoin is said of the identity of a member.
	noJoin = "takes the verb join on memberclusters.cluster.kubernetes-fleet.io, which the user lacks"
	// agentsOnly is said of what the agents of the fleet write.
	agentsOnly = "objects of this kind are written by the agents of the fleet"
)

func TestTokenOfAMember(t *testing.T) {
	attempt(t, attacks{
		"a member reads the Works of its neighbour":   forbidden(thief, lists(work, "fleet-member-member-2")),
		"a member reads the Works of all members":     forbidden(thief, lists(work, "")),
		"a member reads the mailbox of its neighbour": forbidden(thief, lists(ownBox, "fleet-member-member-2")),
		"a member reports for its neighbour": forbidden(thief,
			patches(`{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: InternalMemberCluster, metadata: {namespace: fleet-member-member-2, name: member-2}}`, `{status: {conditions: []}}`, "status")),
		"a member changes what its Works say":      refused(thief, patches(work, `{spec: {workload: {manifests: []}}}`), agentsOnly),
		"a member moves a Work to another binding": refused(thief, patches(work, `{metadata: {labels: {kubernetes-fleet.io/parent-binding: bank-member-2}}}`), agentsOnly),
		"a member annotates a Work":                refused(thief, patches(work, `{metadata: {annotations: {kubernetes-fleet.io/x: "1"}}}`), agentsOnly),
		"a member gives a Work an owner": refused(thief,
			patches(work, `{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: "1"}]}}`), agentsOnly),
		"a member holds the deletion of a placement by a finalizer": refused(thief, patches(work, `{metadata: {finalizers: [kubernetes-fleet.io/work-cleanup, mine.example.com/hold]}}`),
			"the agent of a member takes finalizers off its Works and adds none"),
		"a member makes a Work for itself": forbidden(thief,
			creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: Work, metadata: {namespace: fleet-member-member-1, name: mine}, spec: {workload: {manifests: []}}}`)),
		"a member deletes a Work":                           forbidden(thief, deletes(work)),
		"a member tells itself what the hub should tell it": forbidden(thief, patches(ownBox, `{spec: {state: Leave}}`)),
		"a member takes a taint off itself":                 forbidden(thief, patches(itself, `{spec: {taints: []}}`)),
		"a member labels itself":                            forbidden(thief, patches(itself, `{metadata: {labels: {environment: canary}}}`)),
		"a member writes its health itself":                 forbidden(thief, patches(itself, `{status: {conditions: []}}`, "status")),
		"a member reads the placements of the hub":          forbidden(thief, lists(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement}`, "")),
		"a member reads the resource snapshots of the hub":  forbidden(thief, lists(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot}`, "")),
		"a member reads Secrets of the hub":                 forbidden(thief, lists(`{apiVersion: v1, kind: Secret}`, "fleet-member-member-1")),
		"a member reads Secrets of a placed namespace":      forbidden(thief, reads(`{apiVersion: v1, kind: Secret, metadata: {namespace: bank, name: vault}}`)),
		"a member gives itself a role": forbidden(thief,
			creates(`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: fleet-member-member-1, name: mine},
				roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
				subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: member-1}]}`)),
		"a member widens its role": forbidden(thief,
			patches(`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: fleet-member-member-1, name: fleet-role-member-1}}`,
				`{rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`)),
		"a member takes the lease of the hub agent": forbidden(thief,
			creates(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: fleet-system, name: mine}, spec: {holderIdentity: me}}`)),
		"a member approves a run":                                forbidden(thief, approves),
		"a member fills the hub with the message of a condition": refused(thief, patches(work, reportOf(1, 40_000), "status"), "Too long: may not be more than 32768"),
		"a member fills the hub with conditions":                 refused(thief, patches(work, reportOf(200, 10), "status"), "Too many: 200: must have at most"),
		"a member fills the hub with a property": refused(thief, reportsProperty(),
			"Too long"),
		"a member reports a property that takes the hub hours to compare":                             reportedQuantity,
		"a member reports a value of a status that is no value of a label for its length":             refused(thief, patches(work, reportOfState(1, 64), "status"), "Too long: may not be more than 63"),
		"a member fills the hub with values of a status":                                              refused(thief, patches(work, reportOfState(21, 1), "status"), "Too many: 21: must have at most 20"),
		"a member reports values of a status for labels and objects that the placement does not name": stateIsNoWayIn,
		"a member makes a token for the account of another member":                                    forbidden(thief, mintsToken("connect-to-fleet", memberAccount)),
	})
}

// reportOfState is the status of a Work with so many values of the status of an object, which are so long.
func reportOfState(values, length int) string {
	var list []string
	for i := range values {
		list = append(list, fmt.Sprintf(`{jsonPath: "{.a%d}", value: %s}`, i, strings.Repeat("x", length)))
	}
	return "{status: {manifestConditions: [{identifier: {ordinal: 0, version: v1, kind: Namespace, resource: namespaces, name: " + placed + "}, conditions: [], stateValues: [" + strings.Join(list, ", ") + "]}]}}"
}

// stateIsNoWayIn has a member report, in place of the values that a placement takes along from it, values for other labels, values that
// cannot be labels, and values for objects of others. What is placed on the next cluster gets the one label that the placement names.
func stateIsNoWayIn(s *spec) {
	const (
		name  = "stateful"
		alias = "state.example.com/job"
	)
	for manifest := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(teamOf(name)), "---"), "\n---\n") {
		s.create(manifest)
	}
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: ` + name + `}, spec: {
		resourceSelectors: [{group: "", version: v1, kind: Namespace, name: ` + name + `}],
		policy: {placementType: PickN, numberOfClusters: 1, affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
			{weight: 100, preference: {labelSelector: {matchLabels: {kubernetes-fleet.io/member-name: member-1}}}}]}}},
		strategy: {rollingUpdate: {maxUnavailable: 100%, unavailablePeriodSeconds: 0}, failover: {cluster: {purgeMode: Directly, statePreservation: {rules: [{aliasLabelName: ` + alias + `, jsonPath: "{.jobID}"}]}}}}}}`)
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementAvailable"))
	agent := controlplane.MemberAgent("member-1")
	require.NoError(s, s.order(ctx, control.Stop, agent)) // the thief reports in its place
	defer func() { require.NoError(s, s.order(context.WithoutCancel(s.Context()), control.Start, agent)) }()
	forged := forgeState(ctx, s, name)
	taints := func(list string) {
		_, err := patches(itself, "{spec: {taints: "+list+"}}")(context.WithoutCancel(s.Context()), s.hub)
		require.NoError(s, err)
	}
	taints("[{key: ill, effect: NoExecute}]")
	defer taints("[]")
	var given string
	_, err := access.AwaitAll(ctx, s.hub, func(bindings []*placementv1beta1.ClusterResourceBinding) string {
		for _, binding := range bindings {
			if binding.Spec.TargetCluster == "member-2" {
				given = binding.Annotations[placementv1beta1.PreservedStateAnnotation]
				return ""
			}
		}
		return "nothing is picked in the place of member-1"
	}, client.MatchingLabels{placementv1beta1.ParentPlacementLabel: name})
	require.NoError(s, err)
	assert.JSONEq(s, `[{"kind":"ConfigMap","namespace":"stateful","name":"marker","labels":{"state.example.com/job":"forged"}}]`, given)

	_, err = access.Await(ctx, s.hub, client.ObjectKeyFromObject(forged), func(w *placementv1beta1.Work) string {
		if w != nil && w.DeletionTimestamp.IsZero() {
			return "not being removed"
		}
		return ""
	})
	require.NoError(s, err)
	require.NoError(s, thief.session(s).Patch(ctx, forged, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))), "no namespace ever goes on these members")
	moved, err := access.Await(ctx, s.members["member-2"], client.ObjectKey{Namespace: name, Name: "marker"}, func(c *corev1.ConfigMap) string {
		if c == nil {
			return "missing"
		}
		return ""
	})
	require.NoError(s, err)
	assert.Equal(s, map[string]string{alias: "forged"}, moved.Labels)
	for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "marker"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "vault"}}} {
		require.NoError(s, s.members["member-2"].Get(ctx, client.ObjectKeyFromObject(object), object))
		assert.NotContains(s, object.GetLabels(), alias, "%T", object)
		assert.NotContains(s, object.GetLabels(), placementv1beta1.ParentPlacementLabel, "%T", object)
	}
}

// forgeState reports, with the token of the member, values that were not asked for on the Work of a placement, which it returns.
func forgeState(ctx context.Context, s *spec, placement string) *placementv1beta1.Work {
	c := thief.session(s)
	works := &placementv1beta1.WorkList{}
	require.NoError(s, c.List(ctx, works, client.InNamespace("fleet-member-member-1")))
	at := slices.IndexFunc(works.Items, func(w placementv1beta1.Work) bool {
		return w.Labels[placementv1beta1.ParentPlacementLabel] == placement
	})
	require.GreaterOrEqual(s, at, 0, "the Work of the placement")
	work := &works.Items[at]
	before := work.DeepCopy()
	value := func(path, value string) placementv1beta1.StateValue {
		return placementv1beta1.StateValue{JSONPath: path, Value: value}
	}
	said := work.Status.ManifestConditions
	for i := range said {
		switch said[i].Identifier.Kind {
		case "ConfigMap":
			said[i].StateValues = []placementv1beta1.StateValue{
				value("{.jobID}", "forged"), value("{.other}", "forged"), value(placementv1beta1.ParentPlacementLabel, other), value("state.example.com/other", "forged"),
			}
		case "Namespace":
			said[i].StateValues = []placementv1beta1.StateValue{value("{.jobID}", "a b/c"), value("pod-security.kubernetes.io/enforce", "privileged")}
		}
	}
	for ordinal, id := range []placementv1beta1.WorkResourceIdentifier{
		{Kind: "ConfigMap", Version: "v1", Resource: "configmaps", Namespace: other, Name: "marker"},
		{Kind: "Secret", Version: "v1", Resource: "secrets", Namespace: other, Name: "vault"},
		{Kind: "Namespace", Version: "v1", Resource: "namespaces", Name: other, Ordinal: 1000},
	} {
		if id.Ordinal == 0 {
			id.Ordinal = ordinal
		}
		said = append(said, placementv1beta1.ManifestCondition{Identifier: id, Conditions: []metav1.Condition{}, StateValues: []placementv1beta1.StateValue{value("{.jobID}", "forged")}})
	}
	work.Status.ManifestConditions = said
	require.NoError(s, c.Status().Patch(ctx, work, client.MergeFrom(before)))
	return work
}

func TestOperatorOfMembers(t *testing.T) {
	attempt(t, attacks{
		"an operator of members writes their status": refused(operator, patches(itself, `{status: {properties: {}}}`, "status"),
			"the status of a MemberCluster is written by the agents of the fleet"),
		"an operator of members lets a cluster of its own join": refused(operator,
			creates(`{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: evil, labels: {environment: canary}},
				spec: {identity: {kind: User, name: mallory, apiGroup: rbac.authorization.k8s.io}}}`), noJoin),
		"an operator of members becomes a member": func(s *spec) {
			s.requireRefusal(operator, patches(itself, `{spec: {identity: {kind: ServiceAccount, namespace: attackers, name: operator, apiGroup: ""}}}`), noJoin)
			s.requireRefusal(operator, lists(work, "fleet-member-member-1"), notAllowed)
		},
		"an operator of members gives a member's rights to all users": refused(operator,
			patches(itself, `{spec: {identity: {kind: Group, name: "system:authenticated"}}}`), "identity.name must not begin with system: for kinds User and Group"),
		"an operator of members adds an annotation of Azure": refused(operator,
			patches(itself, `{metadata: {annotations: {fleet.azure.com/cluster-resource-id: "1"}}}`), "annotations of a MemberCluster that begin with fleet.azure.com"),
		"an operator of members reads Works": forbidden(operator, lists(work, "fleet-member-member-1")),
	})
}

// reportOf is the status of a Work with so many conditions, whose messages are so long.
func reportOf(conditions, length int) string {
	var list []string
	for i := range conditions {
		list = append(list, fmt.Sprintf(`{type: T%d, status: "True", reason: a, message: %s, lastTransitionTime: "2026-01-01T00:00:00Z"}`, i, strings.Repeat("x", length)))
	}
	return "{status: {conditions: [" + strings.Join(list, ", ") + "]}}"
}

// reportsProperty tries to report a property that is as large as a request may be.
func reportsProperty() deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		box := &clusterv1beta1.InternalMemberCluster{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "fleet-member-member-1", Name: "member-1"}, box); err != nil {
			return nil, err
		}
		box.Status.Properties["example.com/huge"] = clusterv1beta1.PropertyValue{Value: strings.Repeat("x", 1_000_000)}
		return nil, c.Status().Update(ctx, box)
	}
}

func TestNetworkOfAMember(t *testing.T) {
	attempt(t, attacks{
		"an attacker on the network is shown the token of a member": func(s *spec) {
			agent := exec.CommandContext(s.Context(), s.Binary("member-agent"))
			agent.Env = []string{"MEMBER_CLUSTER_NAME=member-1", "HUB_SERVER_URL=http://" + s.Address("hub/apiserver"), "CONFIG_PATH=" + s.HubTokenFile("member-1")}
			out, err := agent.CombinedOutput()
			exit := &exec.ExitError{}
			require.True(s, errors.As(err, &exit), "%v", err)
			assert.Contains(s, string(out), "which is not https: the agent shows its token there, and every machine on the way could read it")
		},
	})
}

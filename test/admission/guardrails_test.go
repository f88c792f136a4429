//go:build integration

package admission

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// guarded is what stands on the hub when somebody tries to write: a member's namespace with its access, mailbox and
// Work, and what the agents made of a placement.
const guarded = `
apiVersion: v1
kind: Namespace
metadata: {name: fleet-member-guarded}
---
apiVersion: v1
kind: Namespace
metadata: {name: kube-guarded}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: fleet-member-guarded, name: fleet-role-guarded}
rules:
- {apiGroups: [cluster.kubernetes-fleet.io], resources: [internalmemberclusters], verbs: [get, list, watch]}
- {apiGroups: [cluster.kubernetes-fleet.io], resources: [internalmemberclusters/status], verbs: [get, update, patch]}
- {apiGroups: [placement.kubernetes-fleet.io], resources: [works], verbs: [get, list, watch, update, patch]}
- {apiGroups: [placement.kubernetes-fleet.io], resources: [works/status], verbs: [get, update, patch]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: fleet-member-guarded, name: fleet-rolebinding-guarded}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: fleet-role-guarded}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: guarded}
- {kind: ServiceAccount, namespace: fleet-system, name: guarded}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: InternalMemberCluster
metadata: {namespace: fleet-member-guarded, name: guarded}
spec: {state: Join}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: Work
metadata: {namespace: fleet-member-guarded, name: web-work, finalizers: [kubernetes-fleet.io/work-cleanup]}
spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}]}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourceBinding
metadata: {name: web-guarded}
spec:
  state: Bound
  resourceSnapshotName: web-0-snapshot
  schedulingPolicySnapshotName: web-0
  targetCluster: guarded
  clusterDecision: {clusterName: guarded, selected: true, reason: picked}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceBinding
metadata: {namespace: default, name: web-guarded, annotations: {fleetflow.io/superseded: ""}}
spec:
  state: Unscheduled
  resourceSnapshotName: web-0-snapshot
  schedulingPolicySnapshotName: web-0
  targetCluster: guarded
  clusterDecision: {clusterName: guarded, selected: true, reason: picked}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceBinding
metadata: {namespace: default, name: web-left, annotations: {fleetflow.io/superseded: "2026-01-01T00:00:00Z"}}
spec:
  state: Unscheduled
  resourceSnapshotName: web-0-snapshot
  schedulingPolicySnapshotName: web-0
  targetCluster: guarded
  clusterDecision: {clusterName: guarded, selected: true, reason: picked}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceBinding
metadata: {namespace: default, name: web-again, annotations: {fleetflow.io/superseded: "2026-01-01T00:00:00Z"}}
spec:
  state: Bound
  resourceSnapshotName: web-0-snapshot
  schedulingPolicySnapshotName: web-0
  targetCluster: guarded
  clusterDecision: {clusterName: guarded, selected: true, reason: picked}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: guarded}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: guarded}], strategy: {type: External}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourcePlacement
metadata: {namespace: default, name: guarded}
spec: {resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: guarded}]}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: guarded}
spec: {placementName: guarded, stagedRolloutStrategyName: guarded}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: StagedUpdateRun
metadata: {namespace: default, name: guarded}
spec: {placementName: guarded, stagedRolloutStrategyName: guarded}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: guarded-canary}
spec: {parentStageRollout: guarded, targetStage: canary}
---
apiVersion: fleetflow.io/v1alpha1
kind: AuditRecord
metadata: {name: guarded}
spec:
  id: "0000000000000000000000000000000000000000000000000000000000000000"
  type: run.created
  time: "2026-01-01T00:00:00Z"
  subjectRef: {apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, name: web-2, uid: "4711"}
  sequence: 1
---
apiVersion: fleetflow.io/v1alpha1
kind: AuditSink
metadata: {name: guarded}
spec: {type: File, file: {name: "-"}}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacementEviction
metadata: {name: guarded}
spec: {placementName: guarded, clusterName: guarded}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata:
  name: guarded
  labels: {environment: canary}
  annotations: {fleet.azure.com/cluster-resource-id: "1", note: mine}
spec: {identity: {kind: User, name: guarded, apiGroup: rbac.authorization.k8s.io}}
---
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: unmanaged, labels: {environment: canary}}
spec: {identity: {kind: User, name: unmanaged, apiGroup: rbac.authorization.k8s.io}}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: kube-public, name: guarded}
---
apiVersion: v1
kind: ConfigMap
metadata: {namespace: default, name: guarded}
`

// senders are those who try. All but members may do everything as far as RBAC is concerned. The documents put the
// accounts of members into fleet-system, as another release is.
func senders(t *testing.T) map[string]*session {
	accounts := "system:serviceaccounts"
	return map[string]*session{
		"an administrator":         admin,
		"an administrator of kind": as(t, "kubernetes-admin", "kubeadm:cluster-admins"),
		"the hub agent":            as(t, "fleet-hub-agent"),
		"another release":          as(t, "system:serviceaccount:fleet-system:workers", accounts, accounts+":fleet-system"),
		"the controller manager":   as(t, "system:kube-controller-manager"),
		"the garbage collector":    as(t, "system:serviceaccount:kube-system:generic-garbage-collector", accounts, accounts+":kube-system"),
		"a node":                   as(t, "system:node:n1", "system:nodes"),
		"jane":                     as(t, "jane", "developers"),
		"a bootstrapping node":     as(t, "system:bootstrap:abcdef", "system:bootstrappers"),
		"an add-on":                as(t, "system:serviceaccount:cert-manager:controller", accounts, accounts+":cert-manager"),
		"the member":               granted(t, "guarded"),
		"its account":              granted(t, "system:serviceaccount:fleet-system:guarded", accounts, accounts+":fleet-system"),
		"another member":           granted(t, "unmanaged"),
	}
}

// passing are the senders whom the guard rails do not stop; the hub agent only as far as it does what it has to do.
var passing = []string{
	"an administrator", "an administrator of kind", "the hub agent", "another release",
	"the controller manager", "the garbage collector",
}

// inKubernetes are those who work in the namespaces of Kubernetes and of the agents, but not in those of members.
var inKubernetes = append(slices.Clone(passing), "a node")

// everyUser are the senders whom RBAC lets do everything.
var everyUser = append(slices.Clone(inKubernetes), "jane", "a bootstrapping node", "an add-on")

// deed is something that is tried by every sender, as a dry run.
type deed struct {
	do func(t *testing.T, s *session) error
	// admitted are those who may.
	admitted []string
	// message is what the others read, unless RBAC had stopped them before.
	message string
}

// creates tries to create what a manifest says.
func creates(manifest string) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		_, err := s.try(t.Context(), parse(t, manifest), metav1.DryRunAll)
		return err
	}
}

// changes tries to update a stored object, or a part of it.
func changes(kind, namespace, name, patch string, subresources ...string) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		object := parse(t, kind)
		object.SetNamespace(namespace)
		resource, err := s.resource(object)
		require.NoError(t, err)
		reader, err := admin.resource(object)
		require.NoError(t, err)
		stored, err := reader.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		_, err = resource.Update(t.Context(), patched(stored, parsePatch(t, patch)), metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}, subresources...)
		return err
	}
}

// deletes tries to delete a stored object.
func deletes(kind, namespace, name string) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		object := parse(t, kind)
		object.SetNamespace(namespace)
		resource, err := s.resource(object)
		require.NoError(t, err)
		return resource.Delete(t.Context(), name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

// empties tries to delete all stored objects of a kind in a namespace at once.
func empties(kind, namespace string) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		object := parse(t, kind)
		object.SetNamespace(namespace)
		resource, err := s.resource(object)
		require.NoError(t, err)
		return resource.DeleteCollection(t.Context(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, metav1.ListOptions{})
	}
}

// createGuarded creates what the deeds are done to.
func createGuarded(t *testing.T) {
	for _, object := range split(t, []byte(guarded)) {
		admin.createObject(t, object)
	}
}

func TestGuardRailsKnowWhoMayPass(t *testing.T) {
	createGuarded(t)
	all := senders(t)
	for name, deed := range deeds() {
		t.Run(name, func(t *testing.T) {
			for sender, session := range all {
				err := deed.do(t, session)
				if slices.Contains(deed.admitted, sender) {
					assert.NoError(t, err, sender)
					continue
				}
				if !assert.Error(t, err, sender) {
					continue
				}
				assert.True(t, apierrors.IsForbidden(err), "%s: %v", sender, err)
				switch {
				case sender == "the hub agent" && slices.Contains(deed.admitted, "an administrator"):
					assert.Contains(t, err.Error(), ownWrites, sender)
				case slices.Contains(everyUser, sender):
					assert.Contains(t, err.Error(), deed.message, sender)
				}
			}
		})
	}
}

func TestARefusalSaysWhoWantedWhatAndWhatToDo(t *testing.T) {
	createGuarded(t)
	jane := as(t, "jane", "developers")
	err := changes(work, "fleet-member-guarded", "web-work", `{metadata: {labels: {a: b}}}`)(t, jane)
	const who = "user: 'jane' in '[developers, tests:everybody, system:authenticated]' is not allowed to "
	require.ErrorContains(t, err, who+"UPDATE resource placement.kubernetes-fleet.io/v1beta1, Kind=Work: fleet-member-guarded/web-work; "+
		"objects of this kind are written by the agents of the fleet: change the placement, the override or the MemberCluster that this one "+
		"comes from, or have an administrator of the hub add the user or one of its groups to guardRail.allowedUsers or "+
		"guardRail.allowedGroups in the values of the hub agent's chart")
	err = deletes("{apiVersion: v1, kind: Namespace}", "", "fleet-member-guarded")(t, jane)
	require.ErrorContains(t, err, who+"DELETE resource v1, Kind=Namespace: fleet-member-guarded; namespaces that begin with fleet- or kube-")
	err = changes(memberCluster, "", "unmanaged", `{status: {conditions: []}}`, "status")(t, jane)
	require.ErrorContains(t, err, who+"UPDATE resource cluster.kubernetes-fleet.io/v1beta1, Kind=MemberCluster/status: unmanaged; ")
}

// TestUnchangedObjectsCanBeWrittenAgain is what kubectl apply does when nothing has changed.
func TestUnchangedObjectsCanBeWrittenAgain(t *testing.T) {
	createGuarded(t)
	jane := as(t, "jane", "developers")
	for _, name := range []string{"guarded", "unmanaged"} {
		assert.NoError(t, changes(memberCluster, "", name, `{}`)(t, jane))
	}
}

//go:build integration

package security

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	ofFleet = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: %s, metadata: {name: %s}}`
	// reservedNamespace is said of the namespaces of the fleet and of Kubernetes.
	reservedNamespace = "namespaces that begin with fleet- or kube-, and what is in them, are reserved for the fleet and for Kubernetes"
)

// approves sets the condition Approved on the request of the run that waits.
var approves = patches(fmt.Sprintf(ofFleet, "ClusterApprovalRequest", gated+"-staging"),
	`{status: {conditions: [{type: Approved, status: "True", reason: lgtm, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, "status")

// TestWriterOfAllFleetKinds is about what agents write for themselves: the right to write every object of the fleet's API is
// not the right to write those.
func TestWriterOfAllFleetKinds(t *testing.T) {
	attempt(t, attacks{
		"a fleet administrator changes a Work":                       refused(statusWriter, patches(work, `{spec: {workload: {manifests: []}}}`), agentsOnly),
		"a fleet administrator reports on a Work":                    refused(statusWriter, patches(work, `{status: {conditions: []}}`, "status"), agentsOnly),
		"a fleet administrator deletes a Work":                       refused(statusWriter, deletes(work), agentsOnly),
		"a fleet administrator binds a placement to another cluster": refused(statusWriter, patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"spec":{"targetCluster":"member-2"}}`), agentsOnly),
		"a fleet administrator labels a binding":                     refused(statusWriter, patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"labels":{"kubernetes-fleet.io/parent-CRP":"another"}}}`), agentsOnly),
		"a fleet administrator says of a binding that its cluster waits for no hook": refused(statusWriter,
			patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"labels":{"fleetflow.io/lifecycle-state":"Normal"}}}`), agentsOnly),
		"a fleet administrator takes the finalizer of the fleet off a binding": refused(statusWriter,
			patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"finalizers":["example.com/drain"]}}`), agentsOnly),
		"a controller of lifecycle hooks changes what a cluster runs": refused(statusWriter,
			patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"labels":{"example.com/in-service":"yes"}},"spec":{"state":"Unscheduled"}}`), agentsOnly),
		"a controller of lifecycle hooks notes something beside its label": refused(statusWriter,
			patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, `{"metadata":{"labels":{"example.com/in-service":"yes"},"annotations":{"a":"b"}}}`), agentsOnly),
		"a controller of lifecycle hooks labels a binding, and no more":       labelsABinding("example.com/in-service", "yes"),
		"a user who may patch bindings asks for the replacement of a cluster": labelsABinding("fleetflow.io/specified-delete", "true"),
		"a fleet administrator labels a resource snapshot": refused(statusWriter,
			patchesFirst(&placementv1beta1.ClusterResourceSnapshotList{}, `{"metadata":{"labels":{"kubernetes-fleet.io/parent-CRP":"bank"}}}`), agentsOnly),
		"a fleet administrator changes what a resource snapshot has":       refused(statusWriter, patchesFirst(&placementv1beta1.ClusterResourceSnapshotList{}, `{"spec":{"selectedResources":[]}}`), "The spec field is immutable"),
		"a fleet administrator writes the status of a policy snapshot":     refused(statusWriter, writesStatus("ClusterSchedulingPolicySnapshot", placed+"-0"), agentsOnly),
		"a fleet administrator writes the status of a run":                 refused(statusWriter, writesStatus("ClusterStagedUpdateRun", gated), statusIsTheAgents),
		"a fleet administrator writes the status of a placement":           refused(statusWriter, writesStatus("ClusterResourcePlacement", placed), statusIsTheAgents),
		"a fleet administrator declares an override valid":                 refused(statusWriter, writesStatus("ClusterResourceOverride", "victim"), statusIsTheAgents),
		"a fleet administrator declares an eviction executed":              refused(statusWriter, writesStatus("ClusterResourcePlacementEviction", "victim"), statusIsTheAgents),
		"a fleet administrator accepts an approval that no user has given": refused(statusWriter, patches(gatedRequest, acceptance, "status"), "ApprovalAccepted"),
	})
}

const (
	// statusIsTheAgents is said of the status of what users make.
	statusIsTheAgents = "the status of this kind is written by the agents of the fleet"
	// acceptance is what the hub agent writes once it has taken up an approval.
	acceptance = `{status: {conditions: [{type: ApprovalAccepted, status: "True", reason: a, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`
	// accountsOnly is said of the namespace of the accounts of members.
	accountsOnly = "to write there takes the verb join on memberclusters.cluster.kubernetes-fleet.io, which the user lacks"
)

// writesStatus tries to write the status of an object.
func writesStatus(kind, name string) deed {
	return patches(fmt.Sprintf(ofFleet, kind, name), `{status: {conditions: []}}`, "status")
}

func TestReservedNamespaces(t *testing.T) {
	attempt(t, attacks{
		"a stranger creates a namespace of the fleet": forbidden(stranger, creates(`{apiVersion: v1, kind: Namespace, metadata: {name: fleet-mine}}`)),
		"an administrator of all namespaces writes into that of a member": refused(clusterEditor,
			creates(`{apiVersion: v1, kind: ConfigMap, metadata: {namespace: fleet-member-member-1, name: mine}}`), reservedNamespace),
		"an administrator of all namespaces writes into fleet-system": refused(clusterEditor,
			creates(`{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: mine}}`), reservedNamespace),
		"an administrator of all namespaces makes a token for an account of kube-system": refused(clusterEditor, mintsToken("kube-system", "default"), reservedNamespace),
		"an administrator of all namespaces makes a token for the account of a member":   refused(clusterEditor, mintsToken("connect-to-fleet", memberAccount), accountsOnly),
		"an administrator of all namespaces makes a token without an end for the account of a member": refused(clusterEditor,
			creates(`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: connect-to-fleet, name: mine,
				annotations: {kubernetes.io/service-account.name: member-1-hub-cluster-access}}}`), accountsOnly),
		"an administrator of all namespaces makes an account for a member that is to come": refused(clusterEditor,
			creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: member-9-hub-cluster-access}}`), accountsOnly),
	})
}

// notOfOne is said of what takes the right to let all members join.
const notOfOne = "which the user lacks for all members: this is not what join writes for one"

func TestJoinerOfOneMember(t *testing.T) {
	const (
		stolenToken = `{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: connect-to-fleet,
			name: member-1-hub-cluster-access-token, annotations: {kubernetes.io/service-account.name: member-2-hub-cluster-access}}}`
		roleOfAnother = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: connect-to-fleet, name: member-1-hub-cluster-access},
			rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [member-2-hub-cluster-access], verbs: [create]}]}`
		roleOfJoin = `{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: connect-to-fleet, name: member-1-hub-cluster-access},
			rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [member-1-hub-cluster-access], verbs: [create]}]}`
		boundForAll = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: connect-to-fleet, name: member-1-hub-cluster-access},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: member-1-hub-cluster-access},
			subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]}`
	)
	attempt(t, attacks{
		"a user who lets one member join makes a Secret with the token of another": refused(joiner, creates(stolenToken), notOfOne),
		"a user who lets one member join has a role of it make tokens of another":  refused(joiner, creates(roleOfAnother), notOfOne),
		"a user who lets one member join gives all users the right to make its tokens": func(s *spec) {
			s.create(roleOfJoin) // Kubernetes' own check reads the role
			s.requireRefusal(joiner, creates(boundForAll), notOfOne)
		},
		"a user who lets one member join asks for a token of another": func(s *spec) {
			s.create(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: member-2-hub-cluster-access}}`)
			s.requireRefusal(joiner, mintsToken("connect-to-fleet", "member-2-hub-cluster-access"), accountsOnly)
		},
		"a user who lets one member join makes the account of another": refused(joiner, creates(`{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: connect-to-fleet, name: member-9-hub-cluster-access}}`), accountsOnly),
	})
}

// patchesFirst tries to change the first object of a kind.
func patchesFirst(list client.ObjectList, patch string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		if err := target.hub.List(ctx, list); err != nil {
			return nil, err
		}
		objects, err := meta.ExtractList(list)
		if err != nil || len(objects) == 0 {
			return nil, fmt.Errorf("the hub has no object in %T: %w", list, err)
		}
		return nil, c.Patch(ctx, objects[0].(client.Object), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// mintsToken asks for a token of a service account.
func mintsToken(namespace, name string) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		return nil, c.SubResource("token").Create(ctx, account, &authenticationv1.TokenRequest{})
	}
}

// mintsTokenFor asks for a token of an account of a member that holds for so long.
func mintsTokenFor(account string, seconds int64) deed {
	return func(ctx context.Context, c client.Client) (*unstructured.Unstructured, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
		return nil, c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: account}}, request)
	}
}

// labelsABinding has a user who may patch bindings put a label on one and take it off again.
func labelsABinding(key, value string) func(*spec) {
	return func(s *spec) {
		for _, to := range []string{strconv.Quote(value), "null"} {
			label := patchesFirst(&placementv1beta1.ClusterResourceBindingList{}, fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, to))
			_, err := label(s.Context(), statusWriter.session(s))
			require.NoError(s, err)
		}
	}
}

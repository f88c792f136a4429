package terminal

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/version"
	"github.com/fleetflow/fleetflow/test/fixture"
)

// InMemory returns a hub, or a member, with these objects.
func InMemory(objects ...client.Object) client.WithWatch {
	scheme := cli.Scheme()
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind := range scheme.AllKnownTypes() {
		mapper.Add(kind, meta.RESTScopeRoot)
	}
	builder := fixture.NewClientBuilder(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(objects...)
	// API servers select by name without being told.
	name := func(object client.Object) []string { return []string{object.GetName()} }
	for _, kind := range []client.Object{
		&placementv1beta1.ClusterStagedUpdateRun{}, &placementv1beta1.StagedUpdateRun{},
		&placementv1beta1.ClusterResourcePlacement{}, &placementv1beta1.ResourcePlacement{}, &coordinationv1.Lease{}, &corev1.Namespace{},
	} {
		builder = builder.WithIndex(kind, "metadata.name", name)
	}
	return fixture.SelectRecords(builder).WithInterceptorFuncs(interceptor.Funcs{Patch: fixture.PatchAsAPIServer, Create: CreateOrReview}).Build()
}

// CreateOrReview creates an object, and answers the questions who the user is and what he may do: all.
func CreateOrReview(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
	if review, is := object.(*authenticationv1.SelfSubjectReview); is {
		review.Status.UserInfo.Username = "jane"
		return nil
	}
	if review, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
		review.Status.Allowed = true
		return nil
	}
	return c.Create(ctx, object, options...)
}

// ServedKinds are those that a hub serves for federate, in their scopes.
func ServedKinds() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
	return mapper
}

// Discovered is what such a hub says of the kinds that live in namespaces.
func Discovered() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	all := metav1.Verbs{"get", "list", "watch", "create"}
	return nil, []*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true, Verbs: all},
			{Name: "secrets", Kind: "Secret", Namespaced: true, Verbs: all},
			{Name: "services", Kind: "Service", Namespaced: true, Verbs: all},
			{Name: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true, Verbs: all},
		}},
		{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: all},
		}},
	}, nil
}

// EveryKind serves all kinds of the scheme, except some.
func EveryKind(except ...string) func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
		lists := map[schema.GroupVersion]*metav1.APIResourceList{}
		for kind := range cli.Scheme().AllKnownTypes() {
			of := kind.GroupVersion()
			if lists[of] == nil {
				lists[of] = &metav1.APIResourceList{GroupVersion: of.String()}
			}
			missing := false
			for _, name := range except {
				missing = missing || name == kind.Kind || name == kind.Group
			}
			if !missing {
				lists[of].APIResources = append(lists[of].APIResources, metav1.APIResource{Kind: kind.Kind})
			}
		}
		var all []*metav1.APIResourceList
		for _, list := range lists {
			all = append(all, list)
		}
		return nil, all, nil
	}
}

// Versioned is an object of the hub agent whose label says of which version it is.
func Versioned(object client.Object, of string) client.Object {
	object.SetLabels(map[string]string{version.Label: of, "app.kubernetes.io/name": "hub-agent"})
	return object
}

// Lease is the lease of a hub agent that renewed it a moment ago.
func Lease(of kubefleet.Lease, holder string) client.Object {
	at := metav1.NewMicroTime(Now.Add(-time.Second))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: new(int32(60))},
	}
}

// Member is a healthy member whose agent reported a while ago.
func Member(name string, heartbeat time.Duration) *clusterv1beta1.MemberCluster {
	ok := func(kind string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Ok", LastTransitionTime: Ago(time.Hour), ObservedGeneration: 1}
	}
	return &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: Ago(48 * time.Hour), Labels: map[string]string{}},
		Spec:       clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 15},
		Status: clusterv1beta1.MemberClusterStatus{
			Conditions: []metav1.Condition{ok(clusterv1beta1.ConditionTypeReadyToJoin), ok(clusterv1beta1.ConditionTypeJoined), ok(clusterv1beta1.ConditionTypeHealthy)},
			Properties: map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
				clusterv1beta1.NodeCountProperty: {Value: "3"}, clusterv1beta1.KubernetesVersionProperty: {Value: "v1.36.3"},
			},
			ResourceUsage: clusterv1beta1.ResourceUsage{
				Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"), corev1.ResourceMemory: resource.MustParse("64Gi")},
				Available:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("11500m"), corev1.ResourceMemory: resource.MustParse("1200Mi")},
			},
			AgentStatus: []clusterv1beta1.AgentStatus{{
				Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: Ago(heartbeat),
				Conditions: []metav1.Condition{ok(clusterv1beta1.ConditionTypeJoined), ok(clusterv1beta1.ConditionTypeHealthy)},
			}},
		},
	}
}

// DefinitionOfRelease is the definition of a kind that a release of Helm in the fleet's namespace has among its objects.
func DefinitionOfRelease(name, release string) client.Object {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
		"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": "fleet-system",
	}}}
	object.APIVersion = "apiextensions.k8s.io/v1"
	object.Kind = "CustomResourceDefinition"
	return object
}

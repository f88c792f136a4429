// Package migration says what a move between KubeFleet and fleetflow would make of a hub: what would be adopted, what is under
// way, what has no counterpart, what would be written, and what stands in the way. It reads a State, and decides from that
// alone.
package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fleetflow/fleetflow/activities/hubread"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// HubAgentLease is the lease of fleetflow's hub agent.
var HubAgentLease = kubefleet.Lease{Namespace: clusterv1beta1.SystemNamespace, Name: "hub-agent.fleetflow.io",
	Agent: "fleetflow's hub agent"}

// State is what a hub has of the fleet. Of Works and resource snapshots there are only the metadata.
type State struct {
	// KubeFleetLease and OurLease are those of the two hub agents, nil if there is none.
	KubeFleetLease, OurLease *coordinationv1.Lease
	// Webhooks are the configurations that KubeFleet's hub agent has registered, Policies those of fleetflow's chart, as
	// kubectl names them.
	Webhooks, Policies []string
	// TheirPolicies are admission policies and their bindings that KubeFleet's hub agent has made.
	TheirPolicies    []string
	Members          []clusterv1beta1.MemberCluster
	Mailboxes        []clusterv1beta1.InternalMemberCluster
	Placements       []placementv1beta1.PlacementObject
	Bindings         []placementv1beta1.BindingObject
	Policy           []placementv1beta1.PolicySnapshotObject
	Resources, Works []metav1.PartialObjectMetadata
	// Hashes are KubeFleet's hashes of the content of the latest resource snapshots, by the namespace and name of their masters.
	Hashes     map[string]string
	Runs       []placementv1beta1.UpdateRunObject
	Strategies []placementv1beta1.UpdateStrategyObject
	// Unknown are fields, by the object that has them, of which fleetflow's API knows nothing.
	Unknown map[string][]string
	// Releases are those of Helm that would delete definitions, by the cluster: first the hub, then members that were named.
	Releases []ClusterReleases
	// TheirOwn are objects of KubeFleet's group that fleetflow does not have, by their kind.
	TheirOwn map[string][]string
}

// ClusterReleases are the releases of a cluster; the context of the hub is empty.
type ClusterReleases struct {
	Context  string
	Releases []Release
}

// Read reads the state of a hub. A kind that the hub does not serve is one of which it has nothing.
func Read(ctx context.Context, c client.Client) (*State, error) {
	s := &State{Unknown: map[string][]string{}, TheirOwn: map[string][]string{}}
	r := reader{c}
	members := &clusterv1beta1.MemberClusterList{}
	mailboxes := &clusterv1beta1.InternalMemberClusterList{}
	for _, read := range []func() error{
		func() (err error) { s.KubeFleetLease, err = r.readLease(ctx, kubefleet.HubAgentLease); return err },
		func() (err error) { s.OurLease, err = r.readLease(ctx, HubAgentLease); return err },
		func() (err error) { s.Webhooks, err = r.readWebhooks(ctx); return err },
		func() (err error) { s.TheirPolicies, err = r.readTheirPolicies(ctx); return err },
		func() (err error) { s.Policies, err = r.readPolicies(ctx); return err },
		func() error { return r.list(ctx, members) },
		func() error { return r.list(ctx, mailboxes) },
		// What users make is read field by field: what fleetflow's API does not know is noted.
		func() error { return readStrictly(ctx, r, "ResourcePlacement", s.Unknown, &s.Placements) },
		func() error { return readStrictly(ctx, r, "StagedUpdateRun", s.Unknown, &s.Runs) },
		func() error { return readStrictly(ctx, r, "StagedUpdateStrategy", s.Unknown, &s.Strategies) },
		func() error { return listTwins(ctx, r, placementv1beta1.Scope.NewBindingList, &s.Bindings) },
		func() error { return listTwins(ctx, r, placementv1beta1.Scope.NewPolicySnapshotList, &s.Policy) },
		func() error { return r.listMetadata(ctx, &s.Resources, "ClusterResourceSnapshot", "ResourceSnapshot") },
		func() error { return r.listMetadata(ctx, &s.Works, "Work") },
		func() error { return r.readTheirOwn(ctx, s) },
		func() error { return s.AddReleases(ctx, c, "") },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	s.Members = members.Items
	s.Mailboxes = mailboxes.Items
	return s, nil
}

// AddReleases reads the releases of a cluster that would delete definitions.
func (s *State) AddReleases(ctx context.Context, c client.Client, kubeContext string) error {
	releases, err := ReadReleases(ctx, c)
	if err != nil {
		return err
	}
	s.Releases = append(s.Releases, ClusterReleases{Context: kubeContext, Releases: releases})
	return nil
}

type reader struct{ client.Client }

func (r reader) list(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	if err := r.List(ctx, into, options...); err != nil && !hub.Unserved(err) {
		kind, _ := apiutil.GVKForObject(into, r.Scheme())
		return fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	return nil
}

func (r reader) readLease(ctx context.Context, of kubefleet.Lease) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}}
	return hubread.Existing(ctx, r, lease, "the lease of "+of.Agent+",")
}

// readWebhooks finds the webhook configurations that KubeFleet's hub agent registers.
func (r reader) readWebhooks(ctx context.Context) ([]string, error) {
	validating, err := r.findByName(ctx, "ValidatingWebhookConfiguration", kubefleet.ValidatingWebhooks)
	if err != nil {
		return nil, err
	}
	mutating, err := r.findByName(ctx, "MutatingWebhookConfiguration", kubefleet.MutatingWebhooks)
	return append(validating, mutating...), err
}

// readTheirPolicies finds the admission policies that KubeFleet's hub agent makes, and their bindings.
func (r reader) readTheirPolicies(ctx context.Context) ([]string, error) {
	policies, err := r.findByName(ctx, "ValidatingAdmissionPolicy", kubefleet.AdmissionPolicies)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, policy := range kubefleet.AdmissionPolicies {
		names = append(names, policy+"-binding")
	}
	bindings, err := r.findByName(ctx, "ValidatingAdmissionPolicyBinding", names)
	return append(policies, bindings...), err
}

// findByName finds which objects of a kind of admission there are, as kubectl names them.
func (r reader) findByName(ctx context.Context, kind string, names []string) (found []string, err error) {
	for _, name := range names {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}}
		object.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind(kind))
		object, err := hubread.Existing(ctx, r, object, kind)
		if err != nil && !hub.Unserved(err) {
			return nil, err
		}
		if err == nil && object != nil {
			found = append(found, strings.ToLower(kind)+"/"+name)
		}
	}
	return found, nil
}

// readPolicies finds the admission policies of fleetflow's chart: they let its own agent pass, and not KubeFleet's.
func (r reader) readPolicies(ctx context.Context) ([]string, error) {
	policies := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	if err := r.list(ctx, policies, client.MatchingLabels{"app.kubernetes.io/name": "hub-agent"}); err != nil {
		return nil, err
	}
	var found []string
	for i := range policies.Items {
		found = append(found, "validatingadmissionpolicy/"+policies.Items[i].Name)
	}
	return found, nil
}

// listMetadata lists the metadata of kinds.
func (r reader) listMetadata(ctx context.Context, found *[]metav1.PartialObjectMetadata, kinds ...string) error {
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind + "List"))
		if err := r.list(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind))
		}
		*found = append(*found, list.Items...)
	}
	return nil
}

// readTheirOwn reads the names of what there is of KubeFleet's own group, in the version that the hub prefers.
func (r reader) readTheirOwn(ctx context.Context, s *State) error {
	for _, kind := range kubefleet.OwnKinds {
		served, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: kubefleet.OwnGroup, Kind: kind})
		if hub.Unserved(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for kind %s: %w", kind, err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(served.GroupVersionKind.GroupVersion().WithKind(kind + "List"))
		if err := r.list(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			s.TheirOwn[kind] = append(s.TheirOwn[kind], strings.TrimPrefix(keyOf(&list.Items[i]).String(), "/"))
		}
	}
	return nil
}

// namespaced chooses the kinds of objects in namespaces; the lists are of all of them.
var namespaced = placementv1beta1.Scope{Namespace: metav1.NamespaceDefault}

// listTwins lists the objects of both scopes.
func listTwins[T placementv1beta1.Object](ctx context.Context, r reader,
	newList func(placementv1beta1.Scope) placementv1beta1.ObjectList[T], found *[]T) error {
	for _, scope := range []placementv1beta1.Scope{{}, namespaced} {
		list := newList(scope)
		if err := r.list(ctx, list); err != nil {
			return err
		}
		*found = append(*found, list.Objects()...)
	}
	return nil
}

// readStrictly reads the objects of a kind and of its twin, and notes the fields that they have and their types have not.
func readStrictly[T placementv1beta1.Object](ctx context.Context, r reader, namespaced string, unknown map[string][]string,
	found *[]T) error {
	for _, name := range []string{"Cluster" + namespaced, namespaced} {
		kind := placementv1beta1.GroupVersion.WithKind(name)
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(name + "List"))
		if err := r.list(ctx, list); err != nil {
			return err
		}
		for i := range list.Items {
			object, fields, err := decodeStrictly[T](r.Scheme(), kind, &list.Items[i])
			if err != nil {
				return fmt.Errorf("decoding %s %s: %w", name, list.Items[i].GetName(), err)
			}
			if len(fields) > 0 {
				unknown[nameOf(name, object)] = fields
			}
			*found = append(*found, object)
		}
	}
	return nil
}

// decodeStrictly decodes an object and returns the fields that it has and its type has not.
func decodeStrictly[T placementv1beta1.Object](scheme *runtime.Scheme, kind schema.GroupVersionKind,
	from *unstructured.Unstructured) (object T, unknown []string, err error) {
	made, err := scheme.New(kind)
	if err != nil {
		return object, nil, err
	}
	object, _ = made.(T)
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(from.Object, made, true)
	if strict, is := runtime.AsStrictDecodingError(err); is {
		for _, problem := range strict.Errors() {
			unknown = append(unknown, problem.Error())
		}
		slices.Sort(unknown)
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, made)
	}
	return object, unknown, err
}

// nameOf names an object for people and for scripts.
func nameOf(kind string, o metav1.Object) string {
	if o.GetNamespace() == "" {
		return kind + "/" + o.GetName()
	}
	return kind + "/" + o.GetNamespace() + "/" + o.GetName()
}

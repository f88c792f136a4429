// Package migration says what a move between KubeFleet and fleetflow would make of a hub: what would be adopted, what is under
// way, what has no counterpart, what would be written, and what stands in the way. It reads a State, and decides from that
// alone.
package migration

import (
	"context"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// HubAgentLease is the lease of fleetflow's hub agent.
var HubAgentLease = kubefleet.Lease{Namespace: clusterv1beta1.SystemNamespace, Name: "hub-agent.kubernetes-fleet.io", Agent: "fleetflow's hub agent"}

// State is what a hub has of the fleet. Of Works and resource snapshots there are only the metadata.
type State struct {
	// KubeFleetLease and OurLease are those of the two hub agents, nil if there is none.
	KubeFleetLease, OurLease *coordinationv1.Lease
	// Webhooks are the configurations that KubeFleet's hub agent has registered, Policies those of fleetflow's chart, as
	// kubectl names them.
	Webhooks, Policies []string
	Members            []clusterv1beta1.MemberCluster
	Mailboxes          []clusterv1beta1.InternalMemberCluster
	Placements         []placementv1beta1.PlacementObject
	Bindings           []placementv1beta1.BindingObject
	Policy             []placementv1beta1.PolicySnapshotObject
	Resources, Works   []metav1.PartialObjectMetadata
	Runs               []placementv1beta1.UpdateRunObject
	Strategies         []placementv1beta1.UpdateStrategyObject
	// Unknown are fields, by the object that has them, of which fleetflow's API knows nothing.
	Unknown map[string][]string
}

// Read reads the state of a hub. A kind that the hub does not serve is one of which it has nothing.
func Read(ctx context.Context, c client.Client) (*State, error) {
	s, r := &State{Unknown: map[string][]string{}}, reader{c}
	members, mailboxes := &clusterv1beta1.MemberClusterList{}, &clusterv1beta1.InternalMemberClusterList{}
	var err error
	for _, read := range []func() error{
		func() error { s.KubeFleetLease, err = r.readLease(ctx, kubefleet.HubAgentLease); return err },
		func() error { s.OurLease, err = r.readLease(ctx, HubAgentLease); return err },
		func() error { s.Webhooks, err = r.readWebhooks(ctx); return err },
		func() error { s.Policies, err = r.readPolicies(ctx); return err },
		func() error { return r.list(ctx, members) },
		func() error { return r.list(ctx, mailboxes) },
		func() error { return r.readKnown(ctx, s) },
		func() error {
			s.Bindings, err = listTwins(ctx, r, placementv1beta1.Scope.NewBindingList)
			return err
		},
		func() error {
			s.Policy, err = listTwins(ctx, r, placementv1beta1.Scope.NewPolicySnapshotList)
			return err
		},
		func() error {
			s.Resources, err = r.listMetadata(ctx, "ClusterResourceSnapshot", "ResourceSnapshot")
			return err
		},
		func() error { s.Works, err = r.listMetadata(ctx, "Work"); return err },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	s.Members, s.Mailboxes = members.Items, mailboxes.Items
	return s, nil
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
	lease := &coordinationv1.Lease{}
	err := r.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lease of %s: %w", of.Agent, err)
	}
	return lease, nil
}

func (r reader) readWebhooks(ctx context.Context) ([]string, error) {
	var found []string
	look := func(resource string, names []string, object client.Object) error {
		for _, name := range names {
			err := r.Get(ctx, client.ObjectKey{Name: name}, object)
			if err == nil {
				found = append(found, resource+"/"+name)
			} else if !apierrors.IsNotFound(err) {
				return fmt.Errorf("reading %s %s: %w", resource, name, err)
			}
		}
		return nil
	}
	if err := look("validatingwebhookconfiguration", kubefleet.ValidatingWebhooks, &admissionregistrationv1.ValidatingWebhookConfiguration{}); err != nil {
		return nil, err
	}
	err := look("mutatingwebhookconfiguration", kubefleet.MutatingWebhooks, &admissionregistrationv1.MutatingWebhookConfiguration{})
	return found, err
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
func (r reader) listMetadata(ctx context.Context, kinds ...string) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind + "List"))
		if err := r.list(ctx, list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			list.Items[i].SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind))
		}
		found = append(found, list.Items...)
	}
	return found, nil
}

// namespaced chooses the kinds of objects in namespaces; the lists are of all of them.
var namespaced = placementv1beta1.Scope{Namespace: metav1.NamespaceDefault}

// listTwins lists the objects of both scopes.
func listTwins[T placementv1beta1.Object](ctx context.Context, r reader, newList func(placementv1beta1.Scope) placementv1beta1.ObjectList[T]) ([]T, error) {
	var found []T
	for _, scope := range []placementv1beta1.Scope{{}, namespaced} {
		list := newList(scope)
		if err := r.list(ctx, list); err != nil {
			return nil, err
		}
		found = append(found, list.Objects()...)
	}
	return found, nil
}

// readKnown reads what users make, field by field: what fleetflow's API does not know is noted.
func (r reader) readKnown(ctx context.Context, s *State) error {
	for _, kind := range []string{"ClusterResourcePlacement", "ResourcePlacement"} {
		if err := readStrictly(ctx, r, kind, s.Unknown, func(o placementv1beta1.PlacementObject) { s.Placements = append(s.Placements, o) }); err != nil {
			return err
		}
	}
	for _, kind := range []string{"ClusterStagedUpdateRun", "StagedUpdateRun"} {
		if err := readStrictly(ctx, r, kind, s.Unknown, func(o placementv1beta1.UpdateRunObject) { s.Runs = append(s.Runs, o) }); err != nil {
			return err
		}
	}
	for _, kind := range []string{"ClusterStagedUpdateStrategy", "StagedUpdateStrategy"} {
		if err := readStrictly(ctx, r, kind, s.Unknown, func(o placementv1beta1.UpdateStrategyObject) { s.Strategies = append(s.Strategies, o) }); err != nil {
			return err
		}
	}
	return nil
}

func readStrictly[T placementv1beta1.Object](ctx context.Context, r reader, kind string, unknown map[string][]string, add func(T)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind(kind + "List"))
	if err := r.list(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		object, fields, err := decodeStrictly[T](r.Scheme(), placementv1beta1.GroupVersion.WithKind(kind), &list.Items[i])
		if err != nil {
			return fmt.Errorf("decoding %s %s: %w", kind, list.Items[i].GetName(), err)
		}
		if len(fields) > 0 {
			unknown[nameOf(kind, object)] = fields
		}
		add(object)
	}
	return nil
}

// decodeStrictly decodes an object and returns the fields that it has and its type has not.
func decodeStrictly[T placementv1beta1.Object](scheme *runtime.Scheme, kind schema.GroupVersionKind, from *unstructured.Unstructured) (object T, unknown []string, err error) {
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

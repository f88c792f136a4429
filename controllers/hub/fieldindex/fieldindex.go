// Package fieldindex names the field indexes of the hub's cache and registers them, so that the objects of a
// placement or a cluster are found without going through all.
package fieldindex

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/activities/rehearsal"
	"github.com/fleetflow/fleetflow/activities/scheduler"
	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// ByPlacement finds bindings, policy snapshots, the metadata of resource
	// snapshots, update runs, and evictions without an outcome, by the name of their placement.
	ByPlacement = hubread.ByPlacement
	// ByCluster finds bindings by the name of their cluster.
	ByCluster = hubread.ByCluster
	// ByInterest finds placements by what their policies ask of clusters, as the scheduler names it, and the policy snapshots that are
	// in force while the policy of their placement waits.
	ByInterest = "hub.interest"
	// ByOverride finds placements by the overrides that they require, as Required names them, and by the override snapshots that were
	// picked with their last selection, as Picked does.
	ByOverride = "hub.override"
	// BySelected finds overrides by the objects they select, as Selected names them.
	BySelected = "hub.selected"
	// ByReferred finds overrides by the namespace and name of the placements that their references name, as OfPlacement joins them:
	// of a ResourceOverride the ClusterResourcePlacement and the ResourcePlacement of that name, whichever it means.
	ByReferred = "hub.referred"
	// ByOverrideSnapshot finds bindings by the snapshots of overrides that they name, such
	// as "image-0" of a ClusterResourceOverride and "web/image-0" of a ResourceOverride.
	ByOverrideSnapshot = "hub.overrideSnapshot"
	// ByUnschedulable finds Works, of whose workloads no node of the member takes some of the pods, by the namespace and name of
	// their placement, as OfPlacement joins them.
	ByUnschedulable = "hub.unschedulable"
	// ByRehearsal finds questions by the UID of the rehearsal that asks them, and by its namespace and name, as rehearsal.OriginKey joins
	// them.
	ByRehearsal = "hub.rehearsal"
)

// All returns the indexes, those of activities among them; tests give them to a fake client.
func All() []hubread.Index {
	all := append(hubread.Indexes(),
		hubread.Index{Object: &placementv1beta1.ClusterResourcePlacementEviction{}, Field: ByPlacement, Extract: evictedPlacement},
		hubread.Index{Object: &placementv1beta1.Work{}, Field: ByUnschedulable, Extract: placementShortOfNodes},
	)
	for _, scope := range placementv1beta1.Scopes() {
		all = append(all,
			hubread.Index{Object: scope.NewBinding(""), Field: ByOverrideSnapshot, Extract: overrideSnapshotsOf},
			hubread.Index{Object: scope.NewPolicySnapshot(""), Field: ByPlacement, Extract: parentPlacement},
			hubread.Index{Object: SnapshotMetadata(scope), Field: ByPlacement, Extract: parentPlacement},
			hubread.Index{Object: scope.NewUpdateRun(""), Field: ByPlacement, Extract: rolledOutPlacement},
			hubread.Index{Object: scope.NewPlacement(""), Field: ByInterest, Extract: policyInterests},
			hubread.Index{Object: scope.NewPolicySnapshot(""), Field: ByInterest, Extract: interestsInForce},
			hubread.Index{Object: scope.NewPlacement(""), Field: ByOverride, Extract: overridesOf},
			hubread.Index{Object: scope.NewOverride(""), Field: BySelected, Extract: Selected},
			hubread.Index{Object: scope.NewOverride(""), Field: ByReferred, Extract: referredPlacements},
		)
	}
	return all
}

// Setup registers the indexes with a cache. Call it once, before the cache starts.
func Setup(ctx context.Context, indexer client.FieldIndexer) error {
	return hubread.Register(ctx, indexer, All())
}

// Questions returns the index of questions, which are there only on a hub that serves their kind.
func Questions() hubread.Index {
	return hubread.Index{Object: &fleetflowv1alpha1.MemberQuestion{}, Field: ByRehearsal, Extract: askingRehearsal}
}

// SnapshotMetadata returns an empty resource snapshot to read metadata into: the cache holds no more of them.
func SnapshotMetadata(scope placementv1beta1.Scope) *metav1.PartialObjectMetadata {
	snapshot := &metav1.PartialObjectMetadata{}
	snapshot.SetGroupVersionKind(scope.ResourceSnapshotKind())
	return snapshot
}

// SnapshotMetadataList returns the list that belongs to SnapshotMetadata.
func SnapshotMetadataList(scope placementv1beta1.Scope) *metav1.PartialObjectMetadataList {
	kind := scope.ResourceSnapshotKind()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

func parentPlacement(object client.Object) []string {
	if name := object.GetLabels()[placementv1beta1.ParentPlacementLabel]; name != "" {
		return []string{name}
	}
	return nil
}

func rolledOutPlacement(object client.Object) []string {
	if run, ok := object.(placementv1beta1.UpdateRunObject); ok {
		return []string{run.GetUpdateRunSpec().PlacementName}
	}
	return nil
}

func evictedPlacement(object client.Object) []string {
	if e, ok := object.(*placementv1beta1.ClusterResourcePlacementEviction); ok && !e.Ended() {
		return []string{e.Spec.PlacementName}
	}
	return nil
}

// OfPlacement joins the namespace, which may be empty, and the name of a placement.
func OfPlacement(namespace, name string) string { return namespace + "/" + name }

func placementShortOfNodes(object client.Object) []string {
	if work, ok := object.(*placementv1beta1.Work); ok && workmodel.HasUnschedulable(work) {
		return []string{OfPlacement(work.Labels[placementv1beta1.ParentNamespaceLabel], work.Labels[placementv1beta1.ParentPlacementLabel])}
	}
	return nil
}

func askingRehearsal(object client.Object) []string {
	question, ok := object.(*fleetflowv1alpha1.MemberQuestion)
	if !ok {
		return nil
	}
	of := question.Spec.AskedFor
	return []string{string(of.UID), rehearsal.OriginKey(of.Namespace, of.Name)}
}

func overrideSnapshotsOf(object client.Object) []string {
	binding, ok := object.(placementv1beta1.BindingObject)
	if !ok {
		return nil
	}
	return override.RefsOf(*binding.GetBindingSpec())
}

func policyInterests(object client.Object) []string {
	placement, ok := object.(placementv1beta1.PlacementObject)
	if !ok {
		return nil
	}
	interests := scheduler.Interests(placement.GetNamespace(), placement.GetPlacementSpec().Policy)
	if rules.LeavesIllClusters(placement) {
		interests = append(interests, framework.Taints, framework.Health)
	}
	return namesOf(interests)
}

// interestsInForce returns those of a policy snapshot by which clusters are picked, as long as the policy that its placement has
// by now waits.
func interestsInForce(object client.Object) []string {
	latest, ok := object.(placementv1beta1.PolicySnapshotObject)
	if !ok || !rules.IsLatestSnapshot(latest) {
		return nil
	}
	if _, waits := rules.PolicyWaits(latest); !waits {
		return nil
	}
	return namesOf(scheduler.Interests(latest.GetNamespace(), latest.GetPolicySnapshotSpec().Policy))
}

func namesOf(interests []framework.Interest) []string {
	names := make([]string, 0, len(interests))
	for _, interest := range interests {
		names = append(names, string(interest))
	}
	return names
}

// overridesOf names the overrides that a placement requires, and the override snapshots that were picked with its last selection.
func overridesOf(object client.Object) []string {
	placement, ok := object.(placementv1beta1.PlacementObject)
	if !ok {
		return nil
	}
	var names []string
	for _, one := range placement.GetPlacementSpec().RequiredOverrides {
		names = append(names, Required(one))
	}
	// What cannot be read was not picked: the next selection writes it anew.
	verdict, _ := snapshot.DecodeVerdict(placement.GetAnnotations()[placementv1beta1.SelectionVerdictAnnotation])
	for _, ref := range verdict.Overrides {
		names = append(names, Picked(ref))
	}
	if len(verdict.Overrides) > 0 {
		names = append(names, AnyPicked)
	}
	return names
}

// AnyPicked is common to all placements that have picked override snapshots.
const AnyPicked = "picked"

// Picked names an override snapshot that was picked, as an override's source names it.
func Picked(ref string) string { return AnyPicked + " " + ref }

// Required names an override that is required.
func Required(override placementv1beta1.RequiredOverride) string {
	return "required " + placementv1beta1.Scope{Namespace: override.Namespace}.String() + override.Name
}

// Selected names the objects that an override selects, in the order of its
// selectors, such as "Namespace web" or "Deployment.apps web/server". The version
// does not matter: an object is the same one in all of them.
func Selected(object client.Object) []string {
	override, ok := object.(placementv1beta1.OverrideObject)
	if !ok {
		return nil
	}
	var selected []string
	for _, s := range override.GetOverrideSelectors() {
		kind := schema.GroupKind{Group: s.Group, Kind: s.Kind}
		selected = append(selected, kind.String()+" "+placementv1beta1.Scope{Namespace: s.Namespace}.String()+s.Name)
	}
	return selected
}

func referredPlacements(object client.Object) []string {
	override, ok := object.(placementv1beta1.OverrideObject)
	if !ok || override.GetOverridePlacement() == nil {
		return nil
	}
	name := override.GetOverridePlacement().Name
	names := []string{OfPlacement("", name)}
	if override.GetNamespace() != "" {
		names = append(names, OfPlacement(override.GetNamespace(), name))
	}
	return names
}

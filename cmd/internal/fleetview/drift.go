package fleetview

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/status"
)

// Ways in which an object differs.
const (
	// Drifted objects were changed on the cluster after they were applied.
	Drifted = "drifted"
	// Differs is said of objects that differ and were left alone.
	Differs = "differs"
	// Missing objects do not exist on the cluster.
	Missing = "missing"
)

// DriftReport is how the members differ.
type DriftReport struct {
	Placement string `json:"placement"`
	// Clusters that differ, by name, of Total.
	Clusters []DriftedCluster `json:"clusters,omitempty"`
	Total    int              `json:"total"`
	// Unreported clusters have not said how they are.
	Unreported []string `json:"unreported,omitempty"`
}

// DriftedCluster is how one member differs.
type DriftedCluster struct {
	Name    string          `json:"name"`
	Objects []DriftedObject `json:"objects"`
	// More says that the hub lists no more than these, though there may be more.
	More bool `json:"more,omitempty"`
}

// DriftedObject is how an object differs.
type DriftedObject struct {
	Object string `json:"object"`
	// How is drifted, differs or missing.
	How string `json:"how"`
	// Since is when that was first seen, Seen when last.
	Since time.Time `json:"since,omitzero"`
	Seen  time.Time `json:"seen,omitzero"`
	// Fields that differ.
	Fields []DriftedField `json:"fields,omitempty"`
	// Why is what the agent says of an object that it has applied and that differs all the same: who writes it, and what to do.
	Why string `json:"why,omitempty"`
}

// DriftedField is a field that differs.
type DriftedField struct {
	Path string `json:"path"`
	// Hub and Member are the values; empty where the field does not exist.
	Hub    string `json:"hub,omitempty"`
	Member string `json:"member,omitempty"`
}

const (
	// Listed is how many objects a binding lists at most.
	Listed = 100
	// explained is of how many clusters with drifts the Works are read, which say why.
	explained = 20
	// masked stands for a value that is not to be seen.
	masked = "***"
)

// DriftFacts are what a report is made from.
type DriftFacts struct {
	Placement hub.Placement
	Bindings  []hub.Binding
	// Works by cluster, of those clusters whose bindings list as much as they can, and of some that have drifted.
	Works map[string][]placementv1beta1.Work
}

// Read reads what a report is made from, except for the placement.
func (f *DriftFacts) Read(ctx context.Context, c client.Reader) (err error) {
	reader := hub.Reader{Reader: c}
	if f.Bindings, err = reader.Of(f.Placement.Ref).Bindings(ctx); err != nil {
		return err
	}
	f.Works = map[string][]placementv1beta1.Work{}
	for _, cluster := range toldByWorks(f.Bindings) {
		works, err := reader.Of(f.Placement.Ref).Works(ctx, cluster)
		if apierrors.IsForbidden(err) {
			continue // the binding says the most of it
		}
		if err != nil {
			return err
		}
		f.Works[cluster] = works
	}
	return nil
}

// toldByWorks returns the clusters whose Works say more than their bindings: these list as much as they can, or objects that have
// drifted, of which they do not say why.
func toldByWorks(bindings []hub.Binding) []string {
	var clusters []string
	for _, binding := range bindings {
		drifted := len(binding.Status.DriftedPlacements)
		if drifted >= Listed || len(binding.Status.DiffedPlacements) >= Listed || drifted > 0 && len(clusters) < explained {
			clusters = append(clusters, binding.Spec.TargetCluster)
		}
	}
	return clusters
}

// Drift makes a report about all clusters, or about some.
func Drift(facts DriftFacts, only ...string) DriftReport {
	report := DriftReport{Placement: facts.Placement.String()}
	entries := entriesOf(facts)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		report.Total++
		entry := entries[name]
		cluster := clusterOf(name, entry, facts.Works[name])
		switch {
		case len(cluster.Objects) > 0:
			report.Clusters = append(report.Clusters, cluster)
		case len(entry.Conditions) == 0:
			report.Unreported = append(report.Unreported, name)
		}
	}
	return report
}

// entriesOf reports every cluster: as its binding does, or where there is none to be seen, as the placement's status.
func entriesOf(facts DriftFacts) map[string]placementv1beta1.PerClusterPlacementStatus {
	entries := map[string]placementv1beta1.PerClusterPlacementStatus{}
	for _, entry := range facts.Placement.Status.PerClusterPlacementStatuses {
		if entry.ClusterName != "" {
			entries[entry.ClusterName] = entry
		}
	}
	for _, binding := range facts.Bindings {
		entries[binding.Spec.TargetCluster] = placementv1beta1.PerClusterPlacementStatus{
			DriftedPlacements: binding.Status.DriftedPlacements, DiffedPlacements: binding.Status.DiffedPlacements,
			Conditions: binding.Status.Conditions,
		}
	}
	return entries
}

// clusterOf lists what differs on a cluster: as its Works say if they were read, for they have room for all of it.
func clusterOf(name string, entry placementv1beta1.PerClusterPlacementStatus, works []placementv1beta1.Work) DriftedCluster {
	if len(works) > 0 {
		return DriftedCluster{Name: name, Objects: objectsOf(works)}
	}
	return DriftedCluster{
		Name: name, Objects: slices.Concat(driftedObjects(entry.DriftedPlacements), diffedObjects(entry.DiffedPlacements)),
		More: len(entry.DriftedPlacements) >= Listed || len(entry.DiffedPlacements) >= Listed,
	}
}

func driftedObjects(drifted []placementv1beta1.DriftedResourcePlacement) []DriftedObject {
	objects := make([]DriftedObject, 0, len(drifted))
	for i := range drifted {
		d := &drifted[i]
		objects = append(objects, newObject(d.ResourceIdentifier, Drifted, d.FirstDriftedObservedTime, d.ObservationTime, d.ObservedDrifts))
	}
	return objects
}

func diffedObjects(diffed []placementv1beta1.DiffedResourcePlacement) []DriftedObject {
	objects := make([]DriftedObject, 0, len(diffed))
	for i := range diffed {
		d := &diffed[i]
		objects = append(objects, newDiffed(d.ResourceIdentifier, d.TargetClusterObservedGeneration, d.FirstDiffedObservedTime, d.ObservationTime,
			d.ObservedDiffs))
	}
	return objects
}

func newObject(id placementv1beta1.ResourceIdentifier, how string, since, seen metav1.Time,
	details []placementv1beta1.PatchDetail) DriftedObject {
	return DriftedObject{Object: status.ObjectName(id), How: how, Since: since.Time, Seen: seen.Time, Fields: driftedFields(id.Kind, details)}
}

// newDiffed is newObject for an object that was compared; its generation is nil if there is no such object.
func newDiffed(id placementv1beta1.ResourceIdentifier, generation *int64, since, seen metav1.Time,
	details []placementv1beta1.PatchDetail) DriftedObject {
	if generation == nil {
		return newObject(id, Missing, since, seen, nil) // all of it differs, which says nothing
	}
	return newObject(id, Differs, since, seen, details)
}

// objectsOf reads from Works what bindings have no room for.
func objectsOf(works []placementv1beta1.Work) []DriftedObject {
	var objects []DriftedObject
	for i := range works {
		for j := range works[i].Status.ManifestConditions {
			manifest := &works[i].Status.ManifestConditions[j]
			id := placementv1beta1.ResourceIdentifier{
				Group: manifest.Identifier.Group, Version: manifest.Identifier.Version, Kind: manifest.Identifier.Kind,
				Namespace: manifest.Identifier.Namespace, Name: manifest.Identifier.Name,
			}
			if d := manifest.DriftDetails; d != nil {
				object := newObject(id, Drifted, d.FirstDriftedObservedTime, d.ObservationTime, d.ObservedDrifts)
				object.Why = whyDiffers(manifest.Conditions)
				objects = append(objects, object)
			}
			if d := manifest.DiffDetails; d != nil {
				objects = append(objects, newDiffed(id, d.ObservedInMemberClusterGeneration, d.FirstDiffedObservedTime, d.ObservationTime,
					d.ObservedDiffs))
			}
		}
	}
	slices.SortStableFunc(objects, func(a, b DriftedObject) int { return cmp.Compare(a.Object, b.Object) })
	return objects
}

// whyDiffers returns what is said of an object that is applied and not what its manifest says; nothing of another.
func whyDiffers(conditions []metav1.Condition) string {
	applied := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeApplied)
	if applied == nil || applied.Reason != placementv1beta1.ReasonAppliedWithDifference {
		return ""
	}
	return applied.Message
}

func driftedFields(kind string, details []placementv1beta1.PatchDetail) []DriftedField {
	all := make([]DriftedField, 0, len(details))
	for _, detail := range details {
		field := DriftedField{Path: detail.Path, Hub: detail.ValueInHub, Member: detail.ValueInMember}
		if mayBeSecret(kind, detail.Path) {
			field.Hub, field.Member = maskValue(field.Hub), maskValue(field.Member)
		}
		all = append(all, field)
	}
	return all
}

// mayBeSecret reports whether a field may hold something secret: agents mask what they report, but those of other hubs may be
// older.
func mayBeSecret(kind, path string) bool {
	return kind == "Secret" && (path == "" || strings.HasPrefix(path, "/data") || strings.HasPrefix(path, "/stringData") ||
		strings.HasPrefix(path, "/metadata/annotations"))
}

func maskValue(value string) string {
	if value == "" {
		return ""
	}
	return masked
}

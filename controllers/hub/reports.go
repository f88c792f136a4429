package hub

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// A member writes the status of its Works and of its mailbox, and the hub keeps all of them in
// memory. So it keeps what it reads of them, and no more than this of each, whatever a member,
// or another program with its token, writes.
const (
	// keptReport is how many bytes of memory the report on one Work may take, roughly.
	keptReport = 128 << 10
	// keptMailbox is the same for each part of the report in a mailbox.
	keptMailbox = 256 << 10
	// keptCounts is of how many workloads the pods that a report on one Work counts are kept: as many as a placement divides.
	keptCounts = rules.MaxDividedWorkloads
	// overhead is what an entry takes beside its strings, roughly.
	overhead = 128
)

// cachedReport is how much the hub keeps of what a member says of one object: as much as it
// shows, and of values more than the member agent reports.
var cachedReport = rules.ReportBounds{Conditions: 8, Message: 4096, Details: 100, Path: 1024, Value: 1024}

// summarizeReport returns what the hub reads of the report on a Work: conditions, the objects
// that have failed or differ, and the workloads whose pods are counted. Of the objects' own statuses it keeps a hash, in an entry for no
// object, by which a change of them is noticed.
func summarizeReport(status placementv1beta1.WorkStatus) placementv1beta1.WorkStatus {
	summary := placementv1beta1.WorkStatus{Conditions: cachedReport.ApplyToConditions(status.Conditions)}
	size := 0
	counts := 0
	for _, manifest := range status.ManifestConditions {
		manifest.BackReportedStatus = nil
		manifest.StateValues = nil // they are read live, when a placement leaves the cluster
		counted := manifest.ReplicaStatus != nil && counts < keptCounts
		if counted {
			counts++
		}
		if !needsAttention(&manifest) || size > keptReport {
			if counted {
				summary.ManifestConditions = append(summary.ManifestConditions, countsOf(&manifest))
			}
			continue
		}
		one := cachedReport.Apply(placementv1beta1.WorkStatus{ManifestConditions: []placementv1beta1.ManifestCondition{manifest}}).ManifestConditions[0]
		if size += sizeOfReport(&one); size <= keptReport {
			summary.ManifestConditions = append(summary.ManifestConditions, one)
		} else if counted {
			summary.ManifestConditions = append(summary.ManifestConditions, countsOf(&manifest))
		}
	}
	if digest := digestStatuses(status.ManifestConditions); digest != nil {
		summary.ManifestConditions = append(summary.ManifestConditions, placementv1beta1.ManifestCondition{
			Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: noObject}, BackReportedStatus: digest,
		})
	}
	return summary
}

// noObject is the ordinal of the entry that has the hash of the statuses of all objects.
const noObject = -1

// digestStatuses returns a hash of the objects' own statuses in a report, nil if it has none. That of a summary is its own hash.
func digestStatuses(manifests []placementv1beta1.ManifestCondition) *placementv1beta1.BackReportedStatus {
	var last *placementv1beta1.ManifestCondition
	mirrored := sha256.New()
	reported := 0
	for i := range manifests {
		if manifests[i].BackReportedStatus == nil {
			continue
		}
		last = &manifests[i]
		reported++
		// Writing to a hash never fails.
		_, _ = mirrored.Write([]byte(strconv.Itoa(last.Identifier.Ordinal) + " "))
		_, _ = mirrored.Write(last.BackReportedStatus.ObservedStatus.Raw)
	}
	const quotes = 2
	switch {
	case reported == 0:
		return nil
	case reported == 1 && last.Identifier.Ordinal == noObject &&
		len(last.BackReportedStatus.ObservedStatus.Raw) == hex.EncodedLen(sha256.Size)+quotes:
		return &placementv1beta1.BackReportedStatus{ObservedStatus: last.BackReportedStatus.ObservedStatus}
	}
	return &placementv1beta1.BackReportedStatus{ObservedStatus: runtime.RawExtension{Raw: []byte(`"` +
		hex.EncodeToString(mirrored.Sum(nil)) + `"`)}}
}

// countsOf returns what the hub reads of the report on a workload whose pods are counted, if nothing is wrong with it or there is no room
// for more: which one it is, its pods and, if one is not True, its conditions without words.
func countsOf(manifest *placementv1beta1.ManifestCondition) placementv1beta1.ManifestCondition {
	id := manifest.Identifier
	kept := placementv1beta1.ManifestCondition{
		Identifier: placementv1beta1.WorkResourceIdentifier{Ordinal: id.Ordinal, Group: id.Group, Kind: id.Kind, Namespace: id.Namespace,
			Name: id.Name},
		ReplicaStatus: manifest.ReplicaStatus,
	}
	for _, said := range cachedReport.ApplyToConditions(manifest.Conditions) {
		if said.Status != metav1.ConditionTrue {
			kept.Conditions = append(kept.Conditions, metav1.Condition{Type: said.Type, Status: said.Status})
		}
	}
	return kept
}

// needsAttention reports whether an object has failed or differs.
func needsAttention(manifest *placementv1beta1.ManifestCondition) bool {
	return manifest.DriftDetails != nil || manifest.DiffDetails != nil ||
		slices.ContainsFunc(manifest.Conditions, func(c metav1.Condition) bool { return c.Status == metav1.ConditionFalse })
}

// sizeOfReport returns how much memory the report on an object takes, roughly.
func sizeOfReport(manifest *placementv1beta1.ManifestCondition) int {
	id := &manifest.Identifier
	size := 3*overhead + len(id.Group) + len(id.Version) + len(id.Kind) + len(id.Resource) + len(id.Namespace) + len(id.Name)
	for i := range manifest.Conditions {
		c := &manifest.Conditions[i]
		size += overhead + len(c.Type) + len(c.Reason) + len(c.Message)
	}
	count := func(details []placementv1beta1.PatchDetail) {
		for i := range details {
			size += overhead + len(details[i].Path) + len(details[i].ValueInHub) + len(details[i].ValueInMember)
		}
	}
	if manifest.DriftDetails != nil {
		count(manifest.DriftDetails.ObservedDrifts)
	}
	if manifest.DiffDetails != nil {
		count(manifest.DiffDetails.ObservedDiffs)
	}
	return size
}

// boundMailbox cuts what a member reports about itself, and takes from its texts what terminals act on. What does not fit is left out,
// in the order of names, so that it is always the same.
func boundMailbox(status *clusterv1beta1.InternalMemberClusterStatus) {
	status.Conditions = boundConditions(status.Conditions)
	for name, property := range status.Properties {
		property.Value = clusterv1beta1.Printable(property.Value)
		status.Properties[name] = property
	}
	for name, owner := range status.Namespaces {
		status.Namespaces[name] = clusterv1beta1.Printable(owner)
	}
	status.Properties = boundEntries(status.Properties, func(value clusterv1beta1.PropertyValue) int { return len(value.Value) })
	status.Namespaces = boundEntries(status.Namespaces, func(owner string) int { return len(owner) })
	for _, list := range []*corev1.ResourceList{&status.ResourceUsage.Capacity, &status.ResourceUsage.Allocatable,
		&status.ResourceUsage.Available} {
		*list = boundEntries(*list, func(_ apiresource.Quantity) int { return overhead })
	}
	status.AgentStatus = status.AgentStatus[:min(len(status.AgentStatus), maxAgents)]
	for i := range status.AgentStatus {
		status.AgentStatus[i].Conditions = boundConditions(status.AgentStatus[i].Conditions)
	}
}

// maxAgents is how many agents of one member the hub listens to; KubeFleet knows three.
const maxAgents = 8

func boundConditions(conditions []metav1.Condition) []metav1.Condition {
	bounds := cachedReport
	bounds.Conditions = rules.StorableReport.Conditions
	return bounds.ApplyToConditions(conditions)
}

// boundEntries leaves out the entries that do not fit.
func boundEntries[M ~map[K]V, K cmp.Ordered, V any](entries M, sizeOf func(V) int) M {
	size := 0
	for _, value := range entries {
		size += overhead + sizeOf(value)
	}
	if size += len(entries) * overhead; size <= keptMailbox {
		return entries
	}
	kept := M{}
	left := keptMailbox
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if left -= 2*overhead + sizeOf(entries[key]); left < 0 {
			break
		}
		kept[key] = entries[key]
	}
	return kept
}

package workmodel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// AssignmentsAnnotation tells apart, on a Work, the replica assignments that it was made with. It is absent if there are none.
const AssignmentsAnnotation = placementv1beta1.OwnPrefix + "replica-assignments"

// OverriddenReplicasAnnotation says, on a Work, which replicas overrides have changed after their division.
const OverriddenReplicasAnnotation = placementv1beta1.OwnPrefix + "overridden-replicas"

// DroppedAnnotation lists, on a Work, the workloads that the cluster does not have because it gets no replicas of them.
const DroppedAnnotation = placementv1beta1.OwnPrefix + "dropped-workloads"

// hashAssignments returns a hash of the assignments that a binding has in force, without their reasons; empty if it has none.
func hashAssignments(binding placementv1beta1.BindingObject) string {
	assignments := binding.GetBindingSpec().ReplicaAssignments
	if len(assignments) == 0 {
		return ""
	}
	digest := sha256.New()
	for i := range assignments {
		a := withoutReason(assignments[i])
		raw, err := json.Marshal(a)
		if err != nil {
			panic(err) // strings, numbers and booleans always marshal
		}
		_, _ = digest.Write(raw) // writing to a hash never fails
	}
	return hex.EncodeToString(digest.Sum(nil))[:revisionLength]
}

func withoutReason(a placementv1beta1.ReplicaAssignment) placementv1beta1.ReplicaAssignment {
	a = withoutNotes(a)
	a.Reason = ""
	return a
}

// withoutNotes returns an assignment without what only the next decision has to know.
func withoutNotes(a placementv1beta1.ReplicaAssignment) placementv1beta1.ReplicaAssignment {
	a.Free = nil
	a.Grown = 0
	a.GrownAt = nil
	a.Capacity = nil
	a.CapacityAt = nil
	a.CapacityFree = 0
	return a
}

// assignmentsByWorkload finds assignments by what they are for.
func assignmentsByWorkload(assignments []placementv1beta1.ReplicaAssignment) map[rules.Workload]placementv1beta1.ReplicaAssignment {
	found := make(map[rules.Workload]placementv1beta1.ReplicaAssignment, len(assignments))
	for i := range assignments {
		found[rules.AssignedWorkload(&assignments[i])] = assignments[i]
	}
	return found
}

// Divide returns the content with the replicas that assignments give a cluster. What is in envelopes stays as it is. It comes
// before Override, which has the last word.
func (c *Content) Divide(assignments []placementv1beta1.ReplicaAssignment) (*Content, error) {
	if len(assignments) == 0 {
		return c, nil
	}
	divided := &Content{parts: c.parts, invalid: c.invalid, units: slices.Clone(c.units), assigned: assignmentsByWorkload(assignments)}
	for i := range divided.units {
		unit := &divided.units[i]
		if unit.envelope != nil {
			continue
		}
		manifests := make([]placementv1beta1.Manifest, 0, len(unit.manifests))
		for _, manifest := range unit.manifests {
			assignment, found := divided.assigned[workloadOf(manifest.Raw)]
			switch {
			case !found:
				manifests = append(manifests, manifest)
			case !assignment.Dropped:
				raw, err := assignReplicas(manifest.Raw, assignment)
				if err != nil {
					return nil, err
				}
				manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
			}
		}
		unit.manifests = manifests
	}
	divided.objects = sync.OnceValues(func() ([][]*override.Object, error) { return readObjects(divided.units) })
	return divided, nil
}

// workloadOf reads which object a manifest is of; that of no object is the zero value.
func workloadOf(manifest []byte) rules.Workload {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(manifest, &head); err != nil {
		return rules.Workload{}
	}
	return rules.Workload{
		Group: schema.FromAPIVersionAndKind(head.APIVersion, head.Kind).Group, Kind: head.Kind, Namespace: head.Metadata.Namespace,
		Name: head.Metadata.Name,
	}
}

// assignReplicas returns a manifest with the replicas that are assigned to its object.
func assignReplicas(manifest []byte, assignment placementv1beta1.ReplicaAssignment) ([]byte, error) {
	workload := rules.AssignedWorkload(&assignment)
	fields, ok := rules.ReplicaFieldsOf(schema.GroupKind{Group: workload.Group, Kind: workload.Kind})
	if !ok {
		return manifest, nil // nothing assigns replicas to such a kind
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil {
		return nil, fmt.Errorf("decoding %s to assign its replicas: %w", workload, err)
	}
	if err := unstructured.SetNestedField(object.Object, int64(assignment.Replicas), fields.Replicas...); err != nil {
		return nil, fmt.Errorf("assigning replicas to %s: %w", workload, err)
	}
	if fields.Completions != nil && assignment.Completions != nil {
		if err := unstructured.SetNestedField(object.Object, int64(*assignment.Completions), fields.Completions...); err != nil {
			return nil, fmt.Errorf("assigning completions to %s: %w", workload, err)
		}
	}
	raw, err := object.MarshalJSON()
	return bytes.TrimSpace(raw), err
}

// replicasIn reads how many replicas a manifest asks for.
func replicasIn(manifest []byte) (int32, bool) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil {
		return 0, false
	}
	demand, ok := rules.ReplicaDemandOf(object)
	return demand.Replicas, ok
}

// noteOverriddenReplicas notes if an override has changed the replicas that a cluster was assigned.
func (c *Content) noteOverriddenReplicas(unit int, object *override.Object, patch *override.Patch, result []byte) {
	id := object.Identifier()
	workload := rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	assignment, assigned := c.assigned[workload]
	if !assigned || c.units[unit].envelope != nil {
		return
	}
	replicas, ok := replicasIn(result)
	fields, _ := rules.ReplicaFieldsOf(schema.GroupKind{Group: id.Group, Kind: id.Kind})
	if !ok || replicas == assignment.Replicas {
		return
	}
	if source, found := patch.LastChange(object, fields.Replicas); found {
		c.overridden = append(c.overridden, overriddenReplicas{unit: unit,
			told: fmt.Sprintf("%s: overridden to %d by %s", workload, replicas, source)})
	}
}

// overriddenReplicas are replicas that a user has overridden.
type overriddenReplicas struct {
	unit int
	told string
}

// toldOverridden is how many workloads with overridden replicas a message names.
const toldOverridden = 5

// overriddenIn returns which replicas in a unit are overridden; empty if none are.
func (c *Content) overriddenIn(unit int) string {
	var told []string
	more := 0
	for _, o := range c.overridden {
		switch {
		case o.unit != unit:
		case len(told) < toldOverridden:
			told = append(told, o.told)
		default:
			more++
		}
	}
	if more > 0 {
		told = append(told, fmt.Sprintf("%d more", more))
	}
	return strings.Join(told, "; ")
}

// markReplicas makes a Work say which replicas it was made with, and which of them its member is to count.
func (c *Content) markReplicas(work *placementv1beta1.Work, unit int, binding placementv1beta1.BindingObject) {
	hash := hashAssignments(binding)
	if hash == "" {
		return
	}
	work.Annotations[AssignmentsAnnotation] = hash
	var dropped []string
	for _, assignment := range binding.GetBindingSpec().ReplicaAssignments {
		if assignment.Dropped {
			dropped = append(dropped, rules.AssignedWorkload(&assignment).String())
		}
	}
	if raw, err := json.Marshal(dropped); err == nil && len(dropped) > 0 && len(raw) <= maxScalingBytes {
		work.Annotations[DroppedAnnotation] = string(raw)
	}
	if told := c.overriddenIn(unit); told != "" {
		work.Annotations[OverriddenReplicasAnnotation] = told
	}
	if c.units[unit].envelope != nil {
		return
	}
	assigned := assignmentsByWorkload(binding.GetBindingSpec().ReplicaAssignments)
	for ordinal, manifest := range work.Spec.Workload.Manifests {
		if _, counted := assigned[workloadOf(manifest.Raw)]; counted {
			work.Spec.ReportReplicas = append(work.Spec.ReportReplicas, int32(ordinal)) //nolint:gosec // a snapshot has fewer
		}
	}
}

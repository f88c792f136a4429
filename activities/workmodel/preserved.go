package workmodel

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/override"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ReportedState returns what a member reports, by the rules, of the status of the objects of a Work. The member says what the values are;
// which objects there are is read from the manifests, and what the labels are called from the rules, neither of which it can write.
func ReportedState(work *placementv1beta1.Work, preserved []placementv1beta1.StatePreservationRule) rules.PreservedState {
	state := rules.PreservedState{}
	manifests := work.Spec.Workload.Manifests
	for i := range work.Status.ManifestConditions {
		reported := &work.Status.ManifestConditions[i]
		id := reported.Identifier
		if len(reported.StateValues) == 0 || id.Ordinal < 0 || id.Ordinal >= len(manifests) {
			continue
		}
		object := workloadOf(manifests[id.Ordinal].Raw)
		if object != (rules.Workload{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}) {
			continue // the report is on other manifests
		}
		if labels := labelsIn(reported.StateValues, preserved); len(labels) > 0 {
			state[object] = labels
		}
	}
	return state
}

// labelsIn returns the labels that reported values become.
func labelsIn(values []placementv1beta1.StateValue, preserved []placementv1beta1.StatePreservationRule) map[string]string {
	labels := map[string]string{}
	for _, rule := range preserved {
		at := slices.IndexFunc(values, func(v placementv1beta1.StateValue) bool { return v.JSONPath == rule.JSONPath })
		if at < 0 {
			continue
		}
		if text, message := rules.LabelValueOf(values[at].Value); message == "" {
			labels[rule.AliasLabelName] = text
		}
	}
	return labels
}

// Label returns the content with labels on its objects, those in envelopes included. It comes before Override, which has the last word.
func (c *Content) Label(state rules.PreservedState) (*Content, error) {
	if len(state) == 0 {
		return c, nil
	}
	labelled := &Content{parts: c.parts, invalid: c.invalid, units: slices.Clone(c.units), assigned: c.assigned}
	for i := range labelled.units {
		unit := &labelled.units[i]
		if unit.invalid {
			continue
		}
		unit.manifests = slices.Clone(unit.manifests)
		for j := range unit.manifests {
			labels := state[workloadOf(unit.manifests[j].Raw)]
			if len(labels) == 0 {
				continue
			}
			raw, err := addLabels(unit.manifests[j].Raw, labels)
			if err != nil {
				return nil, err
			}
			unit.manifests[j] = placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}}
		}
	}
	labelled.objects = sync.OnceValues(func() ([][]*override.Object, error) { return readObjects(labelled.units) })
	return labelled, nil
}

// addLabels returns a manifest with further labels, which replace those of the same name.
func addLabels(manifest []byte, labels map[string]string) ([]byte, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(manifest); err != nil {
		return nil, fmt.Errorf("decoding %s to label it: %w", workloadOf(manifest), err)
	}
	all := object.GetLabels()
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, labels)
	object.SetLabels(all)
	raw, err := object.MarshalJSON()
	return bytes.TrimSpace(raw), err
}

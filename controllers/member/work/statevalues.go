package work

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
)

// maxStateMessage is how much of what is wrong with a JSONPath is reported.
const maxStateMessage = 256

// readStateValues reads what JSONPaths yield in the status of an object. A path that yields nothing is left out.
func readStateValues(live *unstructured.Unstructured, paths []string) []placementv1beta1.StateValue {
	status, has := live.Object["status"].(map[string]any)
	if !has {
		return nil
	}
	var values []placementv1beta1.StateValue
	for _, path := range paths {
		found, err := evaluatePath(status, path)
		value := placementv1beta1.StateValue{JSONPath: path}
		switch {
		case err != nil:
			value.Message = clusterv1beta1.CutText("the JSONPath cannot be evaluated: "+err.Error(), maxStateMessage)
		case len(found) == 0:
			continue
		case len(found) > 1:
			value.Message = fmt.Sprintf("it yields %d values", len(found))
		default:
			value.Value, value.Message = rules.LabelValueOf(found[0])
		}
		values = append(values, value)
	}
	return values
}

// evaluatePath returns what a JSONPath yields, without what is null. The library works by reflection: should it panic at what a user
// has written, that is an error of this path, and not the end of the agent.
func evaluatePath(status map[string]any, path string) (found []any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			found = nil
			err = fmt.Errorf("%v", cause)
		}
	}()
	parsed := jsonpath.New("state").AllowMissingKeys(true)
	if err := parsed.Parse(path); err != nil {
		return nil, err
	}
	results, err := parsed.FindResults(status)
	if err != nil {
		return nil, err
	}
	for _, result := range slices.Concat(results...) {
		if value := interfaceOf(result); value != nil {
			found = append(found, value)
		}
	}
	return found, nil
}

func interfaceOf(value reflect.Value) any {
	if !value.IsValid() || !value.CanInterface() {
		return nil
	}
	return value.Interface()
}

// addStateValues adds to a report on the same outcomes what the status of objects yields for the JSONPaths of the Work. Values that have
// changed too soon keep what they were, as do those of an object that cannot be applied any more: it may be there.
func (m *reportLimit) addStateValues(status *placementv1beta1.WorkStatus, paths []string, outcomes []outcome,
	previous placementv1beta1.WorkStatus, now metav1.Time) {
	tooSoon := now.Time.Before(m.nextReport())
	m.owed = false
	if len(paths) == 0 {
		return
	}
	before := map[apply.Key][]placementv1beta1.StateValue{}
	for _, said := range previous.ManifestConditions {
		before[apply.KeyOf(said.Identifier)] = ofPaths(said.StateValues, paths)
	}
	for i, o := range outcomes {
		old := before[apply.KeyOf(o.id)]
		reported := o.stateValues
		switch {
		case o.problem != nil:
			reported = old
		case slices.Equal(old, reported):
		case len(old) > 0 && tooSoon:
			reported = old
			m.owed = true
		default:
			m.changed = now.Time
		}
		status.ManifestConditions[i].StateValues = reported
	}
}

// ofPaths returns the values of JSONPaths that are still asked for.
func ofPaths(values []placementv1beta1.StateValue, paths []string) []placementv1beta1.StateValue {
	gone := func(v placementv1beta1.StateValue) bool { return !slices.Contains(paths, v.JSONPath) }
	if !slices.ContainsFunc(values, gone) {
		return values
	}
	return slices.DeleteFunc(slices.Clone(values), gone)
}

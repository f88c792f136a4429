package override

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Set is the override snapshots of a binding, compiled.
type Set struct {
	specs []spec
	rules [][]rule // of each override
	index *index
}

// rule is an override rule, compiled.
type rule struct {
	clusters   clusters
	deletes    bool
	operations []operation
	// variable says whether some operation depends on the cluster.
	variable bool
	// broken says why the rule cannot be carried out anywhere.
	broken *problem
}

// operation is an operation of a JSON patch, compiled. It either has a value, or needs a
// cluster to get one, or is broken, or needs none.
type operation struct {
	operator placementv1beta1.JSONPatchOverrideOperator
	written  string // the path as it was written
	path     pointer
	value    *node
	// template is the value with variables, decoded.
	template any
	// broken says why the operation cannot be carried out anywhere.
	broken *problem
}

// Compile prepares the override snapshots that a binding lists. Whatever order they come in,
// they are applied in the same: ClusterResourceOverrides by name, then ResourceOverrides by
// namespace and name, which therefore have the last word. What is wrong with a rule comes to
// light on the objects and clusters that it is for, and leaves the others alone.
func Compile(snapshots []placementv1beta1.OverrideSnapshotObject) *Set {
	set := &Set{specs: sortedSpecs(snapshots)}
	set.index = newIndex(set.specs)
	for _, s := range set.specs {
		rules := make([]rule, len(s.rules))
		for i := range s.rules {
			rules[i] = compileRule(&s.rules[i])
		}
		set.rules = append(set.rules, rules)
	}
	return set
}

func compileRule(from *placementv1beta1.OverrideRule) rule {
	r := rule{clusters: newClusters(from.ClusterSelector)}
	if r.clusters.unreadable != nil {
		r.broken = &problem{text: r.clusters.unreadable.Error(), advice: "correct the selector, until then the rule applies to no cluster"}
	}
	switch from.OverrideType {
	case placementv1beta1.DeleteOverrideType:
		r.deletes = true
	case placementv1beta1.JSONPatchOverrideType, "":
		for i := range from.JSONPatchOverrides {
			op := compileOperation(&from.JSONPatchOverrides[i])
			r.variable = r.variable || op.template != nil
			r.operations = append(r.operations, op)
		}
	default:
		r.broken = &problem{text: fmt.Sprintf("override type %q is unknown", from.OverrideType), advice: "use JSONPatch or Delete"}
	}
	return r
}

func compileOperation(from *placementv1beta1.JSONPatchOverride) operation {
	op := operation{operator: from.Operator, written: from.Path}
	var err error
	if op.path, err = parsePath(from.Path); err != nil {
		op.broken = &problem{text: fmt.Sprintf("%s: %q", err, from.Path), advice: "correct the path"}
		return op
	}
	if op.broken = checkValue(from); op.broken != nil || from.Operator == placementv1beta1.JSONPatchOverrideOpRemove {
		return op
	}
	value, err := decodeJSON(from.Value.Raw)
	switch {
	case err != nil: // it was checked
		op.broken = op.invalidValue(err)
	case hasVariables(value):
		op.template = value
	default:
		op.setValue(value)
	}
	return op
}

// checkValue returns what is wrong with the operator and whether it has a value.
func checkValue(from *placementv1beta1.JSONPatchOverride) *problem {
	switch from.Operator {
	case placementv1beta1.JSONPatchOverrideOpAdd, placementv1beta1.JSONPatchOverrideOpReplace:
		if len(from.Value.Raw) == 0 || string(from.Value.Raw) == "null" {
			return &problem{text: fmt.Sprintf("%s operation needs a value: %q", from.Operator, from.Path),
				advice: "set value, or use remove to clear the field"}
		}
		if !json.Valid(from.Value.Raw) {
			return &problem{text: fmt.Sprintf("value for %q is no valid JSON", from.Path), advice: "correct the value"}
		}
	case placementv1beta1.JSONPatchOverrideOpRemove:
		if len(from.Value.Raw) > 0 {
			return &problem{text: fmt.Sprintf("remove operation cannot have value: %q", from.Path), advice: "remove value, or use replace"}
		}
	default:
		return &problem{text: fmt.Sprintf("operation %q is unknown: %q", from.Operator, from.Path), advice: "use add, remove or replace"}
	}
	return nil
}

// setValue gives the operation a value without variables.
func (op *operation) setValue(value any) {
	if err := op.path.acceptsValue(value); err != nil {
		op.broken = op.invalidValue(err)
		return
	}
	text, err := json.Marshal(value)
	if err != nil {
		op.broken = op.invalidValue(err)
		return
	}
	op.value = newNode(text)
}

// onCluster returns the operation with the variables of its value replaced.
func (op operation) onCluster(cluster Cluster) operation {
	if op.template == nil {
		return op
	}
	value, err := expandValue(op.template, cluster)
	var missing *missingValueError
	switch {
	case errors.As(err, &missing):
		op.broken = op.invalidValue(err)
		op.broken.advice = fmt.Sprintf("%s: a variable in the value for %s asks for it", missing.lookup.advice, op.written)
	case err != nil:
		op.broken = op.invalidValue(err)
	default:
		op.setValue(value)
	}
	return op
}

func (op *operation) invalidValue(err error) *problem {
	return &problem{text: err.Error(), advice: fmt.Sprintf("correct the value for %s", op.written)}
}

// decodeJSON reads JSON and leaves numbers as they are written.
func decodeJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return value, nil
}

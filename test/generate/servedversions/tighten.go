package main

import (
	"math"
	"strings"

	"github.com/fleetflow/fleetflow/apis/quantity"
)

// The forms that Kubernetes gives to the keys and values of labels.
const (
	labelKey   = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	labelValue = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	// requirements is how many a label selector may have. The cost of a rule is estimated from it.
	requirements = 64
)

// timestamp is what Go can read of what the format date-time admits: that has small letters, too, any character before
// the fraction of a second, and time zones of any offset.
const timestamp = `^[0-9-]{10}T[0-9:]{8}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`

// tighten makes a schema refuse what its format admits and the agents could not use. That is more than a matter of one
// object: an agent that cannot read one object of a kind gets to see none of them.
func tighten(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok && isLabelSelector(properties) {
			tightenSelector(properties)
			return
		}
		tightenValue(node)
		for _, child := range node {
			tighten(child)
		}
	case []any:
		for _, child := range node {
			tighten(child)
		}
	}
}

// tightenValue limits times, quantities and numbers to what their Go types can hold.
func tightenValue(schema map[string]any) {
	_, hasPattern := schema["pattern"]
	switch {
	case schema["format"] == "date-time" && !hasPattern:
		schema["pattern"] = timestamp
	case isQuantity(schema): // the pattern of controller-gen has exponents of any length, too, even with fractions
		schema["pattern"] = quantity.Pattern
	case schema["x-kubernetes-int-or-string"] == true:
		schema["maximum"] = math.MaxInt32
	}
}

// isQuantity tells quantities from the other fields that can be numbers and strings.
func isQuantity(schema map[string]any) bool {
	pattern, _ := schema["pattern"].(string)
	return strings.Contains(pattern, "[KMGTPE]i")
}

func isLabelSelector(properties map[string]any) bool {
	_, hasLabels := properties["matchLabels"].(map[string]any)
	_, hasExpressions := properties["matchExpressions"].(map[string]any)
	return hasLabels && hasExpressions && len(properties) == 2
}

// tightenSelector gives a label selector the rules that the Go type of Kubernetes carries no markers for, so that a
// misspelt operator is refused with the right ones instead of selecting nothing.
func tightenSelector(selector map[string]any) {
	labels := selector["matchLabels"].(map[string]any)
	labels["additionalProperties"] = map[string]any{"type": "string", "maxLength": 63, "pattern": labelValue}
	labels["maxProperties"] = requirements
	labels["x-kubernetes-validations"] = []any{map[string]any{
		"rule":    "self.all(key, size(key) <= 317 && key.matches(r'" + labelKey + "'))",
		"message": "a key of matchLabels must have the form of a label key, such as example.com/team",
		"reason":  "FieldValueInvalid",
	}}

	expressions := selector["matchExpressions"].(map[string]any)
	expressions["maxItems"] = requirements
	requirement := expressions["items"].(map[string]any)
	requirement["x-kubernetes-validations"] = []any{
		map[string]any{
			"rule":    `!(self.operator in ["In", "NotIn"]) || (has(self.values) && size(self.values) > 0)`,
			"message": "operators In and NotIn need at least one value: add values",
			"reason":  "FieldValueRequired", "fieldPath": ".values",
		},
		map[string]any{
			"rule":    `!(self.operator in ["Exists", "DoesNotExist"]) || !has(self.values) || size(self.values) == 0`,
			"message": "operators Exists and DoesNotExist take no values: remove values",
			"reason":  "FieldValueForbidden", "fieldPath": ".values",
		},
	}
	fields := requirement["properties"].(map[string]any)
	operator := fields["operator"].(map[string]any)
	operator["enum"] = []any{"In", "NotIn", "Exists", "DoesNotExist"}
	key := fields["key"].(map[string]any)
	key["maxLength"], key["pattern"] = 317, labelKey
	values := fields["values"].(map[string]any)
	values["items"] = map[string]any{"type": "string", "maxLength": 63, "pattern": labelValue}
}

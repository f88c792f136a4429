package main

// The forms that Kubernetes gives to the keys and values of labels.
const (
	labelKey   = `^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`
	labelValue = `^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	// requirements is how many a label selector may have. The cost of a rule is estimated from it.
	requirements = 64
)

// tightenSelectors gives every label selector in a schema the rules that the Go type of Kubernetes carries no markers
// for, so that a misspelt operator is refused with the right ones instead of selecting nothing.
func tightenSelectors(schema any) {
	switch node := schema.(type) {
	case map[string]any:
		if properties, ok := node["properties"].(map[string]any); ok && isLabelSelector(properties) {
			tighten(properties)
			return
		}
		for _, child := range node {
			tightenSelectors(child)
		}
	case []any:
		for _, child := range node {
			tightenSelectors(child)
		}
	}
}

func isLabelSelector(properties map[string]any) bool {
	_, hasLabels := properties["matchLabels"].(map[string]any)
	_, hasExpressions := properties["matchExpressions"].(map[string]any)
	return hasLabels && hasExpressions && len(properties) == 2
}

func tighten(selector map[string]any) {
	labels := selector["matchLabels"].(map[string]any)
	labels["additionalProperties"] = map[string]any{"type": "string", "maxLength": 63, "pattern": labelValue}

	expressions := selector["matchExpressions"].(map[string]any)
	expressions["maxItems"] = requirements
	requirement := expressions["items"].(map[string]any)
	requirement["x-kubernetes-validations"] = []any{
		map[string]any{
			"rule":    `!(self.operator in ["In", "NotIn"]) || (has(self.values) && size(self.values) > 0)`,
			"message": "operators In and NotIn need at least one value: add values",
		},
		map[string]any{
			"rule":    `!(self.operator in ["Exists", "DoesNotExist"]) || !has(self.values) || size(self.values) == 0`,
			"message": "operators Exists and DoesNotExist take no values: remove values",
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

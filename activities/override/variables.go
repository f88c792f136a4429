package override

import (
	"fmt"
	"slices"
	"strings"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// What can stand in the values of patches for properties of the cluster. The case matters,
// and anything else that looks like a variable is plain text.
const (
	nameVariable  = "${MEMBER-CLUSTER-NAME}"
	labelVariable = "${MEMBER-CLUSTER-LABEL-KEY-" // then the key of the label and }
	// Those of annotations and properties are additions of fleetflow.
	annotationVariable = "${MEMBER-CLUSTER-ANNOTATION-KEY-"
	propertyVariable   = "${MEMBER-CLUSTER-PROPERTY-KEY-"
	// variables is what all of them begin with.
	variables = "${MEMBER-CLUSTER-"
)

// lookup is a kind of variable that names one of several values of a cluster.
type lookup struct {
	// prefix begins the variable; the key and } follow.
	prefix string
	// what is looked up, and what there is to do where it is missing.
	what, advice string
	values       func(Cluster) map[string]string
}

// lookups are the kinds of variables that name a value. That of labels is the first: fingerprints are made in this order.
var lookups = []lookup{
	{labelVariable, "label key", "label the MemberCluster, or leave clusters without the label out by the clusterSelector of the rule",
		func(c Cluster) map[string]string { return c.Labels }},
	{annotationVariable, "annotation",
		"annotate the MemberCluster; only annotations that begin with " + clusterv1beta1.ValueAnnotationPrefix + " can be asked for",
		func(c Cluster) map[string]string { return c.Values }},
	{propertyVariable, "property", "leave clusters that do not report it out by the clusterSelector of the rule",
		func(c Cluster) map[string]string { return c.Properties }},
}

// missingValueError says that a variable asks for something that the cluster does not have.
type missingValueError struct {
	lookup       *lookup
	key, cluster string
}

func (e *missingValueError) Error() string {
	return fmt.Sprintf("%s %q not found on cluster %q", e.lookup.what, e.key, e.cluster)
}

// expandText replaces the variables in a string. What comes in by a variable is not looked
// at again, and a variable that nothing closes stays as it is.
func expandText(text string, cluster Cluster) (string, error) {
	var expanded strings.Builder
	for {
		start := strings.Index(text, variables)
		if start < 0 {
			break
		}
		expanded.WriteString(text[:start])
		text = text[start:]
		value, length, err := expandVariable(text, cluster)
		if err != nil {
			return "", err
		}
		expanded.WriteString(value)
		text = text[length:]
	}
	expanded.WriteString(text)
	return expanded.String(), nil
}

// expandVariable returns what stands for the variable at the start of a text, and the length of
// the variable.
func expandVariable(text string, cluster Cluster) (value string, length int, err error) {
	if strings.HasPrefix(text, nameVariable) {
		return cluster.Name, len(nameVariable), nil
	}
	for i := range lookups {
		l := &lookups[i]
		rest, ok := strings.CutPrefix(text, l.prefix)
		if !ok {
			continue
		}
		if key, _, closed := strings.Cut(rest, "}"); closed {
			value, found := l.values(cluster)[key]
			if !found {
				return "", 0, &missingValueError{lookup: l, key: key, cluster: cluster.Name}
			}
			return value, len(l.prefix) + len(key) + 1, nil
		}
	}
	return variables, len(variables), nil
}

// expandValue replaces the variables in all strings of a decoded JSON value, the keys of objects
// included. The value itself stays as it is.
func expandValue(value any, cluster Cluster) (any, error) {
	switch value := value.(type) {
	case string:
		return expandText(value, cluster)
	case []any:
		expanded := make([]any, len(value))
		for i, element := range value {
			var err error
			if expanded[i], err = expandValue(element, cluster); err != nil {
				return nil, err
			}
		}
		return expanded, nil
	case map[string]any:
		return expandObject(value, cluster)
	default:
		return value, nil
	}
}

func expandObject(value map[string]any, cluster Cluster) (any, error) {
	expanded := make(map[string]any, len(value))
	for key, element := range value {
		name, err := expandText(key, cluster)
		if err != nil {
			return nil, err
		}
		if _, taken := expanded[name]; taken {
			return nil, fmt.Errorf("two keys of an object are %q on cluster %q, once their variables are replaced", name, cluster.Name)
		}
		if expanded[name], err = expandValue(element, cluster); err != nil {
			return nil, err
		}
	}
	return expanded, nil
}

// hasVariables reports whether a decoded JSON value may have variables to replace.
func hasVariables(value any) bool {
	switch value := value.(type) {
	case string:
		return strings.Contains(value, variables)
	case []any:
		return slices.ContainsFunc(value, hasVariables)
	case map[string]any:
		for key, element := range value {
			if strings.Contains(key, variables) || hasVariables(element) {
				return true
			}
		}
	}
	return false
}

package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxPreservedBytes is how much of the state of a placement goes along: the annotations of an object may have four times as much.
const maxPreservedBytes = 64 << 10

// StatePreservedFor returns the rules by which state goes along when a placement leaves a cluster for a reason; none if nothing does.
func StatePreservedFor(f *placementv1beta1.FailoverStrategy, cause placementv1beta1.FailoverCause) []placementv1beta1.StatePreservationRule {
	if f == nil || PurgeModeFor(f, cause) != placementv1beta1.PurgeDirectly {
		return nil
	}
	preservation := (*placementv1beta1.StatePreservation)(nil)
	if cause == placementv1beta1.CauseApplication {
		preservation = f.Application.StatePreservation
	} else {
		preservation = f.Cluster.StatePreservation
	}
	if preservation == nil {
		return nil
	}
	return preservation.Rules
}

// StatePathsOf returns the JSONPaths whose values the members of a placement report: those of all its rules, in order.
func StatePathsOf(placement placementv1beta1.PlacementObject) []string {
	failover := FailoverOf(placement)
	var paths []string
	for _, cause := range []placementv1beta1.FailoverCause{placementv1beta1.CauseApplication, placementv1beta1.CauseCluster} {
		for _, rule := range StatePreservedFor(failover, cause) {
			paths = append(paths, rule.JSONPath)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// LabelValueOf returns a value of a status as that of a label. The message says why it cannot be one; nothing is cut.
func LabelValueOf(value any) (text, message string) {
	switch v := value.(type) {
	case string:
		text = v
	case bool, int, int32, int64, float64:
		encoded, err := json.Marshal(v)
		if err != nil {
			return "", err.Error()
		}
		text = string(encoded)
	default:
		return "", "it is no text, number or boolean"
	}
	switch {
	case text == "":
		return "", "it is empty"
	case len(text) > validation.LabelValueMaxLength:
		return "", fmt.Sprintf("it has %d characters, and the value of a label at most %d", len(text), validation.LabelValueMaxLength)
	case len(validation.IsValidLabelValue(text)) > 0:
		return "", "the value of a label consists of letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
	}
	return text, ""
}

// PreservedState is what goes along when a placement leaves a cluster for another: the labels that objects get there.
type PreservedState map[Workload]map[string]string

// preservedObject is how the labels of an object are stored.
type preservedObject struct {
	Group     string            `json:"group,omitempty"`
	Kind      string            `json:"kind"`
	Namespace string            `json:"namespace,omitempty"`
	Name      string            `json:"name"`
	Labels    map[string]string `json:"labels"`
}

// PreservedStateOf reads what a binding has been given. What cannot be read, or cannot be a label, was not.
func PreservedStateOf(binding placementv1beta1.BindingObject) PreservedState {
	var stored []preservedObject
	if json.Unmarshal([]byte(binding.GetAnnotations()[placementv1beta1.PreservedStateAnnotation]), &stored) != nil {
		return nil
	}
	state := PreservedState{}
	for _, object := range stored {
		labels := maps.Clone(object.Labels)
		maps.DeleteFunc(labels, func(name, value string) bool {
			_, message := LabelValueOf(value)
			return message != "" || len(validation.IsQualifiedName(name)) > 0
		})
		if len(labels) > 0 {
			state[Workload{Group: object.Group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}] = labels
		}
	}
	return state
}

// Merge returns the state with what a newer copy has reported: that counts more, label by label.
func (s PreservedState) Merge(newer PreservedState) PreservedState {
	merged := PreservedState{}
	for _, state := range []PreservedState{s, newer} {
		for object, labels := range state {
			if merged[object] == nil {
				merged[object] = map[string]string{}
			}
			maps.Copy(merged[object], labels)
		}
	}
	return merged
}

// Encode returns how the state is stored, the same for the same state; empty if there is none. If there is too much, the objects that come
// last by kind and name are left out.
func (s PreservedState) Encode() string {
	var stored []string
	size := len("[]")
	for _, object := range slices.SortedFunc(maps.Keys(s), Workload.Compare) {
		if len(s[object]) == 0 {
			continue
		}
		// Strings always encode.
		encoded, _ := json.Marshal(preservedObject{Group: object.Group, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
			Labels: s[object]})
		if size += len(encoded) + len(","); size > maxPreservedBytes {
			break
		}
		stored = append(stored, string(encoded))
	}
	if len(stored) == 0 {
		return ""
	}
	return "[" + strings.Join(stored, ",") + "]"
}

// What the definitions of placements take as the name of a label and as a path.
var (
	aliasLabelName = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	reservedAlias  = regexp.MustCompile(`^([^/]*[.])?(kubernetes-fleet[.]io|fleetflow[.]io|fleet[.]azure[.]com|kubernetes[.]io|k8s[.]io)/`)
	statePath      = regexp.MustCompile(`^[{] *[$@]?[.\[][^{},]*[}]$`)
)

// StateRuleProblem returns why the API server would refuse a rule; empty if it would not.
func StateRuleProblem(r placementv1beta1.StatePreservationRule) string {
	switch {
	case len(r.AliasLabelName) > 317 || !aliasLabelName.MatchString(r.AliasLabelName):
		return "aliasLabelName is not the name of a label"
	case reservedAlias.MatchString(r.AliasLabelName):
		return "the prefix of aliasLabelName is reserved for the fleet or for Kubernetes"
	case len(r.JSONPath) > 256 || !statePath.MatchString(r.JSONPath) || strings.Contains(r.JSONPath, ".."):
		return "jsonPath is not one path in braces, without .. and commas"
	}
	return ""
}

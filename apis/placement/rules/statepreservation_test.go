package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhatOfAStatusCanBeALabel(t *testing.T) {
	for sentence, tc := range map[string]struct {
		value   any
		text    string
		message string
	}{
		"a text":                      {value: "ea33fcc1c5ab6b8cd46ee37fbb0fdd7c", text: "ea33fcc1c5ab6b8cd46ee37fbb0fdd7c"},
		"a number":                    {value: int64(9007199254740993), text: "9007199254740993"},
		"a fraction":                  {value: 1.5, text: "1.5"},
		"a boolean":                   {value: false, text: "false"},
		"63 characters":               {value: strings.Repeat("a", 63), text: strings.Repeat("a", 63)},
		"64 are not cut":              {value: strings.Repeat("a", 64), message: "it has 64 characters, and the value of a label at most 63"},
		"no path":                     {value: "s3://bucket/savepoint-1", message: "the value of a label consists of letters, digits, '-', '_' and '.'"},
		"no text that ends otherwise": {value: "a-", message: "begins and ends with a letter or digit"},
		"a negative number is none":   {value: int64(-1), message: "begins and ends with a letter or digit"},
		"nothing":                     {value: "", message: "it is empty"},
		"an object":                   {value: map[string]any{"a": "b"}, message: "it is no text, number or boolean"},
		"a list":                      {value: []any{"a"}, message: "it is no text, number or boolean"},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, message := LabelValueOf(tc.value)
			assert.Equal(t, tc.text, text)
			assert.Equal(t, tc.message == "", message == "")
			assert.Contains(t, message, tc.message)
		})
	}
}

func TestPreservedStateIsStoredOnABinding(t *testing.T) {
	front := Workload{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "front"}
	back := Workload{Kind: "Namespace", Name: "web"}
	first := PreservedState{front: {"job": "1", "phase": "up"}}
	newer := PreservedState{front: {"job": "2"}, back: {"phase": "Active"}}
	merged := first.Merge(newer)
	assert.Equal(t, PreservedState{front: {"job": "2", "phase": "up"}, back: {"phase": "Active"}}, merged)
	assert.Equal(t, PreservedState{front: {"job": "1", "phase": "up"}}, first, "it is left as it was")

	read := func(text string) PreservedState {
		b := &placementv1beta1.ClusterResourceBinding{}
		b.Annotations = map[string]string{placementv1beta1.PreservedStateAnnotation: text}
		return PreservedStateOf(b)
	}
	assert.Equal(t, `[{"kind":"Namespace","name":"web","labels":{"phase":"Active"}},{"group":"apps","kind":"Deployment","namespace":"web","name":"front","labels":{"job":"2","phase":"up"}}]`, merged.Encode())
	assert.Equal(t, merged, read(merged.Encode()))
	assert.Empty(t, PreservedState{front: {}}.Encode())
	assert.Empty(t, read("odd"))
	assert.Equal(t, PreservedState{back: {"a": "b"}}, read(`[{"kind":"Namespace","name":"web","labels":{"a":"b","c":"no label","-":"d"}},{"kind":"X","name":"x","labels":{"c":""}}]`),
		"what cannot be a label is left out")

	many := PreservedState{}
	for i := range 2000 {
		many[Workload{Kind: "ConfigMap", Namespace: "web", Name: fmt.Sprintf("c%04d", i)}] = map[string]string{"state.example.com/job": strings.Repeat("a", 63)}
	}
	text := many.Encode()
	assert.LessOrEqual(t, len(text), maxPreservedBytes)
	kept := read(text)
	assert.Greater(t, len(kept), 400)
	assert.Contains(t, kept, Workload{Kind: "ConfigMap", Namespace: "web", Name: "c0000"}, "the first stay")
}

func TestTheRulesOfAFailover(t *testing.T) {
	rules := func(paths ...string) *placementv1beta1.StatePreservation {
		made := &placementv1beta1.StatePreservation{}
		for _, path := range paths {
			made.Rules = append(made.Rules, placementv1beta1.StatePreservationRule{AliasLabelName: "l" + path, JSONPath: path})
		}
		return made
	}
	p := &placementv1beta1.ClusterResourcePlacement{}
	assert.Empty(t, StatePathsOf(p))
	p.Spec.Strategy = &placementv1beta1.RolloutStrategy{Failover: &placementv1beta1.FailoverStrategy{
		Application: &placementv1beta1.ApplicationFailover{PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: rules("{.b}", "{.a}")},
		Cluster:     &placementv1beta1.ClusterFailover{PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: rules("{.b}")},
	}}
	assert.Equal(t, []string{"{.a}", "{.b}"}, StatePathsOf(p))
	failover := p.Spec.Strategy.Failover
	assert.Len(t, StatePreservedFor(failover, placementv1beta1.CauseApplication), 2)
	assert.Len(t, StatePreservedFor(failover, placementv1beta1.CauseCluster), 1)
	failover.Application.PurgeMode = ""
	assert.Empty(t, StatePreservedFor(failover, placementv1beta1.CauseApplication), "the copies are there at the same time")
	failover.Cluster = nil
	assert.Empty(t, StatePreservedFor(failover, placementv1beta1.CauseCluster))
	assert.Empty(t, StatePreservedFor((*placementv1beta1.FailoverStrategy)(nil), placementv1beta1.CauseCluster))
}

func TestRulesThatTheAPIServerRefuses(t *testing.T) {
	for sentence, tc := range map[string]struct {
		alias, path, problem string
	}{
		"Karmada's":              {"application.karmada.io/failover-jobid", "{ .jobStatus.jobID }", ""},
		"an element of a list":   {"job", `{.conditions[?(@.type=="Ready")].status}`, ""},
		"no name":                {"a b", "{.a}", "aliasLabelName is not the name of a label"},
		"a name of the fleet":    {"kubernetes-fleet.io/parent-CRP", "{.a}", "reserved"},
		"one below it":           {"x.kubernetes-fleet.io/a", "{.a}", "reserved"},
		"one of Kubernetes":      {"pod-security.kubernetes.io/enforce", "{.a}", "reserved"},
		"one that looks like it": {"my-k8s.io/a", "{.a}", ""},
		"no braces":              {"job", ".jobStatus.jobID", "jsonPath"},
		"a text around":          {"job", "id {.a}", "jsonPath"},
		"two":                    {"job", "{.a}{.b}", "jsonPath"},
		"anything below":         {"job", "{..a}", "jsonPath"},
		"several":                {"job", "{['a','b']}", "jsonPath"},
		"a loop":                 {"job", "{range .a}", "jsonPath"},
	} {
		t.Run(sentence, func(t *testing.T) {
			problem := StateRuleProblem(placementv1beta1.StatePreservationRule{AliasLabelName: tc.alias, JSONPath: tc.path})
			assert.Equal(t, tc.problem == "", problem == "")
			assert.Contains(t, problem, tc.problem)
		})
	}
}

package crds

import (
	"fmt"
	"strings"
	"testing"
)

func TestRulesOfScheduling(t *testing.T) {
	placement := func(policy, more string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {" + policy + "}" + more + "}"
	}
	overrides := func(items ...string) string {
		return placement("", ", requiredOverrides: ["+strings.Join(items, ", ")+"]")
	}
	many := func(n int) []string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf("{name: o%d}", i))
		}
		return items
	}
	const failsOver = ", strategy: {failover: {cluster: {}}}"
	run(t, "ResourcePlacement", map[string]ruleCase{
		"a policy may be lazy": {spec: placement("activation: Lazy", "")},
		"or immediate":         {spec: placement("activation: Immediate, schedulerName: theirs", "")},
		"nothing else":         {spec: placement("activation: Later", ""), refusal: `supported values: "Immediate", "Lazy"`},
		"a lazy policy is of the built-in scheduler": {spec: placement("activation: Lazy, schedulerName: theirs", ""), refusal: "when a changed policy acts is up to the scheduler that picks the clusters: remove policy.activation, or policy.schedulerName"},
		"which has no name":                          {spec: placement("activation: Lazy, schedulerName: ''", "")},
		"another one may change":                     {old: placement("schedulerName: theirs", ""), spec: placement("schedulerName: ours.example.com", "")},
		"its name is one":                            {spec: placement("schedulerName: Theirs!", ""), refusal: "schedulerName is the name of a scheduler"},
		"another one does not fail over":             {spec: placement("placementType: PickN, numberOfClusters: 1, schedulerName: theirs", failsOver), refusal: "strategy.failover is carried out by the built-in scheduler"},
		"the built-in one does":                      {spec: placement("placementType: PickN, numberOfClusters: 1, schedulerName: ''", failsOver)},
		"a PriorityClass has a name":                 {spec: placement("queuePriorityClassName: High!", ""), refusal: "queuePriorityClassName is the name of a PriorityClass"},
		"such as those of the system":                {spec: placement("queuePriorityClassName: system-cluster-critical", "")},
		"overrides may be required, of both kinds":   {spec: overrides("{name: a}", "{name: a, namespace: web}")},
		"each has a name":                            {spec: overrides("{namespace: web}"), refusal: "requiredOverrides[0].name: Required value"},
		"that is not empty":                          {spec: overrides("{name: ''}"), refusal: "requiredOverrides[0].name"},
		"each is named once":                         {spec: overrides("{name: a}", "{name: b}", "{name: a}"), refusal: "requiredOverrides must be unique: remove the repeated override"},
		"there are some, if the field is there":      {spec: overrides(), refusal: "should have at least 1 items"},
		"there are fifty at most":                    {spec: overrides(many(50)...)},
		"fifty-one are too many":                     {spec: overrides(many(51)...), refusal: "must have at most 50 items"},
	})
}

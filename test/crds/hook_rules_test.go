package crds

import (
	"strings"
	"testing"
)

func TestRulesOfLifecycleHooks(t *testing.T) {
	strategy := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], strategy: {" + fields + "}}"
	}
	hook := func(fields string) string { return strategy("lifecycle: {preUpdate: {" + fields + "}}") }
	label := "labelsHandler: {example.com/in-service: 'yes'}"
	cases := map[string]ruleCase{
		"a hook may have labels and finalizers": {spec: hook(label + ", finalizersHandler: [example.com/drain]")},
		"every hook may be given":               {spec: strategy("lifecycle: {preUpdate: {" + label + ", markNotServing: true, gracePeriodSeconds: 30}, preRemove: {" + label + "}, preAvailable: {" + label + "}}")},
		"External may have hooks":               {spec: strategy("type: External, lifecycle: {preUpdate: {" + label + "}}")},
		"a label may have no domain":            {spec: hook("labelsHandler: {in-service: ''}")},
		"a lifecycle has a hook":                {spec: strategy("lifecycle: {}"), refusal: "should have at least 1 properties"},
		"a hook names what holds":               {spec: hook("markNotServing: true"), refusal: "a hook needs at least one label in labelsHandler or one finalizer in finalizersHandler"},
		"an empty list holds nothing":           {spec: hook("labelsHandler: {}, finalizersHandler: []"), refusal: "a hook needs at least one label"},
		"preAvailable names what holds":         {spec: strategy("lifecycle: {preAvailable: {}}"), refusal: "a hook needs at least one label"},
		"a label has a key":                     {spec: hook("labelsHandler: {'not a key': 'yes'}"), refusal: "labelsHandler has a key that no label can have"},
		"a label's key ends":                    {spec: hook("labelsHandler: {a123456789012345678901234567890123456789012345678901234567890123: 'yes'}"), refusal: "labelsHandler has a key that no label can have"},
		"a label's value is one":                {spec: hook("labelsHandler: {a: 'not a value'}"), refusal: "labelsHandler has a value that no label can have"},
		"the fleet's labels are not hooks":      {spec: hook("labelsHandler: {kubernetes-fleet.io/parent-CRP: web}"), refusal: "labelsHandler has a label of the fleet"},
		"nor are those below its domain":        {spec: hook("labelsHandler: {cluster.kubernetes-fleet.io/a: web}"), refusal: "labelsHandler has a label of the fleet"},
		"nor are fleetflow's own":               {spec: hook("labelsHandler: {fleetflow.io/lifecycle-state: Updated}"), refusal: "labelsHandler has a label of the fleet"},
		"a domain like the fleet's is free":     {spec: hook("labelsHandler: {my-kubernetes-fleet.io/a: web}")},
		"a finalizer has a domain":              {spec: hook("finalizersHandler: [drain]"), refusal: "finalizersHandler needs finalizers with a domain, such as example.com/drain"},
		"the fleet's finalizers are its own":    {spec: hook("finalizersHandler: [kubernetes-fleet.io/work-cleanup]"), refusal: "finalizersHandler has a finalizer of the fleet"},
		"fleetflow's finalizers are, too":       {spec: hook("finalizersHandler: [x.fleetflow.io/hold]"), refusal: "finalizersHandler has a finalizer of the fleet"},
		"a finalizer is named once":             {spec: hook("finalizersHandler: [a.b/c, a.b/c]"), refusal: "Duplicate value"},
		"what only reports has no hooks":        {spec: strategy("applyStrategy: {type: ReportDiff}, lifecycle: {preUpdate: {" + label + "}}"), refusal: "lifecycle hooks are not for applyStrategy type ReportDiff"},
		"a grace period counts from Serving":    {spec: hook(label + ", gracePeriodSeconds: 30"), refusal: "gracePeriodSeconds counts from the condition Serving: set markNotServing to true"},
		"a grace period is not negative":        {spec: hook(label + ", markNotServing: true, gracePeriodSeconds: -1"), refusal: "gracePeriodSeconds"},
	}
	run(t, "ResourcePlacement", cases)
	for sentence, test := range cases {
		test.spec = strings.Replace(test.spec, "kind: ConfigMap", "kind: Namespace", 1)
		cases[sentence] = test
	}
	run(t, "ClusterResourcePlacement", cases)
}

package crds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// wholes are the rules that judge a struct as a whole, in which no field is the one to correct.
var wholes = map[string]bool{
	"a metric has exactly one of prometheus, webhook, objects and job":                 true,
	"an exemption does not change: delete it, and create another one":                  true,
	"a question cannot be changed: ask another":                                        true,
	"a rehearsal cannot be changed: create another":                                    true,
	"a record cannot be changed":                                                       true,
	"the keys of body have 63 characters at most, and its values 256":                  true,
	"a key of matchLabels must have the form of a label key, such as example.com/team": true,
}

// kubeFleets are rules of types of KubeFleet's that are within own kinds: there they are as KubeFleet has them.
var kubeFleets = map[string]bool{
	"serverSideApplyConfig is only valid for ServerSideApply strategy type: remove it, or set type to ServerSideApply": true,
}

// eachSchema calls a function for a schema and those below it.
func eachSchema(path string, s *schema.Structural, look func(path string, s *schema.Structural)) {
	look(path, s)
	for name := range s.Properties {
		property := s.Properties[name]
		eachSchema(path+"."+name, &property, look)
	}
	if s.Items != nil {
		eachSchema(path+"[]", s.Items, look)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		eachSchema(path+"{}", s.AdditionalProperties.Structural, look)
	}
}

// ownKinds are the kinds of fleetflow.io.
func ownKinds(t *testing.T) map[string]*kind {
	t.Helper()
	own := map[string]*kind{}
	for name, crd := range loadCRDs(t) {
		if crd.Spec.Group == "fleetflow.io" {
			own[name] = loadKind(t, name)
		}
	}
	require.GreaterOrEqual(t, len(own), 7)
	return own
}

// A client that shows refusals beside the fields of a form goes by the field and the reason, and not by the sentence.
func TestRulesOfOwnKindsNameTheFieldAndTheReason(t *testing.T) {
	for name, k := range ownKinds(t) {
		looked := 0
		eachSchema("", k.structural, func(path string, s *schema.Structural) {
			for _, rule := range s.XValidations {
				if kubeFleets[rule.Message] {
					continue
				}
				looked++
				assert.NotNil(t, rule.Reason, "%s%s: the rule %q has no reason: add reason=FieldValueInvalid, FieldValueForbidden or FieldValueRequired", name, path, rule.Message)
				if s.Type == "object" && !wholes[rule.Message] {
					assert.NotEmpty(t, rule.FieldPath, "%s%s: the rule %q names no field: add fieldPath, that of the field to correct", name, path, rule.Message)
				}
			}
		})
		assert.Positive(t, looked, name)
	}
}

func TestRefusalsOfOwnKindsNameTheField(t *testing.T) {
	for kindName, cases := range map[string]map[string]string{
		"RolloutWindow": {
			`{type: Deny, scope: Fleet, timeZone: UTC, dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}], stages: [canary]}`: "spec.stages: Forbidden: stages belongs to scope Stage",
			`{type: Deny, scope: Fleet, timeZone: UTC}`:                                                                                     "spec.weekly: Required value: a window needs at least one entry",
			`{type: Deny, scope: Fleet, timeZone: UTC, cron: [{expression: "0 22 * * *", duration: 1.5h}]}`:                                 `spec.cron[0].duration: Invalid value: "1.5h": duration must be 1m to 168h`,
			`{type: Deny, scope: Fleet, timeZone: UTC, lastStartBefore: 1h, dates: [{start: "2026-12-18T00:00", end: "2027-01-05T00:00"}]}`: "spec.lastStartBefore: Forbidden: lastStartBefore belongs to type Allow",
		},
		"RolloutHold": {
			`{message: m, clusterSelector: {matchExpressions: [{key: a, operator: In}]}}`: "spec.clusterSelector.matchExpressions[0].values: Required value: operators In and NotIn need at least one value",
		},
		"MetricSource": {
			`{type: Prometheus, url: "https://p", auth: {type: Bearer}}`: "spec.auth.secret: Invalid value",
		},
		"AuditSink": {
			`{type: Webhook}`: "spec.webhook: Invalid value",
			`{type: Webhook, webhook: {url: "https://siem"}, file: {name: "-"}}`:                                         "spec.file: Invalid value",
			`{type: Webhook, webhook: {url: "http://siem"}}`:                                                             "spec.webhook.url: Invalid value",
			`{type: Webhook, webhook: {url: "https://me@siem"}}`:                                                         "spec.webhook.url: Invalid value",
			`{type: Webhook, webhook: {url: "https://siem?token=1"}}`:                                                    "spec.webhook.url: Invalid value",
			`{type: Webhook, webhook: {url: "https://siem", auth: {type: HMAC}}}`:                                        "spec.webhook.auth.secret: Invalid value",
			`{type: OTLP, otlp: {url: "https://siem", auth: {type: HMAC, secret: {name: a, key: b}}}}`:                   "spec.otlp.auth.type: Invalid value",
			`{type: File, file: {name: "../audit.jsonl"}}`:                                                               "spec.file.name: Invalid value",
			`{type: File, file: {name: "-"}, filter: {types: ["runs.*"]}}`:                                               "spec.filter.types: Invalid value",
			`{type: File, file: {name: "-"}, filter: {placementSelector: {matchExpressions: [{key: a, operator: In}]}}}`: "spec.filter.placementSelector.matchExpressions: Invalid value",
		},
		"StageAnalysis": {
			`{metrics: [{name: a, success: "true", prometheus: {sourceRef: {name: p}, query: up}, count: 2}]}`: "spec.metrics[0].interval: Required value: a count above 1 needs an interval",
		},
	} {
		k := loadKind(t, kindName)
		for spec, refusal := range cases {
			_, errs := k.admit(t, "apiVersion: fleetflow.io/v1alpha1\nkind: "+kindName+"\nmetadata: {name: example}\nspec: "+spec, "")
			assert.Contains(t, texts(errs), refusal, spec)
		}
	}
}

// What is left out is stored as it counts, so that kubectl get -o yaml shows what holds.
func TestDefaultsOfOwnKindsAreStored(t *testing.T) {
	for kindName, specs := range map[string][2]string{
		"MetricSource": {
			`{type: Prometheus, url: "https://p"}`,
			`{type: Prometheus, url: "https://p", limits: {maxConcurrent: 4, requestsPerSecond: 5, timeout: 10s, maxResponseBytes: 1048576}}`,
		},
		"AuditSink": {
			`{type: Webhook, webhook: {url: "https://siem"}}`, `{type: Webhook, webhook: {url: "https://siem", batch: 50}}`,
		},
		"StageAnalysis": {
			`{metrics: [{name: a, job: {namespace: jobs, fromCronJob: e2e}}, {name: b, success: "true", perCluster: {}, prometheus: {sourceRef: {name: p}, query: up}}]}`,
			`{metrics: [{name: a, count: 1, failureLimit: 0, inconclusiveLimit: 0, consecutiveErrorLimit: 4, consecutiveSuccessLimit: 0, job: {namespace: jobs, fromCronJob: e2e, timeout: 15m}},
			  {name: b, count: 1, failureLimit: 0, inconclusiveLimit: 0, consecutiveErrorLimit: 4, consecutiveSuccessLimit: 0, success: "true",
			   perCluster: {label: cluster, minPassing: 100%, missing: Inconclusive}, prometheus: {sourceRef: {name: p}, query: up}}]}`,
		},
		"PropagatedType": {"", "{propagation: Enabled}"},
		"RolloutHold":    {"{message: m}", "{message: m, starts: [Updates, FirstPlacements, Removals, Evictions], rollbacks: Gated}"},
		"RolloutWindow": {
			`{type: Deny, scope: Fleet, timeZone: UTC, monthly: [{week: First, day: Mon, start: "08:00", end: "10:00"}]}`,
			`{type: Deny, scope: Fleet, timeZone: UTC, starts: [Updates, FirstPlacements, Removals, Evictions], rollbacks: Gated,
			  monthly: [{week: First, day: Mon, offsetDays: 0, start: "08:00", end: "10:00"}]}`,
		},
	} {
		k := loadKind(t, kindName)
		object := func(spec string) string {
			text := "apiVersion: fleetflow.io/v1alpha1\nkind: " + kindName + "\nmetadata: {name: configmaps}\n"
			if spec != "" {
				text += "spec: " + strings.ReplaceAll(spec, "\n", " ")
			}
			return text
		}
		stored, errs := k.admit(t, object(specs[0]), "")
		require.Empty(t, texts(errs), kindName)
		written, errs := k.admit(t, object(specs[1]), "")
		require.Empty(t, texts(errs), kindName)
		assert.Equal(t, written["spec"], stored["spec"], kindName)
	}
}

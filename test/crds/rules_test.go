package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ruleCase is an object the API server shall admit, or refuse with a message.
type ruleCase struct {
	old     string // spec before, empty at creation
	spec    string
	refusal string // part of the message, empty if admitted
}

// run checks cases whose specs are written as YAML flow mappings.
func run(t *testing.T, kindName string, cases map[string]ruleCase) {
	t.Helper()
	k := loadKind(t, kindName)
	object := func(spec string) string {
		if spec == "" {
			return ""
		}
		return fmt.Sprintf("apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: %s\nmetadata: {name: example}\nspec: %s\n", kindName, spec)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, object(tc.spec), object(tc.old))
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
}

func TestRulesOfUpdateRun(t *testing.T) {
	spec := func(more string) string {
		return "{placementName: web, stagedRolloutStrategyName: three" + more + "}"
	}
	plain := spec("")
	initialize := spec(", state: Initialize")
	running := spec(", state: Run")
	stopped := spec(", state: Stop")
	run(t, "ClusterStagedUpdateRun", map[string]ruleCase{
		"may be created without a state":           {spec: plain},
		"may be created to initialize":             {spec: initialize},
		"may be created stopped":                   {spec: stopped},
		"may go from Initialize to Run":            {old: initialize, spec: running},
		"may go from Run to Stop":                  {old: running, spec: stopped},
		"may go from no state to Stop":             {old: plain, spec: stopped},
		"may go from Stop to Run":                  {old: stopped, spec: running},
		"does not lose Stop":                       {old: stopped, spec: plain, refusal: "state is missing"},
		"takes an empty snapshot index for none":   {old: spec(`, resourceSnapshotIndex: ""`), spec: plain},
		"may change nothing but state at any time": {old: running, spec: running},
	})
}

func TestNamesAreLimited(t *testing.T) {
	type limit struct {
		spec    string
		longest int
	}
	for kindName, named := range map[string]limit{
		"ClusterStagedUpdateRun":   {"{placementName: web, stagedRolloutStrategyName: three}", 63},
		"StagedUpdateRun":          {"{placementName: web, stagedRolloutStrategyName: three}", 63},
		"ClusterResourcePlacement": {"{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}]}", 63},
		"ResourcePlacement":        {"{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}]}", 63},
		"ClusterResourceOverride":  {clusterOverride("", clusterRole, patch("{op: remove, path: /rules/0}")), 63},
		"ResourceOverride": {"{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {overrideRules: [" +
			patch("{op: remove, path: /data/a}") + "]}}", 63},
		// fleet-member-<name> has to be the name of a namespace.
		"MemberCluster": {"{identity: {kind: ServiceAccount, name: agent, namespace: fleet-system}}", 50},
	} {
		t.Run(kindName, func(t *testing.T) {
			k := loadKind(t, kindName)
			object := "apiVersion: x/v1beta1\nkind: " + kindName + "\nmetadata: {name: %s}\nspec: " + named.spec
			_, errs := k.admit(t, fmt.Sprintf(object, strings.Repeat("a", named.longest)), "")
			assert.Empty(t, texts(errs))
			_, errs = k.admit(t, fmt.Sprintf(object, strings.Repeat("a", named.longest+1)), "")
			assert.Contains(t, texts(errs), "choose a shorter")
			_, errs = k.admit(t, fmt.Sprintf(object, strings.Repeat("a", 64)), "")
			assert.Contains(t, texts(errs), "63")
		})
	}
}

func TestRulesOfIdentities(t *testing.T) {
	identity := func(fields string) string { return "{identity: {name: jane@example.com, " + fields + "}}" }
	run(t, "MemberCluster", map[string]ruleCase{
		"a user may say its API group":        {spec: identity("kind: User, apiGroup: rbac.authorization.k8s.io")},
		"a user need not say its API group":   {spec: identity("kind: User")},
		"a user may have a namespace, unused": {spec: identity("kind: User, namespace: fleet-system")},
		"a group is like a user":              {spec: identity("kind: Group, apiGroup: rbac.authorization.k8s.io")},
		"a service account has a namespace":   {spec: identity("kind: ServiceAccount, namespace: fleet-system, apiGroup: ''")},
	})
}

func TestRulesOfUpdateStrategy(t *testing.T) {
	stage := func(fields string) string { return "{stages: [{name: canary, " + fields + "}]}" }
	cases := map[string]ruleCase{
		"a stage may have no selector and no tasks":  {spec: "{stages: [{name: all}]}"},
		"a stage's name has letters and digits only": {spec: "{stages: [{name: canary-1}]}", refusal: "spec.stages[0].name"},
		"after a stage may come a wait and an approval": {
			spec: stage("afterStageTasks: [{type: TimedWait, waitTime: 1h}, {type: Approval}]")},
		"an approval has no wait time": {spec: stage("afterStageTasks: [{type: Approval, waitTime: 1h}]"),
			refusal: "AfterStageTaskType is Approval, waitTime is not allowed: remove waitTime"},
		"an approval's wait time may be 0s, as older versions wrote it": {spec: stage("afterStageTasks: [{type: Approval, waitTime: 0s}]")},
		"no two tasks are of one type": {spec: stage("afterStageTasks: [{type: Approval}, {type: Approval}]"),
			refusal: "at most one task of each type"},
		"before a stage may come an approval": {spec: stage("beforeStageTasks: [{type: Approval}]")},
		"before a stage comes no timed wait": {spec: stage("beforeStageTasks: [{type: TimedWait, waitTime: 1h}]"),
			refusal: "BeforeStageTaskType cannot be TimedWait: use type Approval"},
		"before a stage an approval has no wait time": {spec: stage("beforeStageTasks: [{type: Approval, waitTime: 1h}]"),
			refusal: "BeforeStageTaskType is Approval, waitTime is not allowed"},
		"concurrency may be a number":           {spec: stage("maxConcurrency: 5")},
		"concurrency may be a percentage":       {spec: stage("maxConcurrency: 50%")},
		"concurrency is not nothing":            {spec: stage("maxConcurrency: 0"), refusal: "maxConcurrency must be at least 1"},
		"concurrency is not nothing percent":    {spec: stage("maxConcurrency: 0%"), refusal: "maxConcurrency"},
		"concurrency is not a number in quotes": {spec: stage("maxConcurrency: '5'"), refusal: "maxConcurrency"},
	}
	for _, wait := range []string{"0s", "1m", "1h30m", "1m0s", "1h0m0s", "1.5h", "0.5s", "1m0.5s"} {
		cases["a wait time may be "+wait] = ruleCase{spec: stage("afterStageTasks: [{type: TimedWait, waitTime: " + wait + "}]")}
	}
	for _, wait := range []string{"'1'", "1d", "-1m", "'1h 30m'", "h", "'01'"} {
		cases["a wait time is not "+wait] = ruleCase{
			spec: stage("afterStageTasks: [{type: TimedWait, waitTime: " + wait + "}]"), refusal: "waitTime"}
	}
	for _, field := range []string{"validFor", "startsBy"} {
		approval := func(value string) string {
			return stage("afterStageTasks: [{type: Approval, approval: {" + field + ": " + value + "}}]")
		}
		for _, value := range []string{"1m", "60s", "90m", "1h30m", "72h", "720h", "24h0m0s"} {
			cases["an approval has a "+field+" of "+value] = ruleCase{spec: approval(value)}
		}
		for _, value := range []string{"59s", "-24h", "0s", "'0'", "721h", "8760h", "30d", "1.5h", "99999999999h", "''"} {
			cases["an approval has no "+field+" of "+value] = ruleCase{spec: approval(value), refusal: field + " must be 1m to 720h: write it like "}
		}
		cases["an approval has no number as "+field] = ruleCase{spec: approval("5"), refusal: "spec.stages[0].afterStageTasks[0].approval." + field}
		cases["no other task has "+field] = ruleCase{spec: stage("afterStageTasks: [{type: TimedWait, waitTime: 1m, approval: {" + field + ": 1h}}]"),
			refusal: "approval is only valid for tasks of type Approval"}
	}
	cases["a strategy verifies the base"] = ruleCase{spec: "{verifyBase: true, stages: [{name: canary}]}"}
	cases["a strategy verifies the base or does not"] = ruleCase{spec: "{verifyBase: Always, stages: [{name: canary}]}", refusal: "spec.verifyBase"}
	// KubeFleet does not take these either. In the status of a run, which has a copy of its strategy, Go writes 500ms for 0.5s.
	for _, wait := range []string{"'0'", "500ms", "1s500ms", "1ms"} {
		cases["a wait time has no milliseconds, as in "+wait] = ruleCase{
			spec: stage("afterStageTasks: [{type: TimedWait, waitTime: " + wait + "}]"), refusal: "waitTime is written with the units h, m and s only: write 0.5s for 500ms, and 0s for 0"}
	}
	run(t, "ClusterStagedUpdateStrategy", cases)
	run(t, "StagedUpdateStrategy", cases)
}

func TestRulesOfPlacement(t *testing.T) {
	spec := func(more string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}]" + more + "}"
	}
	selector := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, " + fields + "}]}"
	}
	term := func(fields string) string {
		return spec(", policy: {affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{" + fields + "}]}}}}")
	}
	external := spec(", strategy: {type: External}")
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"may select by name":                {spec: selector("name: web")},
		"may select by label":               {spec: selector("labelSelector: {matchLabels: {a: b}}")},
		"may select by label with no name":  {spec: selector("name: '', labelSelector: {matchLabels: {a: b}}")},
		"without a policy is of PickAll":    {old: spec(""), spec: spec(", policy: {placementType: PickN, numberOfClusters: 1}"), refusal: "placement type is immutable"},
		"may get a policy of its type":      {old: spec(""), spec: spec(", policy: {}")},
		"may change how many are picked":    {old: spec(", policy: {placementType: PickN, numberOfClusters: 1}"), spec: spec(", policy: {placementType: PickN, numberOfClusters: 2}")},
		"may become External":               {old: spec(""), spec: external},
		"may change External's details":     {old: external, spec: spec(", strategy: {type: External, applyStrategy: {type: ServerSideApply}}")},
		"may limit by number and percent":   {spec: spec(", strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 50%}}")},
		"may tolerate a key":                {spec: spec(", policy: {tolerations: [{key: a, operator: Exists}]}")},
		"may tolerate everything":           {spec: spec(", policy: {tolerations: [{operator: Exists}]}")},
		"tolerates no empty key with Equal": {spec: spec(", policy: {tolerations: [{value: b}]}"), refusal: "operator must be Exists when key is empty"},
		"may select by property":            {spec: term("propertySelector: {matchExpressions: [{name: kubernetes-fleet.io/node-count, operator: Ge, values: ['5']}]}")},
	})
}

func TestSpecsThatNeverChange(t *testing.T) {
	const large = 2000
	resources := func(value string) string {
		item := "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '" + strings.Repeat("x", 400) + "'}}, "
		return "{selectedResources: [" + strings.Repeat(item, large) +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: '" + value + "'}, n: [1, 1.5, null]}]}"
	}
	kinds := map[string][2]string{
		"ClusterResourceSnapshot":         {resources("1"), resources("2")},
		"ClusterSchedulingPolicySnapshot": {"{policyHash: YQ==, policy: {placementType: PickAll}}", "{policyHash: Yg==, policy: {placementType: PickAll}}"},
		"ClusterApprovalRequest":          {"{parentStageRollout: a, targetStage: b}", "{parentStageRollout: a, targetStage: c}"},
	}
	for kindName, specs := range kinds {
		t.Run(kindName, func(t *testing.T) {
			run(t, kindName, map[string]ruleCase{
				"may be created":   {spec: specs[0]},
				"may stay":         {old: specs[0], spec: specs[0]},
				"may never change": {old: specs[0], spec: specs[1], refusal: "The spec field is immutable"},
			})
		})
	}
}

func TestDefaults(t *testing.T) {
	k := loadKind(t, "ClusterStagedUpdateRun")
	obj, errs := k.admit(t, "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ClusterStagedUpdateRun\nmetadata: {name: a}\nspec: {placementName: web, stagedRolloutStrategyName: three}", "")
	require.Empty(t, texts(errs))
	assert.NotContains(t, obj["spec"], "state", "a run without a state runs; nothing is written into it")

	k = loadKind(t, "ClusterResourcePlacement")
	obj, errs = k.admit(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: a}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  policy: {placementType: PickN, numberOfClusters: 1, topologySpreadConstraints: [{topologyKey: zone}], tolerations: [{key: a, value: b}]}
  strategy: {rollingUpdate: {}, applyStrategy: {}, deleteStrategy: {}}
`, "")
	require.Empty(t, texts(errs))
	assert.Equal(t, map[string]any{
		"resourceSelectors": []any{map[string]any{
			"group": "", "version": "v1", "kind": "Namespace", "name": "web", "selectionScope": "NamespaceWithResources"}},
		"policy": map[string]any{
			"placementType":             "PickN",
			"numberOfClusters":          int64(1),
			"topologySpreadConstraints": []any{map[string]any{"topologyKey": "zone", "maxSkew": int64(1), "whenUnsatisfiable": "DoNotSchedule"}},
			"tolerations":               []any{map[string]any{"key": "a", "value": "b", "operator": "Equal"}},
		},
		"strategy": map[string]any{
			"type":           "RollingUpdate",
			"rollingUpdate":  map[string]any{"maxUnavailable": "25%", "maxSurge": "25%", "unavailablePeriodSeconds": int64(60)},
			"applyStrategy":  map[string]any{"type": "ClientSideApply", "comparisonOption": "PartialComparison", "whenToApply": "Always", "whenToTakeOver": "Always"},
			"deleteStrategy": map[string]any{"propagationPolicy": "Delete"},
		},
		"revisionHistoryLimit": int64(10),
		"statusReportingScope": "ClusterScopeOnly",
	}, obj["spec"])
}

func TestConditionsMayBeSetTheWayTheDocumentsDo(t *testing.T) {
	k := loadKind(t, "ClusterApprovalRequest")
	_, errs := k.admit(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: a}
spec: {parentStageRollout: a, targetStage: b}
status:
  conditions:
  - {type: Approved, status: "True", reason: lgtm, message: lgtm, lastTransitionTime: "2025-01-01T00:00:00Z", observedGeneration: 1}
  approval: {username: jane, at: "2025-01-01T00:00:00Z", channel: Kubectl, verified: true}
`, "")
	assert.Empty(t, texts(errs))
}

func TestRulesOfWork(t *testing.T) {
	manifest := func(fields string) string { return "{workload: {manifests: [" + fields + "]}}" }
	run(t, "Work", map[string]ruleCase{
		"may be empty":                     {spec: "{}"},
		"carries any object":               {spec: manifest("{apiVersion: x.io/v1, kind: X, metadata: {name: 'system:x'}, anything: [1, {a: null}]}")},
		"carries an object without a name": {spec: manifest("{apiVersion: v1, kind: Pod, metadata: {generateName: x-}}")},
	})
}

func TestManifestsAreKeptAsTheyAre(t *testing.T) {
	k := loadKind(t, "Work")
	obj, errs := k.admit(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: Work
metadata: {name: a}
spec: {workload: {manifests: [{apiVersion: x.io/v1, kind: X, metadata: {name: a}, anything: {deep: [1, true]}}]}, unknown: 1}
`, "")
	require.Empty(t, texts(errs))
	assert.Equal(t, map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
		"apiVersion": "x.io/v1", "kind": "X", "metadata": map[string]any{"name": "a"},
		"anything": map[string]any{"deep": []any{int64(1), true}},
	}}}}, obj["spec"])
}

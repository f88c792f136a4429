package crds

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfActionsAndRollbacks(t *testing.T) {
	spec := func(more string) string {
		return "{placementName: web, stagedRolloutStrategyName: three" + more + "}"
	}
	action := func(fields string) string { return spec(", clusterActions: [{" + fields + "}]") }
	plain := spec("")
	back := spec(", rollbackOf: earlier")
	run(t, "ClusterStagedUpdateRun", map[string]ruleCase{
		"a run may be asked to skip a cluster":       {old: plain, spec: action("cluster: a, action: Skip")},
		"a run may be asked to retry a cluster":      {old: plain, spec: action("cluster: a, action: Retry, attempt: 2")},
		"an action may be changed":                   {old: action("cluster: a, action: Skip"), spec: action("cluster: a, action: Retry")},
		"an action may be taken back":                {old: action("cluster: a, action: Skip"), spec: plain},
		"an action names its cluster":                {spec: action("action: Skip"), refusal: "cluster: Required value"},
		"an action's cluster has a name":             {spec: action("cluster: '', action: Skip"), refusal: "clusterActions[0].cluster"},
		"an action says what to do":                  {spec: action("cluster: a"), refusal: "action: Required value"},
		"attempts are counted from 1":                {spec: action("cluster: a, action: Retry, attempt: 0"), refusal: "attempt"},
		"a run may roll another back":                {spec: back},
		"a run does not begin to roll back":          {old: plain, spec: back, refusal: "rollbackOf is immutable"},
		"a run does not cease to roll back":          {old: back, spec: plain, refusal: "rollbackOf is immutable"},
		"a rollback's index may be empty":            {spec: spec(`, rollbackOf: earlier, resourceSnapshotIndex: ""`)},
		"a rollback names what it rolls back":        {spec: spec(", rollbackOf: ''"), refusal: "rollbackOf"},
		"a rollback may change its actions and more": {old: back, spec: spec(", rollbackOf: earlier, state: Stop, clusterActions: [{cluster: a, action: Skip}]")},
	})
}

func TestRulesOfSamples(t *testing.T) {
	sample := func(fields string) string { return "{stages: [{name: canary, sample: " + fields + "}]}" }
	run(t, "ClusterStagedUpdateStrategy", map[string]ruleCase{
		"a stage may draw its clusters": {spec: sample("{percent: 5}")},
		"a seed says which":             {spec: sample("{percent: 100, seed: '2026'}")},
		"it draws at least one percent": {spec: sample("{percent: 0}"), refusal: "percent"},
		"it draws no more than all":     {spec: sample("{percent: 101}"), refusal: "percent"},
		"it says how many":              {spec: sample("{seed: a}"), refusal: "percent: Required value"},
	})
}

func TestActionsOfARunThatHasEndedStay(t *testing.T) {
	object := func(state, more, status string) string {
		return "apiVersion: x/v1beta1\nkind: ClusterStagedUpdateRun\nmetadata: {name: example}\n" +
			"spec: {placementName: web, stagedRolloutStrategyName: three, state: " + state + more + "}\n" +
			"status: {conditions: [{type: Succeeded, status: '" + status + "', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}]}"
	}
	skip := ", clusterActions: [{cluster: a, action: Skip}]"
	retry := ", clusterActions: [{cluster: a, action: Retry}]"
	k := loadKind(t, "ClusterStagedUpdateRun")
	for sentence, tc := range map[string]struct {
		before, after, status string
		refused               bool
	}{
		"one that succeeded gets no action":            {after: skip, status: "True", refused: true},
		"one that failed gets no action":               {after: skip, status: "False", refused: true},
		"one that failed keeps its action":             {before: skip, after: retry, status: "False", refused: true},
		"one that failed may be written as it is":      {before: skip, after: skip, status: "False"},
		"one of which nothing is known gets an action": {after: skip, status: "Unknown"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, errs := k.admit(t, object("Run", tc.after, tc.status), object("Stop", tc.before, tc.status))
			if tc.refused {
				assert.Contains(t, texts(errs), "the run has ended: create another run")
				return
			}
			assert.Empty(t, texts(errs))
		})
	}
}

func TestRulesOfBudgetsAndMembership(t *testing.T) {
	stage := func(fields string) string { return "{stages: [{name: canary, " + fields + "}]}" }
	budget := func(fields string) string { return stage("failureBudget: {" + fields + "}") }
	more := func(fields string) string { return "{stages: [{name: canary}], " + fields + "}" }
	stages := func(n int) string {
		list := ""
		for i := range n {
			list += "{name: s" + string(rune('a'+i/26)) + string(rune('a'+i%26)) + "},"
		}
		return "{unassignedClusters: Last, stages: [" + list + "]}"
	}
	cases := map[string]ruleCase{
		"a budget may be empty":                      {spec: budget("")},
		"a budget may be a number":                   {spec: budget("maxFailures: 2, onExceeded: Pause")},
		"a budget may be nothing":                    {spec: budget("maxFailures: 0, onExceeded: Abort")},
		"a budget may be a percentage":               {spec: budget("maxFailures: 10%, onExceeded: Rollback")},
		"a budget may be no percent":                 {spec: budget("maxFailures: 0%, onExceeded: Wait")},
		"a budget is no more than all":               {spec: budget("maxFailures: 101%"), refusal: "maxFailures"},
		"a budget is not a number in quotes":         {spec: budget("maxFailures: '1'"), refusal: "maxFailures"},
		"there is no other action beyond the budget": {spec: budget("onExceeded: Retry"), refusal: `supported values: "Wait", "Pause", "Abort", "Rollback"`},
		"a cluster may fail as it stalls":            {spec: budget("failOn: [Stalled]")},
		"or for nothing but its deadline":            {spec: budget("failOn: []")},
		"it does not fail for anything else":         {spec: budget("failOn: [NotTrackable]"), refusal: `supported values: "Stalled"`},
		"nor twice for one thing":                    {spec: budget("failOn: [Stalled, Stalled]"), refusal: "failOn"},
		"a change of members may end the run":        {spec: more("onMembershipChange: Abort")},
		"or the run may go on":                       {spec: more("onMembershipChange: Continue")},
		"clusters in no stage may fail the run":      {spec: more("unassignedClusters: Fail")},
		"clusters in no stage may be ignored":        {spec: more("unassignedClusters: Ignore")},
		"clusters in no stage may come last":         {spec: more("unassignedClusters: Last")},
		"without it, a stage may have that name":     {spec: "{stages: [{name: unassigned}]}"},
		"there is room for the stage to be added":    {spec: stages(30)},
		"a stage may name windows":                   {spec: stage("windows: [eu-nights, freeze.2027]")},
		"names are not empty":                        {spec: stage("windows: ['']"), refusal: "windows needs names of RolloutWindows, such as eu-nights"},
		"names are those of objects":                 {spec: stage("windows: [EU nights]"), refusal: "windows needs names of RolloutWindows, such as eu-nights"},
		"each window is named once":                  {spec: stage("windows: [a, a]"), refusal: "Duplicate value"},
		"no windows are left out":                    {spec: stage("windows: []"), refusal: "should have at least 1 items"},
		"held clusters may be skipped":               {spec: more("heldClusters: Skip")},
		"or waited for":                              {spec: more("heldClusters: Wait")},
		"and nothing between":                        {spec: more("heldClusters: Sometimes"), refusal: `supported values: "Skip", "Wait"`},
		"one stage more is too many":                 {spec: stages(31), refusal: "use at most 30 stages"},
	}
	for _, deadline := range []string{"1", "600", "31536000"} {
		cases["a deadline may be "+deadline] = ruleCase{spec: stage("clusterDeadlineSeconds: " + deadline)}
	}
	for _, deadline := range []string{"0", "-1", "'5'", "10m", "1.5", "31536001"} {
		cases["a deadline is not "+deadline] = ruleCase{spec: stage("clusterDeadlineSeconds: " + deadline), refusal: "clusterDeadlineSeconds"}
	}
	for _, time := range []string{"0", "30", "604800"} {
		cases["a cluster may have to be available for "+time] = ruleCase{spec: stage("minReadySeconds: " + time)}
	}
	for _, time := range []string{"-1", "31536000", "30s"} {
		cases["a cluster does not have to be available for "+time] = ruleCase{spec: stage("minReadySeconds: " + time), refusal: "minReadySeconds"}
	}
	cases["the time is a part of the deadline"] = ruleCase{spec: stage("minReadySeconds: 30, clusterDeadlineSeconds: 31")}
	cases["the time is longer than the deadline"] = ruleCase{spec: stage("minReadySeconds: 600, clusterDeadlineSeconds: 300"),
		refusal: "minReadySeconds must be less than clusterDeadlineSeconds, of which it is a part: make the deadline longer, or minReadySeconds less"}
	run(t, "ClusterStagedUpdateStrategy", cases)
}

package crds

import (
	"testing"
)

func TestRulesOfTasksThatPullImages(t *testing.T) {
	stage := func(tasks string) string { return "{stages: [{name: canary, " + tasks + "}]}" }
	cases := map[string]ruleCase{
		"images come before a stage":         {spec: stage("beforeStageTasks: [{type: PrePull}]")},
		"they may have a time":               {spec: stage("beforeStageTasks: [{type: PrePull, waitTime: 10s}]")},
		"they may have two hours":            {spec: stage("beforeStageTasks: [{type: PrePull, waitTime: 2h0m0s}]")},
		"they have no less than ten seconds": {spec: stage("beforeStageTasks: [{type: PrePull, waitTime: 9s}]"), refusal: "waitTime of a PrePull must be 10s to 2h"},
		"they have no more than two hours":   {spec: stage("beforeStageTasks: [{type: PrePull, waitTime: 3h}]"), refusal: "waitTime of a PrePull must be 10s to 2h"},
		"their time is one":                  {spec: stage("beforeStageTasks: [{type: PrePull, waitTime: soon}]"), refusal: "waitTime must be 0"},
		"they do not come after a stage":     {spec: stage("afterStageTasks: [{type: PrePull}]"), refusal: "a Rehearsal or PrePull comes before a stage: move it to beforeStageTasks"},
		"nor during it":                      {spec: stage("duringStageTasks: [{type: PrePull}]"), refusal: "one task of type Analysis only"},
		"all types come before a stage": {spec: stage("beforeStageTasks: [{type: PrePull}, {type: Rehearsal}, {type: Analysis, analysis: {templates: [{name: a}]}}, " +
			"{type: Approval, startsAfter: [PrePull, Rehearsal, Analysis]}]")},
		"images are pulled once": {spec: stage("beforeStageTasks: [{type: PrePull}, {type: PrePull}]"), refusal: "at most one task of each type"},
	}
	run(t, "StagedUpdateStrategy", cases)
	run(t, "ClusterStagedUpdateStrategy", cases)
}

func TestRulesOfRehearsalsThatPullImages(t *testing.T) {
	cases := map[string]ruleCase{
		"clusters pull":                     {spec: "{placementName: web, pullImages: {}}"},
		"they have two hours":               {spec: "{placementName: web, timeout: 2h, pullImages: {clustersAtOnce: 100}}"},
		"they have no more":                 {spec: "{placementName: web, timeout: 3h, pullImages: {}}", refusal: "timeout must be 1s to 30m, with pullImages 1s to 2h"},
		"without images there is less time": {spec: "{placementName: web, timeout: 31m}", refusal: "timeout must be 1s to 30m without pullImages"},
		"a time is one":                     {spec: "{placementName: web, timeout: soon}", refusal: "write it like 30s or 5m"},
		"some pull":                         {spec: "{placementName: web, pullImages: {clustersAtOnce: -1}}", refusal: "clustersAtOnce"},
		"not all pull at once":              {spec: "{placementName: web, pullImages: {clustersAtOnce: 101}}", refusal: "clustersAtOnce"},
	}
	run(t, "Rehearsal", cases)
	run(t, "ClusterRehearsal", cases)
}

func TestRulesOfQuestionsForImages(t *testing.T) {
	question := func(fields string) string {
		return "{deadline: '2030-01-01T00:00:00Z', askedFor: {kind: ClusterRehearsal, name: web, uid: '1'}, " + fields + "}"
	}
	run(t, "MemberQuestion", map[string]ruleCase{
		"it has images":          {spec: question("type: PullImages, pullImages: {revision: '1', pods: [{namespace: web, images: [a:1]}]}")},
		"it has what it asks":    {spec: question("type: PullImages"), refusal: "a question of type PullImages needs pullImages"},
		"another has no images":  {spec: question("type: Rehearse, rehearse: {revision: '1'}, pullImages: {revision: '1'}"), refusal: "no other question has it"},
		"nor has it a rehearsal": {spec: question("type: PullImages, pullImages: {revision: '1'}, rehearse: {revision: '1'}"), refusal: "a question of type Rehearse needs rehearse, and no other"},
		"Pods have images":       {spec: question("type: PullImages, pullImages: {revision: '1', pods: [{namespace: web, images: []}]}"), refusal: "images"},
	})
}

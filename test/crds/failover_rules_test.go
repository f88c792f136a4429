package crds

import (
	"fmt"
	"strings"
	"testing"
)

func TestRulesOfFailover(t *testing.T) {
	placement := func(policy, strategy string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {" + policy + "}, strategy: {" + strategy + "}}"
	}
	const (
		pickN  = "placementType: PickN, numberOfClusters: 1"
		groups = "affinityGroups: [{name: local, clusterSelector: {clusterSelectorTerms: []}}]"
		needs  = "strategy.failover needs clusters to go to: set policy.placementType to PickN, or policy.affinityGroups that do not overflow, or divide replicas with policy.replicaScheduling"
		all    = "placementType: PickAll"
		shares = all + ", replicaScheduling: [{type: Duplicated, selector: {kind: Job}}, {division: Weighted}]"
		ready  = "replicas go from a cluster of PickAll only as others of them are ready elsewhere"
		room   = "purgeMode Gracefully of strategy.failover needs room for the replacement: set rollingUpdate.maxSurge to at least 1"
	)
	application := func(fields string) string { return "failover: {application: {" + fields + "}}" }
	cluster := func(fields string) string { return "failover: {cluster: {" + fields + "}}" }
	run(t, "ResourcePlacement", map[string]ruleCase{
		"PickN may fail over":                    {spec: placement(pickN, cluster(""))},
		"a policy with groups may":               {spec: placement(groups, cluster("notReadySeconds: 0, purgeMode: Gracefully, gracePeriodSeconds: 60"))},
		"PickAll has nowhere to go":              {spec: placement("placementType: PickAll", cluster("")), refusal: needs},
		"but its replicas have":                  {spec: placement(shares, "failover: {application: {purgeMode: Gracefully}, cluster: {notReadySeconds: 60}}")},
		"not those that are on all of them":      {spec: placement(all+", replicaScheduling: [{type: Duplicated}]", cluster("")), refusal: needs},
		"those of groups that overflow have":     {spec: placement(groups+", affinityGroupMode: Overflow, replicaScheduling: [{division: Aggregated}]", cluster(""))},
		"these go as others are ready":           {spec: placement(shares, cluster("purgeMode: Directly")), refusal: ready},
		"those of applications, too":             {spec: placement(shares, application("purgeMode: Never")), refusal: ready},
		"however long that takes":                {spec: placement(shares, application("gracePeriodSeconds: 60")), refusal: ready},
		"also for clusters":                      {spec: placement(groups+", affinityGroupMode: Overflow, replicaScheduling: [{division: Aggregated}]", cluster("gracePeriodSeconds: 60")), refusal: ready},
		"a group goes as a whole, even so":       {spec: placement(groups+", replicaScheduling: [{division: Weighted}]", cluster("purgeMode: Directly"))},
		"nor has PickFixed":                      {spec: placement("placementType: PickFixed, clusterNames: [a]", cluster("")), refusal: needs},
		"nor has a placement without a policy":   {spec: "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], strategy: {failover: {cluster: {}}}}", refusal: needs},
		"External is not for failover":           {spec: placement(pickN, "type: External, "+cluster("")), refusal: "failover is not for type External"},
		"a failover is one of something":         {spec: placement(pickN, "failover: {}"), refusal: "failover says nothing without application or cluster"},
		"applications may fail over":             {spec: placement(pickN, application("decisionConditions: {tolerationSeconds: 0, initialTolerationSeconds: 60}, purgeMode: Gracefully, gracePeriodSeconds: 60"))},
		"and clusters as well":                   {spec: placement(groups, "failover: {application: {}, cluster: {}}")},
		"applications of PickAll may not":        {spec: placement("placementType: PickAll", application("")), refusal: needs},
		"nor under External":                     {spec: placement(pickN, "type: External, "+application("")), refusal: "failover is not for type External"},
		"nor if only differences are reported":   {spec: placement(pickN, application("")+", applyStrategy: {type: ReportDiff}"), refusal: "failover.application is not for applyStrategy type ReportDiff"},
		"clusters may then":                      {spec: placement(pickN, cluster("")+", applyStrategy: {type: ReportDiff}")},
		"Gracefully needs room for applications": {spec: placement(pickN, application("")+", rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"), refusal: room},
		"also if that of clusters does not":      {spec: placement(pickN, "failover: {application: {}, cluster: {purgeMode: Directly}}, rollingUpdate: {maxSurge: 0%, maxUnavailable: 1}"), refusal: room},
		"and the other way round":                {spec: placement(pickN, "failover: {application: {purgeMode: Never}, cluster: {}}, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"), refusal: room},
		"Never needs none":                       {spec: placement(pickN, application("purgeMode: Never")+", rollingUpdate: {maxSurge: 0, maxUnavailable: 1}")},
		"nor does Directly of both":              {spec: placement(pickN, "failover: {application: {purgeMode: Directly}, cluster: {purgeMode: Directly}}, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}")},
		"Never has no grace period":              {spec: placement(pickN, application("purgeMode: Never, gracePeriodSeconds: 5")), refusal: "gracePeriodSeconds is only for purgeMode Gracefully"},
		"no toleration is negative":              {spec: placement(pickN, application("decisionConditions: {tolerationSeconds: -1}")), refusal: "tolerationSeconds"},
		"Gracefully needs room":                  {spec: placement(pickN, cluster("")+", rollingUpdate: {maxSurge: 0, maxUnavailable: 1}"), refusal: room},
		"as a percentage, too":                   {spec: placement(pickN, cluster("purgeMode: Gracefully")+", rollingUpdate: {maxSurge: 0%, maxUnavailable: 1}"), refusal: room},
		"a surge of one is enough":               {spec: placement(pickN, cluster("")+", rollingUpdate: {maxSurge: 1, maxUnavailable: 0}")},
		"Directly needs none":                    {spec: placement(pickN, cluster("purgeMode: Directly")+", rollingUpdate: {maxSurge: 0, maxUnavailable: 1}")},
		"Directly has no grace period":           {spec: placement(pickN, cluster("purgeMode: Directly, gracePeriodSeconds: 5")), refusal: "gracePeriodSeconds is only for purgeMode Gracefully"},
		"a grace period is some time":            {spec: placement(pickN, cluster("gracePeriodSeconds: 0")), refusal: "gracePeriodSeconds"},
		"another mode":                           {spec: placement(pickN, cluster("purgeMode: Never")), refusal: `supported values: "Gracefully", "Directly"`},
		"no time is negative":                    {spec: placement(pickN, cluster("notReadySeconds: -1")), refusal: "notReadySeconds"},
		"a taint may be tolerated for some time": {spec: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 0}]", "")},
		"only NoExecute is":                      {spec: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}]", ""), refusal: "tolerationSeconds is only for effect NoExecute"},
		"not every effect":                       {spec: placement(pickN+", tolerations: [{key: a, operator: Exists, tolerationSeconds: 1}]", ""), refusal: "tolerationSeconds is only for effect NoExecute"},
		"not for less than no time":              {spec: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: -1}]", ""), refusal: "tolerationSeconds"},
		"the seconds may change":                 {old: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]", ""), spec: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 50}]", "")},
		"the rest of a toleration may not":       {old: placement(pickN+", tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]", ""), spec: placement(pickN+", tolerations: [{key: b, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]", ""), refusal: "only additions to tolerations are allowed"},
	})
	const job = "{aliasLabelName: state.example.com/job, jsonPath: '{.jobStatus.jobID}'}"
	preserve := func(rules string) string { return "purgeMode: Directly, statePreservation: {rules: [" + rules + "]}" }
	rule := func(alias, path string) string { return "{aliasLabelName: '" + alias + "', jsonPath: '" + path + "'}" }
	const (
		direct   = "statePreservation is only for purgeMode Directly, with which what is left is gone before its replacement is there: set purgeMode to Directly, or remove statePreservation"
		one      = "statePreservation of strategy.failover needs exactly one cluster whose values count: set policy.placementType to PickN and policy.numberOfClusters to 1, or remove statePreservation"
		noLabel  = "aliasLabelName is not the name of a label"
		reserved = "aliasLabelName has a prefix that is reserved for the fleet or for Kubernetes"
		noPath   = "jsonPath is not one path in braces, without .. and commas"
	)
	eleven := strings.Repeat(job+", ", 10) + job
	for i := range 11 {
		eleven = strings.Replace(eleven, "/job,", fmt.Sprintf("/job%d,", i), 1)
	}
	run(t, "ResourcePlacement", map[string]ruleCase{
		"state may be preserved":                {spec: placement(pickN, cluster(preserve(job)))},
		"that of applications, too":             {spec: placement(pickN, "failover: {application: {"+preserve(job)+"}, cluster: {"+preserve(job)+"}}")},
		"in groups as well":                     {spec: placement(pickN+", "+groups, application(preserve(job)))},
		"by what Karmada has":                   {spec: placement(pickN, application(preserve(rule("application.karmada.io/failover-jobid", "{ .jobStatus.jobID }"))))},
		"from an element of a list":             {spec: placement(pickN, application(preserve(rule("ready", `{.conditions[?(@.type=="Ready")].status}`))))},
		"Gracefully both copies are there":      {spec: placement(pickN, cluster("purgeMode: Gracefully, statePreservation: {rules: ["+job+"]}")), refusal: direct},
		"which is so by default":                {spec: placement(pickN, application("statePreservation: {rules: ["+job+"]}")), refusal: direct},
		"with Never, too":                       {spec: placement(pickN, application("purgeMode: Never, statePreservation: {rules: ["+job+"]}")), refusal: direct},
		"two clusters may say different things": {spec: placement("placementType: PickN, numberOfClusters: 2", cluster(preserve(job))), refusal: one},
		"as may all of a group":                 {spec: placement(groups, application(preserve(job))), refusal: one},
		"rules are some":                        {spec: placement(pickN, cluster(preserve(""))), refusal: "should have at least 1 items"},
		"at most ten":                           {spec: placement(pickN, cluster(preserve(eleven))), refusal: "must have at most 10 items"},
		"each for another label":                {spec: placement(pickN, cluster(preserve(job+", "+job))), refusal: "Duplicate value"},
		"a label has a name":                    {spec: placement(pickN, cluster(preserve(rule("a b", "{.a}")))), refusal: noLabel},
		"of at most 63 characters":              {spec: placement(pickN, cluster(preserve(rule(strings.Repeat("a", 64), "{.a}")))), refusal: noLabel},
		"none of the fleet":                     {spec: placement(pickN, cluster(preserve(rule("kubernetes-fleet.io/parent-CRP", "{.a}")))), refusal: reserved},
		"nor of Kubernetes":                     {spec: placement(pickN, cluster(preserve(rule("pod-security.kubernetes.io/enforce", "{.a}")))), refusal: reserved},
		"a path has braces":                     {spec: placement(pickN, cluster(preserve(rule("a", ".a")))), refusal: noPath},
		"and nothing beside them":               {spec: placement(pickN, cluster(preserve(rule("a", "id {.a}")))), refusal: noPath},
		"there is one":                          {spec: placement(pickN, cluster(preserve(rule("a", "{.a}{.b}")))), refusal: noPath},
		"which goes down step by step":          {spec: placement(pickN, cluster(preserve(rule("a", "{..a}")))), refusal: noPath},
		"to one value":                          {spec: placement(pickN, cluster(preserve(`{aliasLabelName: a, jsonPath: "{[0,1]}"}`))), refusal: noPath},
	})
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"state of one cluster may be preserved": {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {" + pickN + "}, strategy: {failover: {cluster: {" + preserve(job) + "}}}}"},
		"PickN may fail over":                   {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {" + pickN + "}, strategy: {failover: {cluster: {notReadySeconds: 60}}}}"},
		"PickAll has nowhere to go":             {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], strategy: {failover: {cluster: {}}}}", refusal: needs},
	})
	run(t, "MemberCluster", map[string]ruleCase{
		"a taint may say since when it is there": {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoExecute, timeAdded: '2026-01-02T03:04:05Z'}]}"},
		"only one that moves something":          {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoSchedule, timeAdded: '2026-01-02T03:04:05Z'}]}", refusal: "timeAdded is only for effect NoExecute"},
		"not in words":                           {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoExecute, timeAdded: yesterday}]}", refusal: "timeAdded"},
	})
}

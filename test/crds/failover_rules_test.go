package crds

import "testing"

func TestRulesOfFailover(t *testing.T) {
	placement := func(policy, strategy string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {" + policy + "}, strategy: {" + strategy + "}}"
	}
	const (
		pickN  = "placementType: PickN, numberOfClusters: 1"
		groups = "affinityGroups: [{name: local, clusterSelector: {clusterSelectorTerms: []}}]"
		needs  = "strategy.failover needs clusters to go to: set policy.placementType to PickN, or policy.affinityGroups that do not overflow"
		room   = "purgeMode Gracefully of strategy.failover needs room for the replacement: set rollingUpdate.maxSurge to at least 1"
	)
	application := func(fields string) string { return "failover: {application: {" + fields + "}}" }
	cluster := func(fields string) string { return "failover: {cluster: {" + fields + "}}" }
	run(t, "ResourcePlacement", map[string]ruleCase{
		"PickN may fail over":                    {spec: placement(pickN, cluster(""))},
		"a policy with groups may":               {spec: placement(groups, cluster("notReadySeconds: 0, purgeMode: Gracefully, gracePeriodSeconds: 60"))},
		"PickAll has nowhere to go":              {spec: placement("placementType: PickAll", cluster("")), refusal: needs},
		"nor have groups that overflow":          {spec: placement(groups+", affinityGroupMode: Overflow, replicaScheduling: [{division: Aggregated}]", cluster("")), refusal: needs},
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
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"PickN may fail over":       {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: {" + pickN + "}, strategy: {failover: {cluster: {notReadySeconds: 60}}}}"},
		"PickAll has nowhere to go": {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], strategy: {failover: {cluster: {}}}}", refusal: needs},
	})
	run(t, "MemberCluster", map[string]ruleCase{
		"a taint may say since when it is there": {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoExecute, timeAdded: '2026-01-02T03:04:05Z'}]}"},
		"only one that moves something":          {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoSchedule, timeAdded: '2026-01-02T03:04:05Z'}]}", refusal: "timeAdded is only for effect NoExecute"},
		"not in words":                           {spec: "{identity: {kind: User, name: a}, taints: [{key: a, effect: NoExecute, timeAdded: yesterday}]}", refusal: "timeAdded"},
	})
}

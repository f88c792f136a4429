package crds

import "testing"

func TestRulesOfReplicaScheduling(t *testing.T) {
	policy := func(rules string) string { return placementWith("{replicaScheduling: [" + rules + "]}") }
	clusters := func(entries string) string { return policy("{clusters: [" + entries + "]}") }
	const (
		all   = "clusterSelector: {clusterSelectorTerms: []}"
		named = "clusterSelector: {clusterSelectorTerms: [{clusterNames: [a]}]}"
		noOne = "no cluster could get a replica"
		last  = "an entry of clusters with empty clusterSelectorTerms matches every cluster"
	)
	cases := map[string]ruleCase{
		"a rule may say nothing":            {spec: policy("{}")},
		"a rule may say everything":         {spec: policy("{selector: {group: apps, kind: Deployment, namespace: web, name: front}, type: Divided, clusters: [{" + named + ", weight: 2, minReplicas: 1, maxReplicas: 4}, {" + all + "}], totalReplicas: 9, rebalance: Always, emptyClusters: Drop}")},
		"rules go with an empty list":       {old: policy("{selector: {kind: Job}}, {}"), spec: policy("")},
		"rules do not go by themselves":     {old: policy("{selector: {kind: Job}}, {}"), spec: placementWith("{}"), refusal: "policy.replicaScheduling is missing"},
		"PickFixed may divide":              {spec: placementWith("{placementType: PickFixed, clusterNames: [a], replicaScheduling: [{}]}")},
		"some may be left whole":            {spec: policy("{selector: {name: front}, type: Duplicated}, {}")},
		"what is left whole is not divided": {spec: policy("{type: Duplicated, rebalance: Always}"), refusal: "a rule of type Duplicated divides nothing: remove division, dynamicWeight, clusters, totalReplicas, rebalance and emptyClusters"},
		"nor has it a total":                {spec: policy("{type: Duplicated, totalReplicas: 3}"), refusal: "a rule of type Duplicated divides nothing"},
		"nor does it aggregate":             {spec: policy("{type: Duplicated, division: Aggregated}"), refusal: "a rule of type Duplicated divides nothing"},
		"nor is it weighed":                 {spec: policy("{type: Duplicated, dynamicWeight: AvailableReplicas}"), refusal: "a rule of type Duplicated divides nothing"},
		"weights may follow the room":       {spec: policy("{dynamicWeight: AvailableReplicas, rebalance: Always, clusters: [{" + named + ", minReplicas: 1, maxReplicas: 4}, {" + all + "}]}")},
		"and say that they are weights":     {spec: policy("{division: Weighted, dynamicWeight: AvailableReplicas}")},
		"replicas may be aggregated":        {spec: policy("{division: Aggregated, clusters: [{" + all + ", maxReplicas: 4}]}")},
		"weights may be said to count":      {spec: policy("{division: Weighted, clusters: [{" + all + ", weight: 4}]}")},
		"an aggregation weighs nothing":     {spec: policy("{division: Aggregated, dynamicWeight: AvailableReplicas}"), refusal: "dynamicWeight weighs clusters, which division Aggregated does not: remove dynamicWeight, or set division to Weighted"},
		"room or weights, not both":         {spec: policy("{dynamicWeight: AvailableReplicas, clusters: [{" + named + ", weight: 2}]}"), refusal: "the room that clusters have decides in place of their weights: remove weight of the entries of clusters"},
		"an aggregation has no weights":     {spec: policy("{division: Aggregated, clusters: [{" + all + "}, {" + named + ", weight: 2}]}"), refusal: "the room that clusters have decides in place of their weights"},
		"other divisions do not exist":      {spec: policy("{division: Even}"), refusal: `supported values: "Weighted", "Aggregated"`},
		"other dynamic weights do not":      {spec: policy("{dynamicWeight: Load}"), refusal: `supported values: "AvailableReplicas"`},
		"other types do not exist":          {spec: policy("{type: Aggregated}"), refusal: `supported values: "Duplicated", "Divided"`},
		"only some kinds are divided":       {spec: policy("{selector: {kind: DaemonSet}}"), refusal: "replicas of kind DaemonSet cannot be divided: set selector.kind to Deployment"},
		"any kind may be left whole":        {spec: policy("{selector: {kind: DaemonSet}, type: Duplicated}")},
		"two rules for the same":            {spec: policy("{selector: {kind: Job}}, {selector: {kind: Job}, totalReplicas: 3}"), refusal: "two rules of replicaScheduling have the same selector"},
		"a selector selects":                {spec: policy("{selector: {}}"), refusal: "should have at least 1 properties"},
		"two rules for all":                 {spec: policy("{}, {totalReplicas: 3}"), refusal: "two rules of replicaScheduling have the same selector"},
		"rules may overlap":                 {spec: policy("{selector: {kind: Job}}, {selector: {namespace: web}}, {}")},
		"rules differ in what they name":    {spec: policy("{selector: {kind: Job, name: a}}, {selector: {kind: Job, name: b}}, {selector: {kind: Job, namespace: a}}, {selector: {kind: Job}}")},
		"all weights 0":                     {spec: clusters("{" + named + ", weight: 0}, {" + all + ", weight: 0, minReplicas: 0}"), refusal: noOne},
		"all weights 0 but a minimum":       {spec: clusters("{" + named + ", weight: 0}, {" + all + ", weight: 0, minReplicas: 1}")},
		"no room anywhere":                  {spec: clusters("{" + all + ", maxReplicas: 0}"), refusal: noOne},
		"no clusters at all":                {spec: clusters(""), refusal: "should have at least 1 items"},
		"minimum above maximum":             {spec: clusters("{" + all + ", minReplicas: 5, maxReplicas: 2}"), refusal: "minReplicas must not be above maxReplicas: lower minReplicas, or raise maxReplicas"},
		"minimum and maximum are the same":  {spec: clusters("{" + all + ", minReplicas: 2, maxReplicas: 2}")},
		"a total below the minima":          {spec: policy("{totalReplicas: 7, clusters: [{" + named + ", minReplicas: 4}, {" + all + ", minReplicas: 4}]}"), refusal: "totalReplicas is less than the sum of minReplicas"},
		"a total of the minima":             {spec: policy("{totalReplicas: 8, clusters: [{" + named + ", minReplicas: 4}, {" + all + ", minReplicas: 4}]}")},
		"a total of 0":                      {spec: policy("{totalReplicas: 0}")},
		"a total below 0":                   {spec: policy("{totalReplicas: -1}"), refusal: "should be greater than or equal to 0"},
		"an entry for all comes last":       {spec: clusters("{" + all + "}, {" + named + "}"), refusal: last},
		"an entry for all comes once":       {spec: clusters("{" + all + "}, {" + all + "}"), refusal: last},
		"a weight is not negative":          {spec: clusters("{" + all + ", weight: -1}"), refusal: "should be greater than or equal to 0"},
		"a weight has a limit":              {spec: clusters("{" + all + ", weight: 1000001}"), refusal: "should be less than or equal to 1000000"},
		"an entry says for which clusters":  {spec: clusters("{weight: 1}"), refusal: "clusterSelector: Required"},
	}
	run(t, "ClusterResourcePlacement", cases)
}

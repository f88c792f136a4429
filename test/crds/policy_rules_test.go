package crds

import (
	"fmt"
	"strings"
	"testing"
)

func placementWith(policy string) string {
	return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], policy: " + policy + "}"
}

func TestRulesOfPlacementTypes(t *testing.T) {
	const (
		affinity = "affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {a: b}}}]}}}"
		prefers  = "affinity: {clusterAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {labelSelector: {matchLabels: {a: b}}}}]}}"
		spread   = "topologySpreadConstraints: [{topologyKey: zone}]"
		tolerate = "tolerations: [{operator: Exists}]"
	)
	policy := func(kind, fields string) string {
		return placementWith("{placementType: " + kind + ", " + fields + "}")
	}
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"PickAll may require":              {spec: policy("PickAll", affinity)},
		"PickAll may tolerate":             {spec: policy("PickAll", tolerate)},
		"PickN has everything but names":   {spec: policy("PickN", "numberOfClusters: 1, "+prefers+", "+spread+", "+tolerate)},
		"PickN may keep its spread":        {spec: policy("PickN", "numberOfClusters: 1, "+spread+", scaleDownOrder: Spread")},
		"what goes first is one of two":    {spec: policy("PickN", "numberOfClusters: 1, "+spread+", scaleDownOrder: Age"), refusal: `supported values: "Scores", "Spread"`},
		"a spread is kept if there is one": {spec: policy("PickN", "numberOfClusters: 1, scaleDownOrder: Spread"), refusal: "scaleDownOrder says how clusters that are spread go: set policy.topologySpreadConstraints"},
		"PickAll does not order what goes": {spec: policy("PickAll", "scaleDownOrder: Scores"), refusal: "scaleDownOrder says how clusters that are spread go"},
		"PickN may pick none":              {spec: policy("PickN", "numberOfClusters: 0")},
		"PickFixed has names":              {spec: policy("PickFixed", "clusterNames: [a, b]")},
		"PickFixed may have no names":      {spec: policy("PickFixed", "clusterNames: []")},
		"PickFixed has names of clusters":  {spec: policy("PickFixed", "clusterNames: [a, B_1]"), refusal: "PickFixed cluster name B_1 is not a valid member name"},
	})
}

func TestTolerationsAreOnlyAdded(t *testing.T) {
	tolerations := func(list string) string { return placementWith("{tolerations: [" + list + "]}") }
	const a, b = "{key: a, operator: Exists}", "{key: b, value: c}"
	const refusal = "only additions to tolerations are allowed"
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"one may be added":           {old: tolerations(a), spec: tolerations(a + ", " + b)},
		"their order may change":     {old: tolerations(a + ", " + b), spec: tolerations(b + ", " + a)},
		"the first may be added":     {old: placementWith("{}"), spec: tolerations(a)},
		"no value is an empty value": {old: tolerations("{key: a, operator: Exists, value: ''}"), spec: tolerations(a)},
		"no key is an empty key":     {old: tolerations("{operator: Exists}"), spec: tolerations("{key: '', operator: Exists, value: ''}")},
		"no effect is every effect":  {old: tolerations("{operator: Exists}"), spec: tolerations("{operator: Exists, effect: NoSchedule}"), refusal: refusal},
		"the effect is kept":         {old: tolerations("{key: a, effect: NoSchedule}"), spec: tolerations("{key: a, effect: NoExecute}"), refusal: refusal},
		"any effect may be added":    {old: tolerations(b), spec: tolerations(b + ", {key: a, effect: NoSchedule}, {key: a, effect: NoExecute}, {key: a, effect: PreferNoSchedule}")},
	})
}

// TestRequirementsOnOnePropertyAgree has, for two requirements on one property, whether some value satisfies both.
func TestRequirementsOnOnePropertyAgree(t *testing.T) {
	requirement := func(operator, value string) string {
		return fmt.Sprintf("{name: resources.kubernetes-fleet.io/total-cpu, operator: %s, values: ['%s']}", operator, value)
	}
	spec := func(requirements string) string {
		return placementWith("{affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{propertySelector: {matchExpressions: [" + requirements + "]}}]}}}}")
	}
	cases := map[string]ruleCase{
		"requirements on two properties never collide": {spec: spec(requirement("Eq", "5") + ", {name: b, operator: Eq, values: ['6']}")},
		"no value is no requirement":                   {spec: spec("{name: a, operator: Eq, values: []}"), refusal: "operator Eq needs exactly one value"},
		"a value is a quantity":                        {spec: spec(requirement("Eq", "five")), refusal: "value five is not a Kubernetes quantity"},
		"a property has the name of a label":           {spec: spec("{name: -a, operator: Eq, values: ['5']}"), refusal: "the name of a property must be a label name"},
	}
	// The API server would compute this for hours, and this test would end with its timeout.
	for name, endless := range map[string]string{
		"a value has a short exponent": "1234567890123456789e1000000000", "a value has a short negative exponent": "1234567890123456789E-1000000000", "a value has no exponent in disguise": "0.1e0000001000000000",
	} {
		cases[name] = ruleCase{spec: spec(requirement("Eq", endless)), refusal: "value " + endless + " is not a Kubernetes quantity"}
		cases[name+", beside another"] = ruleCase{spec: spec(requirement("Ge", "1") + ", " + requirement("Le", endless)), refusal: "value " + endless + " is not a Kubernetes quantity"}
	}
	for _, pair := range []struct {
		a, x, b, y string
		agree      bool
	}{
		{"Eq", "5", "Eq", "5000m", true}, {"Eq", "5", "Eq", "6", false}, {"Eq", "5", "Ne", "5", false}, {"Eq", "5", "Ne", "6", true},
		{"Eq", "5", "Gt", "5", false}, {"Eq", "5", "Ge", "5", true}, {"Eq", "5", "Lt", "5", false}, {"Eq", "5", "Le", "5", true},
		{"Eq", "5", "Gt", "4", true}, {"Eq", "5", "Ge", "6", false}, {"Eq", "5", "Lt", "6", true}, {"Eq", "5", "Le", "4", false},
		{"Gt", "5", "Lt", "5", false}, {"Gt", "5", "Le", "5", false}, {"Ge", "5", "Lt", "5", false}, {"Ge", "5", "Le", "5", true},
		{"Gt", "6", "Lt", "5", false}, {"Ge", "6", "Le", "5", false}, {"Gt", "5", "Lt", "6", true}, {"Ge", "1Gi", "Le", "1024Mi", true},
		{"Gt", "5", "Ge", "9", true}, {"Lt", "5", "Le", "9", true}, {"Ne", "5", "Ne", "6", true}, {"Ne", "5", "Gt", "5", true},
	} {
		for _, both := range []string{
			requirement(pair.a, pair.x) + ", " + requirement(pair.b, pair.y),
			requirement(pair.b, pair.y) + ", " + requirement(pair.a, pair.x),
		} {
			want := ruleCase{spec: spec(both)}
			if !pair.agree {
				want.refusal = "inconsistent requirements on property"
			}
			cases[both] = want
		}
	}
	run(t, "ClusterResourcePlacement", cases)
}

func TestLabelSelectorsAreSpeltRight(t *testing.T) {
	expression := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, labelSelector: {matchExpressions: [{" + fields + "}]}}]}"
	}
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"in a list":                  {spec: expression("key: example.com/a, operator: In, values: [b]")},
		"without a value":            {spec: expression("key: a, operator: DoesNotExist")},
		"with a value that is none":  {spec: expression("key: a, operator: In, values: ['b c']"), refusal: "values[0] in body should match"},
		"with an empty value":        {spec: expression("key: a, operator: In, values: ['']")},
		"with any number of matches": {spec: "{resourceSelectors: [{group: '', version: v1, kind: Namespace, labelSelector: {matchLabels: {a: b, c: ''}}}]}"},
	})
}

func TestRulesOfAffinityGroups(t *testing.T) {
	group := func(name, terms string) string {
		return "{name: " + name + ", clusterSelector: {clusterSelectorTerms: [" + terms + "]}}"
	}
	policy := func(fields string, groups ...string) string {
		return placementWith("{" + fields + "affinityGroups: [" + strings.Join(groups, ", ") + "]}")
	}
	several := func(n int) []string {
		var groups []string
		for i := range n {
			groups = append(groups, group(fmt.Sprint("g", i), ""))
		}
		return groups
	}
	local := group("local", "{labelSelector: {matchLabels: {site: local}}}")
	cloud := group("cloud", "{labelSelector: {matchLabels: {kubernetes-fleet.io/member-name: a}}}, {propertySelector: {matchExpressions: [{name: a, operator: Ge, values: ['5']}]}}")
	cases := map[string]ruleCase{
		"PickAll may have some":                  {spec: policy("", local, cloud)},
		"PickN may have some":                    {spec: policy("placementType: PickN, numberOfClusters: 1, ", local, cloud)},
		"PickFixed has none":                     {spec: policy("placementType: PickFixed, clusterNames: [a], ", local), refusal: "affinityGroups needs to be empty for policy type PickFixed"},
		"a group may be of all clusters":         {spec: policy("", local, group("rest", ""))},
		"a group says which clusters are in it":  {spec: policy("", "{name: local}"), refusal: "affinityGroups[0].clusterSelector: Required value"},
		"a term that says nothing is refused":    {spec: policy("", group("cloud", "{clusterNames: [a]}")), refusal: "a term of affinityGroups needs a labelSelector or a propertySelector"},
		"a group has a name":                     {spec: policy("", "{clusterSelector: {clusterSelectorTerms: []}}"), refusal: "affinityGroups[0].name: Required value"},
		"a name is that of a label":              {spec: policy("", group("Local_1", "")), refusal: "affinityGroups[0].name"},
		"a name is short":                        {spec: policy("", group("a123456789a123456789a123456789abc", "")), refusal: "affinityGroups[0].name: Too long: may not be more than 32 bytes"},
		"names differ":                           {spec: policy("", local, local), refusal: "affinityGroups[1]: Duplicate value"},
		"there are at most 10":                   {spec: policy("", several(11)...), refusal: "affinityGroups: Too many: 11: must have at most 10 items"},
		"there may be 10":                        {spec: policy("", several(10)...)},
		"groups do not go by themselves":         {old: policy("", local), spec: placementWith("{}"), refusal: "policy.affinityGroups is missing"},
		"groups go with an empty list":           {old: policy("", local), spec: policy("")},
		"an empty list of groups may go":         {old: policy(""), spec: placementWith("{}")},
		"a group does not sort":                  {spec: policy("", group("local", "{propertySorter: {name: a, sortOrder: Ascending}}")), refusal: "propertySorter is not allowed in affinityGroups"},
		"they fall back":                         {spec: policy("affinityGroupMode: Fallback, ", local, cloud)},
		"they overflow by room":                  {spec: policy("affinityGroupMode: Overflow, replicaScheduling: [{}, {selector: {kind: Job}, dynamicWeight: AvailableReplicas}], ", local, cloud)},
		"they overflow where room is filled":     {spec: policy("affinityGroupMode: Overflow, placementType: PickAll, replicaScheduling: [{division: Aggregated}], ", local, cloud)},
		"they do not overflow by weights":        {spec: policy("affinityGroupMode: Overflow, replicaScheduling: [{}], ", local, cloud), refusal: "affinityGroupMode Overflow divides replicas by the room of clusters: set placementType to PickAll"},
		"nor without rules":                      {spec: policy("affinityGroupMode: Overflow, ", local, cloud), refusal: "affinityGroupMode Overflow divides replicas by the room of clusters"},
		"nor with a number of clusters":          {spec: policy("affinityGroupMode: Overflow, placementType: PickN, numberOfClusters: 2, replicaScheduling: [{division: Aggregated}], ", local, cloud), refusal: "affinityGroupMode Overflow divides replicas by the room of clusters"},
		"what overflows does not fall back":      {spec: policy("affinityGroupMode: Overflow, failback: Automatic, replicaScheduling: [{division: Aggregated}], ", local, cloud), refusal: "groups that overflow take replicas back by themselves"},
		"another mode":                           {spec: policy("affinityGroupMode: Spill, ", local, cloud), refusal: `Unsupported value: "Spill": supported values: "Fallback", "Overflow"`},
		"a mode needs groups":                    {spec: placementWith("{affinityGroupMode: Fallback}"), refusal: "say how affinityGroups follow each other"},
		"going back needs groups":                {spec: placementWith("{failback: Never}"), refusal: "say how affinityGroups follow each other"},
		"a placement may go back":                {spec: policy("failback: Automatic, ", local, cloud)},
		"a placement may go back at once":        {spec: policy("failback: Automatic, failbackAfterSeconds: 0, ", local, cloud)},
		"a placement does not go back before":    {spec: policy("failback: Automatic, failbackAfterSeconds: -1, ", local, cloud), refusal: "failbackAfterSeconds"},
		"who does not go back waits for nothing": {spec: policy("failback: Never, failbackAfterSeconds: 600, ", local, cloud), refusal: "failbackAfterSeconds is only for failback Automatic"},
		"nor does who does not say":              {spec: policy("failbackAfterSeconds: 600, ", local, cloud), refusal: "failbackAfterSeconds is only for failback Automatic"},
		"groups may change":                      {old: policy("", local, cloud), spec: policy("failback: Automatic, ", cloud)},
	}
	run(t, "ClusterResourcePlacement", cases)
	run(t, "ResourcePlacement", map[string]ruleCase{
		"a placement in a namespace may have some": {spec: "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {failback: Automatic, affinityGroups: [" + local + "]}}"},
	})
}

func TestRulesOfSpreadConstraints(t *testing.T) {
	policy := func(constraints string) string { return placementWith("{spreadConstraints: [" + constraints + "]}") }
	const byLabel = "spreadBy: Label, labelKey: topology.kubernetes.io/region"
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"PickAll may have them":               {spec: policy("{" + byLabel + "}, {spreadBy: Cluster, minGroups: 2, maxGroups: 5}")},
		"PickN has those of its own":          {spec: placementWith("{placementType: PickN, numberOfClusters: 1, spreadConstraints: [{" + byLabel + "}]}"), refusal: "spreadConstraints needs to be empty for policy type PickN, only valid for PickAll"},
		"PickFixed has none":                  {spec: placementWith("{placementType: PickFixed, clusterNames: [a], spreadConstraints: [{" + byLabel + "}]}"), refusal: "spreadConstraints needs to be empty for policy type PickFixed"},
		"they do not go by themselves":        {old: policy("{spreadBy: Cluster}"), spec: placementWith("{}"), refusal: "policy.spreadConstraints is missing"},
		"they go with an empty list":          {old: policy("{spreadBy: Cluster}"), spec: policy("")},
		"groups are made by one of two":       {spec: policy("{spreadBy: Region}"), refusal: `supported values: "Cluster", "Label"`},
		"groups are made by something":        {spec: policy("{minGroups: 1}"), refusal: "spreadBy: Required value"},
		"there is one by Label":               {spec: policy("{" + byLabel + "}, {spreadBy: Label, labelKey: zone}"), refusal: "there is at most one spread constraint by Cluster and one by Label"},
		"there is one by Cluster":             {spec: policy("{spreadBy: Cluster}, {spreadBy: Cluster, maxGroups: 2}"), refusal: "there is at most one spread constraint by Cluster and one by Label"},
		"Label says which":                    {spec: policy("{spreadBy: Label}"), refusal: "labelKey says which label makes the groups"},
		"a key is that of a label":            {spec: policy("{spreadBy: Label, labelKey: 'a b'}"), refusal: "labelKey must be the key of a cluster label"},
		"a key is not empty":                  {spec: policy("{spreadBy: Label, labelKey: ''}"), refusal: "labelKey must be the key of a cluster label"},
		"Cluster has no key":                  {spec: policy("{spreadBy: Cluster, labelKey: zone}"), refusal: "labelKey says which label makes the groups"},
		"at least one group":                  {spec: policy("{spreadBy: Cluster, minGroups: 0}"), refusal: "minGroups"},
		"at least 100 groups at most":         {spec: policy("{spreadBy: Cluster, minGroups: 101}"), refusal: "minGroups"},
		"at most one group":                   {spec: policy("{spreadBy: Cluster, maxGroups: 0}"), refusal: "maxGroups"},
		"the most is not less than the least": {spec: policy("{spreadBy: Cluster, minGroups: 3, maxGroups: 2}"), refusal: "maxGroups must not be less than minGroups"},
		"the most may be the least":           {spec: policy("{spreadBy: Cluster, minGroups: 3, maxGroups: 3}")},
		"every group has a cluster":           {spec: policy("{" + byLabel + ", minGroups: 3}, {spreadBy: Cluster, maxGroups: 2}"), refusal: "maxGroups of the spread constraint by Cluster must not be less than minGroups of that by Label"},
		"a cluster for each group will do":    {spec: policy("{" + byLabel + ", minGroups: 3}, {spreadBy: Cluster, maxGroups: 3}")},
		"they may change":                     {old: policy("{spreadBy: Cluster, maxGroups: 2}"), spec: policy("{" + byLabel + "}")},
	})
	run(t, "ResourcePlacement", map[string]ruleCase{
		"a placement in a namespace may have them": {spec: "{resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: web}], policy: {spreadConstraints: [{" + byLabel + ", maxGroups: 2}]}}"},
	})
}

func TestRulesOfClusterNamesInWeights(t *testing.T) {
	weight := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], strategy: {rollingUpdate: {order: {priority: {weights: [{weight: 1, clusterSelector: {clusterSelectorTerms: [{" + fields + "}]}}]}}}}}"
	}
	names := func(n int) string {
		list := "member-0"
		for i := 1; i < n; i++ {
			list += fmt.Sprintf(", member-%d", i)
		}
		return "clusterNames: [" + list + "]"
	}
	cases := map[string]ruleCase{}
	for sentence, c := range map[string]struct{ fields, refusal string }{
		"may name clusters":                {fields: "clusterNames: [a, member-2]"},
		"may exclude clusters":             {fields: "excludeClusterNames: [a]"},
		"may do both, with labels":         {fields: "clusterNames: [a, b], excludeClusterNames: [b], labelSelector: {matchLabels: {a: b}}"},
		"names up to 100 clusters":         {fields: names(100)},
		"names no more than 100 clusters":  {fields: names(101), refusal: "clusterNames: Too many: 101: must have at most 100 items"},
		"names clusters by valid names":    {fields: "clusterNames: [Member_1]", refusal: "clusterNames[0]"},
		"excludes clusters by valid names": {fields: "excludeClusterNames: ['a.b']", refusal: "excludeClusterNames[0]"},
		"names a cluster once":             {fields: "clusterNames: [a, a]", refusal: "clusterNames[1]: Duplicate value"},
		"names at least one":               {fields: "clusterNames: []", refusal: "clusterNames"},
		"excludes at least one":            {fields: "excludeClusterNames: []", refusal: "excludeClusterNames"},
	} {
		cases["a weight "+sentence] = ruleCase{spec: weight(c.fields), refusal: c.refusal}
	}
	run(t, "ClusterResourcePlacement", cases)
}

func TestRulesOfDeleteStrategies(t *testing.T) {
	strategy := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], strategy: {deleteStrategy: {" + fields + "}}}"
	}
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"says nothing":                      {spec: strategy("")},
		"abandons what leaves":              {spec: strategy("removedResources: Abandon")},
		"abandons at the end only":          {spec: strategy("propagationPolicy: Abandon, removedResources: Delete")},
		"deletes or abandons":               {spec: strategy("removedResources: Orphan"), refusal: `supported values: "Delete", "Abandon"`},
		"says something if it says at all":  {spec: strategy("removedResources: ''"), refusal: "removedResources"},
		"may say what goes with an object":  {spec: strategy("prunePropagationPolicy: Orphan, propagationPolicy: Delete")},
		"no other way is known":             {spec: strategy("prunePropagationPolicy: Abandon"), refusal: `supported values: "Background", "Foreground", "Orphan"`},
		"may wait for what stays":           {spec: strategy("reconcileTimeoutSeconds: 604800, pruneTimeoutSeconds: 1")},
		"waits for a time":                  {spec: strategy("reconcileTimeoutSeconds: 0"), refusal: "reconcileTimeoutSeconds"},
		"waits for no more than a week":     {spec: strategy("pruneTimeoutSeconds: 604801"), refusal: "pruneTimeoutSeconds"},
		"waits for a number of seconds":     {spec: strategy("pruneTimeoutSeconds: 10m"), refusal: "pruneTimeoutSeconds"},
		"may change its mind, back as well": {old: strategy("removedResources: Abandon"), spec: strategy("removedResources: Delete")},
	})
}

func TestRulesOfSuspensions(t *testing.T) {
	strategy := func(fields string) string {
		return "{resourceSelectors: [{group: '', version: v1, kind: %s, name: web}], strategy: {" + fields + "}}"
	}
	names := "c0"
	for i := 1; i < 101; i++ {
		names += fmt.Sprintf(", c%d", i)
	}
	for kindName, selected := range map[string]string{"ClusterResourcePlacement": "Namespace", "ResourcePlacement": "ConfigMap"} {
		suspension := func(fields string) string {
			return fmt.Sprintf(strategy("suspension: {"+fields+"}"), selected)
		}
		t.Run(kindName, func(t *testing.T) {
			run(t, kindName, map[string]ruleCase{
				"suspends all clusters":           {spec: suspension("all: true")},
				"suspends some":                   {spec: suspension("clusterNames: [a, member-2]")},
				"suspends none":                   {spec: suspension("")},
				"may list none":                   {spec: suspension("all: true, clusterNames: []")},
				"may say so":                      {spec: suspension("all: false, clusterNames: [a]")},
				"suspends under External as well": {spec: fmt.Sprintf(strategy("type: External, suspension: {all: true}"), selected)},
				"suspends all, or some":           {spec: suspension("all: true, clusterNames: [a]"), refusal: "all suspends every cluster, so that clusterNames say nothing: remove one of the two"},
				"names clusters":                  {spec: suspension("clusterNames: ['*']"), refusal: "clusterNames[0]"},
				"names a cluster once":            {spec: suspension("clusterNames: [a, a]"), refusal: "clusterNames[1]: Duplicate value"},
				"names no more than 100 clusters": {spec: suspension("clusterNames: [" + names + "]"), refusal: "Too many: 101: must have at most 100 items"},
				"begins and ends when it is to":   {old: suspension("all: true"), spec: fmt.Sprintf(strategy(""), selected)},
			})
		})
	}
}

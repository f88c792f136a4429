package override_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/override"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var crp = override.Placement{Name: "crp"}

func TestResourcesThatOverridesSelect(t *testing.T) {
	role := term{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "reader"}
	roleID := id{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "reader"}
	mapID := id{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "config"}
	cases := map[string]struct {
		clusterWide []term
		namespaced  []placementv1beta1.ResourceSelector // in namespace app
		resources   []id
		want        bool
	}{
		"the object is placed":                                {clusterWide: []term{role}, resources: []id{roleID}, want: true},
		"one of several objects is placed":                    {clusterWide: append(namespace("other"), role), resources: []id{mapID, roleID}, want: true},
		"nothing is placed":                                   {clusterWide: []term{role}},
		"an object of another name is placed":                 {clusterWide: []term{role}, resources: []id{{Group: roleID.Group, Version: "v1", Kind: "ClusterRole", Name: "writer"}}},
		"an object of another group is placed":                {clusterWide: []term{role}, resources: []id{{Group: "example.com", Version: "v1", Kind: "ClusterRole", Name: "reader"}}},
		"an object of another kind is placed":                 {clusterWide: []term{role}, resources: []id{{Group: roleID.Group, Version: "v1", Kind: "Role", Name: "reader"}}},
		"the object is placed in another version":             {clusterWide: []term{role}, resources: []id{{Group: roleID.Group, Version: "v2", Kind: "ClusterRole", Name: "reader"}}},
		"the object is placed in a version nobody knows":      {clusterWide: []term{role}, resources: []id{{Group: roleID.Group, Kind: "ClusterRole", Name: "reader"}}, want: true},
		"the Namespace is placed":                             {clusterWide: namespace("app"), resources: []id{{Version: "v1", Kind: "Namespace", Name: "app"}}, want: true},
		"what is in the Namespace is placed":                  {clusterWide: namespace("app"), resources: []id{mapID}, want: true},
		"what is in another Namespace is placed":              {clusterWide: namespace("app"), resources: []id{{Version: "v1", Kind: "ConfigMap", Namespace: "other", Name: "config"}}},
		"a Namespace of another group takes nothing along":    {clusterWide: []term{{Group: "example.com", Version: "v1", Kind: "Namespace", Name: "app"}}, resources: []id{mapID}},
		"a Namespace of another version takes nothing along":  {clusterWide: []term{{Version: "v2", Kind: "Namespace", Name: "app"}}, resources: []id{mapID}},
		"a cluster-wide override names a namespaced object":   {clusterWide: []term{{Version: "v1", Kind: "ConfigMap", Name: "config"}}, resources: []id{mapID}},
		"a namespaced override has the object":                {namespaced: configMap("config"), resources: []id{mapID}, want: true},
		"the object is in another namespace":                  {namespaced: configMap("config"), resources: []id{{Version: "v1", Kind: "ConfigMap", Namespace: "other", Name: "config"}}},
		"a namespaced override does not reach into the fleet": {namespaced: []placementv1beta1.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "app"}}, resources: []id{{Version: "v1", Kind: "Namespace", Name: "app"}}},
		"the object is in an envelope": {
			namespaced: configMap("config"), want: true,
			resources: []id{{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "config", Envelope: &placementv1beta1.EnvelopeIdentifier{Name: "envelope"}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var o overrides
			if tc.clusterWide != nil {
				o.clusterWide = append(o.clusterWide, clusterWide("cro-0", tc.clusterWide, patch()))
			}
			if tc.namespaced != nil {
				o.namespaced = append(o.namespaced, namespaced("app", "ro-0", tc.namespaced, patch()))
			}
			applicable := override.NewMatcher(crp, tc.resources, o.all()).Applicable(override.Cluster{Name: "member-1"})
			assert.Equal(t, tc.want, len(applicable.ClusterResourceOverrideSnapshots)+len(applicable.ResourceOverrideSnapshots) == 1)
		})
	}
}

func TestClustersThatRulesSelect(t *testing.T) {
	selector := func(terms ...placementv1beta1.ClusterSelectorTerm) *placementv1beta1.ClusterSelector {
		return &placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms}
	}
	expression := func(operator metav1.LabelSelectorOperator, values ...string) placementv1beta1.ClusterSelectorTerm {
		return placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: operator, Values: values}},
		}}
	}
	named := func(name string) placementv1beta1.ClusterSelectorTerm {
		return placementv1beta1.ClusterSelectorTerm{LabelSelector: clusterv1beta1.SelectNames(name)}
	}
	without := func(name string) placementv1beta1.ClusterSelectorTerm {
		return placementv1beta1.ClusterSelectorTerm{LabelSelector: clusterv1beta1.SelectOtherNames(name)}
	}
	namedOne := named("member-1")
	namedOne.LabelSelector.MatchLabels = env("test")
	cases := map[string]struct {
		selectors []*placementv1beta1.ClusterSelector // one for each rule
		want      bool                                // on a cluster with env=prod and region=east
	}{
		"no selector selects no cluster":                  {[]*placementv1beta1.ClusterSelector{nil}, false},
		"an empty selector selects all":                   {[]*placementv1beta1.ClusterSelector{everywhere()}, true},
		"a selector without terms selects all":            {[]*placementv1beta1.ClusterSelector{selector()}, true},
		"labels match":                                    {[]*placementv1beta1.ClusterSelector{labelled(env("prod"))}, true},
		"labels do not match":                             {[]*placementv1beta1.ClusterSelector{labelled(env("test"))}, false},
		"all labels of a term have to match":              {[]*placementv1beta1.ClusterSelector{labelled(map[string]string{"env": "prod", "region": "west"})}, false},
		"one of the terms is enough":                      {[]*placementv1beta1.ClusterSelector{labelled(env("test"), env("prod"))}, true},
		"an expression matches":                           {[]*placementv1beta1.ClusterSelector{selector(expression(metav1.LabelSelectorOpIn, "prod", "test"))}, true},
		"an expression does not match":                    {[]*placementv1beta1.ClusterSelector{selector(expression(metav1.LabelSelectorOpDoesNotExist))}, false},
		"an empty label selector selects all":             {[]*placementv1beta1.ClusterSelector{selector(placementv1beta1.ClusterSelectorTerm{LabelSelector: &metav1.LabelSelector{}})}, true},
		"a term without labels selects none":              {[]*placementv1beta1.ClusterSelector{selector(placementv1beta1.ClusterSelectorTerm{PropertySelector: &placementv1beta1.PropertySelector{}})}, false},
		"a name matches":                                  {[]*placementv1beta1.ClusterSelector{selector(named("member-1"))}, true},
		"a name does not match":                           {[]*placementv1beta1.ClusterSelector{selector(named("member-2"))}, false},
		"a name and labels have to match":                 {[]*placementv1beta1.ClusterSelector{selector(namedOne)}, false},
		"all clusters but another":                        {[]*placementv1beta1.ClusterSelector{selector(without("member-2"))}, true},
		"all clusters but this":                           {[]*placementv1beta1.ClusterSelector{selector(without("member-1"))}, false},
		"one of the rules is enough":                      {[]*placementv1beta1.ClusterSelector{nil, labelled(env("prod"))}, true},
		"what cannot be read comes to light when applied": {[]*placementv1beta1.ClusterSelector{selector(expression("NotExists"))}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rules := make([]rule, len(tc.selectors))
			for i, s := range tc.selectors {
				rules[i] = patchOn(s)
			}
			matcher := override.NewMatcher(crp, []id{{Version: "v1", Kind: "Namespace", Name: "app"}},
				overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("cro-0", namespace("app"), rules...)}}.all())
			applicable := matcher.Applicable(override.Cluster{Name: "member-1", Labels: map[string]string{"env": "prod", "region": "east", clusterv1beta1.MemberNameLabel: "member-1"}})
			assert.Equal(t, tc.want, len(applicable.ClusterResourceOverrideSnapshots) == 1)
		})
	}
}

func TestPlacementsThatOverridesReferTo(t *testing.T) {
	rp := override.Placement{Namespace: "app", Name: "rp"}
	ref := func(name string, scope placementv1beta1.PlacementScope) *placementv1beta1.PlacementRef {
		return &placementv1beta1.PlacementRef{Name: name, Scope: scope}
	}
	cases := map[string]struct {
		ref       *placementv1beta1.PlacementRef
		placement override.Placement
		cluster   bool // the ClusterResourceOverride applies
		namespace bool // the ResourceOverride in namespace app applies
	}{
		"without a reference, all ClusterResourcePlacements":        {nil, crp, true, true},
		"without a reference, all ResourcePlacements":               {nil, rp, true, true},
		"the ClusterResourcePlacement":                              {ref("crp", placementv1beta1.ClusterScoped), crp, true, true},
		"the ClusterResourcePlacement, scope left out":              {ref("crp", ""), crp, true, true},
		"another ClusterResourcePlacement":                          {ref("other", placementv1beta1.ClusterScoped), crp, false, false},
		"a ResourcePlacement of that name":                          {ref("rp", placementv1beta1.ClusterScoped), rp, false, false},
		"the ResourcePlacement":                                     {ref("rp", placementv1beta1.NamespaceScoped), rp, false, true},
		"a ResourcePlacement of that name elsewhere":                {ref("rp", placementv1beta1.NamespaceScoped), override.Placement{Namespace: "other", Name: "rp"}, false, false},
		"the ResourcePlacement, not a ClusterResourcePlacement":     {ref("crp", placementv1beta1.NamespaceScoped), crp, false, false},
		"the ResourcePlacement, scope left out, as in KubeFleet":    {ref("rp", ""), rp, false, false},
		"another ResourcePlacement of the override's own namespace": {ref("other", placementv1beta1.NamespaceScoped), rp, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			cro := clusterWide("cro-0", namespace("app"), patch())
			cro.Spec.OverrideSpec.Placement = tc.ref
			ro := namespaced("app", "ro-0", configMap("config"), patch())
			ro.Spec.OverrideSpec.Placement = tc.ref
			matcher := override.NewMatcher(tc.placement, []id{{Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "config"}},
				[]placementv1beta1.OverrideSnapshotObject{&cro, &ro})
			applicable := matcher.Applicable(override.Cluster{Name: "member-1"})
			assert.Equal(t, tc.cluster, len(applicable.ClusterResourceOverrideSnapshots) == 1, "ClusterResourceOverride")
			assert.Equal(t, tc.namespace, len(applicable.ResourceOverrideSnapshots) == 1, "ResourceOverride")
		})
	}
}

func TestApplicableOverridesComeByName(t *testing.T) {
	cros := []placementv1beta1.ClusterResourceOverrideSnapshot{
		clusterWide("b-0", namespace("app"), patch()),
		clusterWide("a-10", namespace("app"), patchOn(labelled(env("prod")))),
		clusterWide("c-0", namespace("app"), patchOn(labelled(env("test")))),
	}
	ros := []placementv1beta1.ResourceOverrideSnapshot{
		namespaced("web", "a-0", configMap("config"), patch()),
		namespaced("app", "z-0", configMap("config"), patch()),
		namespaced("app", "b-1", configMap("config"), patch()),
	}
	resources := []id{{Version: "v1", Kind: "ConfigMap", Namespace: "web", Name: "config"}, {Version: "v1", Kind: "ConfigMap", Namespace: "app", Name: "config"}}
	matcher := override.NewMatcher(crp, resources, overrides{cros, ros}.all())

	assert.Equal(t, override.Applicable{
		ClusterResourceOverrideSnapshots: []string{"a-10", "b-0"},
		ResourceOverrideSnapshots:        []placementv1beta1.NamespacedName{{Namespace: "app", Name: "b-1"}, {Namespace: "app", Name: "z-0"}, {Namespace: "web", Name: "a-0"}},
	}, matcher.Applicable(override.Cluster{Name: "member-1", Labels: env("prod")}))
	assert.Equal(t, []string{"b-0", "c-0"}, matcher.Applicable(override.Cluster{Name: "member-2", Labels: env("test")}).ClusterResourceOverrideSnapshots,
		"a label of the cluster alters which overrides apply")
}

func TestSelectorsThatSelectNothingAreTold(t *testing.T) {
	misspelt := clusterWide("cro-0", append(namespace("app"), namespace("aap")...), patch())
	misspelt.Spec.OverrideSpec.Placement = &placementv1beta1.PlacementRef{Name: "crp"}
	forAll := clusterWide("cro-1", namespace("elsewhere"), patch())
	matcher := override.NewMatcher(crp, []id{{Version: "v1", Kind: "Namespace", Name: "app"}},
		overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{misspelt, forAll}}.all())
	assert.Equal(t, []override.Idle{{
		Override: override.Source{Kind: "ClusterResourceOverrideSnapshot", Name: "cro-0"}, Selector: 1,
		Resource: id{Version: "v1", Kind: "Namespace", Name: "aap"},
	}}, matcher.Idle(), "an override for all placements may be meant for others")
}

// BenchmarkMatch finds the overrides of a placement of 10,000 resources for 1,000 clusters,
// with as many overrides as a hub may have.
func BenchmarkMatch(b *testing.B) {
	var o overrides
	var resources []id
	for i := range 100 {
		app := fmt.Sprintf("app-%d", i)
		o.clusterWide = append(o.clusterWide, clusterWide(app+"-0", namespace(app), patchOn(labelled(env("prod"), env("test"))), patchOn(labelled(env("canary")))))
		o.namespaced = append(o.namespaced, namespaced(app, app+"-0", configMap("config-1"), patchOn(labelled(env("test")))))
		for j := range 100 {
			resources = append(resources, id{Version: "v1", Kind: "ConfigMap", Namespace: app, Name: fmt.Sprintf("config-%d", j)})
		}
	}
	clusters := make([]override.Cluster, 1000)
	for i := range clusters {
		clusters[i] = override.Cluster{Name: fmt.Sprintf("member-%d", i), Labels: map[string]string{"env": []string{"canary", "prod", "test"}[i%3], "region": "east"}}
	}
	b.ReportAllocs()
	for b.Loop() {
		matcher := override.NewMatcher(crp, resources, o.all())
		for _, cluster := range clusters {
			matcher.Applicable(cluster)
		}
	}
}

func TestTheFingerprintOfOverridesMadeForAPlacement(t *testing.T) {
	snapshot := func(name, placement, content string) placementv1beta1.ClusterResourceOverrideSnapshot {
		s := placementv1beta1.ClusterResourceOverrideSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name}}
		s.Spec.OverrideHash = []byte(content)
		if placement != "" {
			s.Spec.OverrideSpec.Placement = &placementv1beta1.PlacementRef{Name: placement}
		}
		return s
	}
	made := func(snapshots ...placementv1beta1.ClusterResourceOverrideSnapshot) string {
		return override.Made(override.Placement{Name: "crp"}, overrides{clusterWide: snapshots}.all())
	}
	a := snapshot("a-0", "crp", "1")
	b := snapshot("b-0", "crp", "1")
	assert.Empty(t, made(snapshot("all-0", "", "1"), snapshot("other-0", "another", "1")))
	assert.Equal(t, made(a, b), made(b, a, snapshot("all-0", "", "1")))
	assert.NotEqual(t, made(a), made(b))
	assert.NotEqual(t, made(a), made(snapshot("a-0", "crp", "2")), "an override made anew can have the name of an earlier one")
}

package snapshot_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestFilterOfAPIs(t *testing.T) {
	cases := map[string]struct {
		options snapshot.FilterOptions
		// What comes along with a namespace.
		contents []string
	}{
		"nothing is skipped":  {snapshot.FilterOptions{}, []string{"ConfigMap (v1)", "HorizontalPodAutoscaler (autoscaling/v2)"}},
		"a group":             {snapshot.FilterOptions{SkippedAPIs: "autoscaling"}, []string{"ConfigMap (v1)"}},
		"a group and version": {snapshot.FilterOptions{SkippedAPIs: "autoscaling/v2"}, []string{"ConfigMap (v1)"}},
		"a version that is not the preferred one":            {snapshot.FilterOptions{SkippedAPIs: "autoscaling/v1"}, []string{"ConfigMap (v1)", "HorizontalPodAutoscaler (autoscaling/v2)"}},
		"a kind, in any case":                                {snapshot.FilterOptions{SkippedAPIs: "autoscaling/v2/horizontalPODautoscaler"}, []string{"ConfigMap (v1)"}},
		"several kinds":                                      {snapshot.FilterOptions{SkippedAPIs: "autoscaling/v2/Scale,HorizontalPodAutoscaler"}, []string{"ConfigMap (v1)"}},
		"several entries, with space around":                 {snapshot.FilterOptions{SkippedAPIs: " example.com ; autoscaling ;"}, []string{"ConfigMap (v1)"}},
		"kinds of the core group":                            {snapshot.FilterOptions{SkippedAPIs: "v1/Secret,configmap"}, []string{"HorizontalPodAutoscaler (autoscaling/v2)"}},
		"kinds of the core group, each with the version":     {snapshot.FilterOptions{SkippedAPIs: "v1/Secret,v1/ConfigMap"}, []string{"HorizontalPodAutoscaler (autoscaling/v2)"}},
		"the core group":                                     {snapshot.FilterOptions{SkippedAPIs: "v1"}, []string{"HorizontalPodAutoscaler (autoscaling/v2)"}},
		"the core group by its empty name":                   {snapshot.FilterOptions{SkippedAPIs: "/v1/ConfigMap"}, []string{"HorizontalPodAutoscaler (autoscaling/v2)"}},
		"only a kind is allowed":                             {snapshot.FilterOptions{AllowedAPIs: "v1/Namespace,ConfigMap"}, []string{"ConfigMap (v1)"}},
		"only a group is allowed":                            {snapshot.FilterOptions{AllowedAPIs: "autoscaling"}, []string{"HorizontalPodAutoscaler (autoscaling/v2)"}},
		"only a version is allowed that is not preferred":    {snapshot.FilterOptions{AllowedAPIs: "autoscaling/v1"}, []string{"HorizontalPodAutoscaler (autoscaling/v1)"}},
		"what is never placed cannot be allowed":             {snapshot.FilterOptions{AllowedAPIs: "v1/Pod"}, nil},
		"a hub with workloads keeps kinds it does not serve": {snapshot.FilterOptions{Workload: true}, []string{"ConfigMap (v1)", "HorizontalPodAutoscaler (autoscaling/v2)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			filter, err := snapshot.NewFilter(tc.options)
			require.NoError(t, err)
			assert.Equal(t, tc.options == snapshot.FilterOptions{}, filter.Empty())
			var contents []string
			for _, kind := range filtered(filter).Contents() {
				contents = append(contents, kind.String())
			}
			assert.Equal(t, tc.contents, contents)
		})
	}
}

func TestFilterSaysWhatIsWrong(t *testing.T) {
	const formats = "allowed are <group>, <group>/<version> and <group>/<version>/<kind>,<kind>"
	cases := map[string]struct {
		options snapshot.FilterOptions
		want    []string
	}{
		"both lists":                  {snapshot.FilterOptions{SkippedAPIs: "apps", AllowedAPIs: "batch"}, []string{"--skipped-propagating-apis and --allowed-propagating-apis exclude each other", "name either"}},
		"commas between groups":       {snapshot.FilterOptions{SkippedAPIs: "apps,batch"}, []string{"--skipped-propagating-apis", `"apps" has no kind`, formats}},
		"too many slashes":            {snapshot.FilterOptions{AllowedAPIs: "apps/v1/Deployment/scale"}, []string{"--allowed-propagating-apis", "too many slashes"}},
		"nothing after a slash":       {snapshot.FilterOptions{SkippedAPIs: "apps/v1/"}, []string{"nothing after a slash"}},
		"nothing after a comma":       {snapshot.FilterOptions{SkippedAPIs: "apps/v1/Deployment,"}, []string{`"" is no kind`}},
		"no name of a group":          {snapshot.FilterOptions{SkippedAPIs: "apps group"}, []string{`"apps group" is no API group`}},
		"no name of a kind":           {snapshot.FilterOptions{SkippedAPIs: "v1/Config Map"}, []string{`"config map" is no kind`}},
		"a bad entry among good ones": {snapshot.FilterOptions{SkippedAPIs: "apps;v1/;batch"}, []string{`"v1/" cannot be read`}},
		"a reserved namespace":        {snapshot.FilterOptions{PlaceableNamespaces: "team-a,kube-system"}, []string{`--placeable-namespaces names "kube-system", from which nothing is ever placed`}},
		"a namespace that is skipped": {snapshot.FilterOptions{PlaceableNamespaces: "team-a", SkippedNamespaces: "team-a"}, []string{`--placeable-namespaces names "team-a"`}},
		"no name to be placed":        {snapshot.FilterOptions{PlaceableNamespaces: "Not_Good"}, []string{"--placeable-namespaces", `"Not_Good"`}},
		"no name of a namespace":      {snapshot.FilterOptions{SkippedNamespaces: "good,Not_Good"}, []string{"--skipped-propagating-namespaces", `"Not_Good"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.NewFilter(tc.options)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func TestSelectorsForWhatTheOperatorKeepsFromBeingPlaced(t *testing.T) {
	namespace := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "team"}
	role := placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "r"}
	cases := map[string]struct {
		options snapshot.FilterOptions
		term    placementv1beta1.ResourceSelectorTerm
		want    string
	}{
		"a skipped kind":             {snapshot.FilterOptions{SkippedAPIs: "rbac.authorization.k8s.io"}, role, "resourceSelectors[0] selects ClusterRole (rbac.authorization.k8s.io/v1), a kind that the hub agent's flag --skipped-propagating-apis names: remove the selector, or have the flag changed"},
		"a kind that is not allowed": {snapshot.FilterOptions{AllowedAPIs: "v1"}, role, "a kind that the hub agent's flag --allowed-propagating-apis does not name"},
		"an allowed kind":            {snapshot.FilterOptions{AllowedAPIs: "v1"}, namespace, ""},
		"a skipped namespace":        {snapshot.FilterOptions{SkippedNamespaces: "other;team"}, namespace, `resourceSelectors[0] selects namespace "team", which the hub agent's flag --skipped-propagating-namespaces keeps from being placed`},
		"another namespace":          {snapshot.FilterOptions{SkippedNamespaces: "other, elsewhere"}, namespace, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			filter, err := snapshot.NewFilter(tc.options)
			require.NoError(t, err)
			_, err = snapshot.Compile(placementv1beta1.Scope{}, []placementv1beta1.ResourceSelectorTerm{tc.term}, filtered(filter))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var invalid *snapshot.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Contains(t, invalid.Message, tc.want)
		})
	}
}

// Acceptance N2.
func TestNothingIsSelectedBeyondThePlaceableNamespaces(t *testing.T) {
	team := func(name string, scope placementv1beta1.SelectionScope) placementv1beta1.ResourceSelectorTerm {
		return placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: name, SelectionScope: scope}
	}
	role := placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole", Name: "r"}
	config := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "ConfigMap", Name: "c"}
	const only = "the hub agent's flag --placeable-namespaces lets placements select from team-a, team-c only"
	cases := map[string]struct {
		scope placementv1beta1.Scope
		term  placementv1beta1.ResourceSelectorTerm
		want  string
	}{
		"the Namespace alone":                  {term: team("team-a", placementv1beta1.NamespaceOnly)},
		"what is in the namespace":             {scope: placementv1beta1.Scope{Namespace: "team-c"}, term: config},
		"another Namespace":                    {term: team("team-b", placementv1beta1.NamespaceOnly), want: `resourceSelectors[0] selects namespace "team-b", and ` + only + ": remove the selector, or have the flag changed"},
		"a Namespace with what is in it":       {term: team("team-a", ""), want: `resourceSelectors[0] selects namespace "team-a", and with --placeable-namespaces the hub agent places the Namespace alone: set selectionScope to NamespaceOnly`},
		"a Namespace with some of what is in":  {term: team("team-a", placementv1beta1.NamespaceWithResourceSelectors), want: "the Namespace alone"},
		"Namespaces, whatever their names are": {term: team("", placementv1beta1.NamespaceOnly), want: "resourceSelectors[0] selects Namespace (v1), and " + only + ": select namespaces by name"},
		"something cluster-scoped":             {term: role, want: `resourceSelectors[0] selects ClusterRole (rbac.authorization.k8s.io/v1) "r", and ` + only + ", and it is in none"},
		"what is in another namespace":         {scope: placementv1beta1.Scope{Namespace: "team-b"}, term: config, want: `the placement is in namespace "team-b", and ` + only + ": move it to one of these"},
	}
	filter, err := snapshot.NewFilter(snapshot.FilterOptions{PlaceableNamespaces: "team-c,team-a"})
	require.NoError(t, err)
	assert.False(t, filter.Empty())
	assert.Equal(t, []string{"team-a", "team-c"}, filter.PlaceableNamespaces())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Compile(tc.scope, []placementv1beta1.ResourceSelectorTerm{tc.term}, filtered(filter))
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			var invalid *snapshot.InvalidError
			require.ErrorAs(t, err, &invalid)
			assert.Contains(t, invalid.Message, tc.want)
		})
	}
	assert.Contains(t, filter.ReasonToExcludeEnveloped(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "team-a"), "--placeable-namespaces")
	assert.Empty(t, filter.ReasonToExcludeEnveloped(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "c"))
}

func TestASelectorByLabelLeavesSkippedNamespacesOut(t *testing.T) {
	filter, err := snapshot.NewFilter(snapshot.FilterOptions{SkippedNamespaces: "team"})
	require.NoError(t, err)
	selection, err := snapshot.Compile(placementv1beta1.Scope{}, []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace"}}, filtered(filter))
	require.NoError(t, err)
	for name, selected := range map[string]bool{"team": false, "team-a": true} {
		namespace := &unstructured.Unstructured{}
		namespace.SetName(name)
		assert.Equal(t, selected, selection.Rules[0].Matches(namespace), name)
	}
}

func FuzzFilter(f *testing.F) {
	for _, text := range []string{"", ";", "apps", "apps/v1;batch/v1/Job,CronJob", "v1/Secret,v1/ConfigMap", "v1", "a/b/c/d", ",,", "/", "v1/,"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		filter, err := snapshot.NewFilter(snapshot.FilterOptions{SkippedAPIs: text, SkippedNamespaces: text})
		if err != nil {
			require.ErrorContains(t, err, "--skipped-propagating-", "the error names the flag")
			return
		}
		if strings.Trim(text, " ;,\t\n") == "" {
			assert.True(t, filter.Empty())
		}
		_, err = snapshot.NewFilter(snapshot.FilterOptions{AllowedAPIs: strings.ToUpper(text)})
		require.NoError(t, err, "case does not matter")
	})
}

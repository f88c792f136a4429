package namespaceaffinity_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler/framework"
	"github.com/fleetflow/fleetflow/activities/scheduler/plugins/namespaceaffinity"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// reporting is a cluster that reports these namespaces.
func reporting(name string, namespaces ...string) *clusterv1beta1.MemberCluster {
	cluster := silent(name)
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeNamespaceCollectionSucceeded, Status: metav1.ConditionTrue}}
	cluster.Status.Namespaces = map[string]string{"some": ""}
	for _, namespace := range namespaces {
		cluster.Status.Namespaces[namespace] = ""
	}
	return cluster
}

// silent is a cluster that does not report its namespaces.
func silent(name string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestOnlyClustersWithTheNamespaceTakeAPlacementInIt(t *testing.T) {
	const absent, unknown = "target namespace does not exist on cluster", "cluster has no namespace information available"
	emptied := reporting("c")
	emptied.Status.Namespaces = nil
	cases := map[string]struct {
		namespace string
		cluster   *clusterv1beta1.MemberCluster
		others    []*clusterv1beta1.MemberCluster
		holds     framework.Hold
		want      string
	}{
		"one that has it does":                                   {"team", reporting("c", "team"), nil, framework.Nothing, ""},
		"one that does not have it does not":                     {"team", reporting("c"), nil, framework.Nothing, absent},
		"one that reports nothing does not, while others report": {"team", silent("c"), []*clusterv1beta1.MemberCluster{reporting("d", "team")}, framework.Nothing, unknown},
		"one whose report is empty does not":                     {"team", emptied, nil, framework.Nothing, unknown},
		"where none reports, every one does":                     {"team", silent("c"), []*clusterv1beta1.MemberCluster{silent("d")}, framework.Nothing, ""},
		"one that has the placement keeps it":                    {"team", reporting("c"), nil, framework.Obsolete, ""},
		"a cluster-scoped placement does not ask":                {"", reporting("c"), nil, framework.Nothing, ""},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			cycle := &framework.Cycle{Namespace: tc.namespace, Fleet: append(tc.others, tc.cluster), Has: map[string]framework.Hold{"c": tc.holds}}
			plugin := namespaceaffinity.New()
			skip, err := plugin.(framework.PreFilterPlugin).PreFilter(cycle)
			require.NoError(t, err)
			if tc.namespace == "" {
				assert.True(t, skip)
				assert.Empty(t, plugin.(framework.WatchPlugin).Watches(cycle))
				return
			}
			assert.False(t, skip)
			assert.Equal(t, tc.want, plugin.(framework.FilterPlugin).Filter(cycle, tc.cluster))
			assert.Equal(t, []framework.Interest{"namespace/team", "namespace-reports"}, plugin.(framework.WatchPlugin).Watches(cycle))
		})
	}
}

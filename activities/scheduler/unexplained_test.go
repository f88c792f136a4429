package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/scheduler"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestRemovalsThatNothingExplains(t *testing.T) {
	fixed := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: []string{"named"}}
	leaving := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster", DeletionTimestamp: &metav1.Time{}}}
	present := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}
	for sentence, test := range map[string]struct {
		policy      *placementv1beta1.PlacementPolicy
		clusters    []clusterv1beta1.MemberCluster
		cluster     string
		respecified bool
		want        string
	}{
		"a cluster that leaves explains it":                     {clusters: []clusterv1beta1.MemberCluster{leaving}, cluster: "cluster"},
		"a cluster that is gone does not":                       {cluster: "cluster", want: scheduler.ClusterGone},
		"nor if the placement has changed besides":              {cluster: "cluster", respecified: true, want: scheduler.ClusterGone},
		"a changed placement explains what is not picked":       {clusters: []clusterv1beta1.MemberCluster{present}, cluster: "cluster", respecified: true},
		"an unchanged one does not":                             {clusters: []clusterv1beta1.MemberCluster{present}, cluster: "cluster", want: scheduler.NoLongerPicked},
		"a cluster that is named no more was not read":          {policy: fixed, cluster: "cluster", want: scheduler.NoLongerPicked},
		"and the change of the names explains it":               {policy: fixed, cluster: "cluster", respecified: true},
		"a cluster that is named and gone is gone all the same": {policy: fixed, cluster: "named", respecified: true, want: scheduler.ClusterGone},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := scheduler.Facts{Policy: test.policy, Clusters: test.clusters, Bindings: []scheduler.Binding{{Name: "kept", Cluster: "gone"}, {Name: "b", Cluster: test.cluster}}}
			var want []rules.HeldRemoval
			if test.want != "" {
				want = []rules.HeldRemoval{{Binding: "b", Cluster: test.cluster, Why: test.want}}
			}
			assert.Equal(t, want, scheduler.Unexplained(facts, scheduler.Decision{Unschedule: []string{"b"}}, test.respecified))
			assert.Empty(t, scheduler.Unexplained(facts, scheduler.Decision{}, test.respecified), "what stays needs no explanation")
		})
	}
}

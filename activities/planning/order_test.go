package planning_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/activities/planning"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

func weight(n int32, terms ...placementv1beta1.ClusterLabelTerm) placementv1beta1.ClusterWeight {
	return placementv1beta1.ClusterWeight{Weight: n, ClusterSelector: placementv1beta1.ClusterLabelSelector{ClusterSelectorTerms: terms}}
}

func term(key, value string) placementv1beta1.ClusterLabelTerm {
	return placementv1beta1.ClusterLabelTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
}

func TestCompileOrder(t *testing.T) {
	unreadable := placementv1beta1.ClusterLabelTerm{LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Near"}},
	}}
	clusters := []rollout.Member{
		{Name: "a"}, {Name: "b", Labels: map[string]string{"env": "prod", "wave": "1"}},
		{Name: "c", Labels: map[string]string{"env": "dev", "wave": "2"}}, {Name: "d", Labels: map[string]string{"env": "dev", "wave": "1"}},
	}
	for sentence, test := range map[string]struct {
		given *placementv1beta1.ClusterOrder
		want  []string
	}{
		"none is the order of names": {nil, []string{"a", "b", "c", "d"}},
		"a weight is for the clusters that one of the terms matches": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Weights: []placementv1beta1.ClusterWeight{
				weight(5, term("env", "none"), term("env", "dev")), weight(1, term("wave", "1")),
			}}}, []string{"d", "c", "b", "a"},
		},
		"without terms it is for all": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Weights: []placementv1beta1.ClusterWeight{
				weight(5), weight(1, placementv1beta1.ClusterLabelTerm{}), weight(1, term("wave", "2")),
			}}}, []string{"c", "a", "b", "d"},
		},
		"for those with a name": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Weights: []placementv1beta1.ClusterWeight{
				weight(5, placementv1beta1.ClusterLabelTerm{ClusterNameFilter: placementv1beta1.ClusterNameFilter{ClusterNames: []string{"d"}}}),
				weight(1, placementv1beta1.ClusterLabelTerm{ClusterNameFilter: placementv1beta1.ClusterNameFilter{ExcludeClusterNames: []string{"a"}}}),
			}}}, []string{"d", "b", "c", "a"},
		},
		"with a term that makes no sense for none": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Weights: []placementv1beta1.ClusterWeight{
				weight(5, unreadable), weight(1, term("env", "dev")),
			}}}, []string{"c", "d", "a", "b"},
		},
		"labels descend unless they are to ascend": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Labels: []placementv1beta1.ClusterOrderLabel{{Key: "wave"}}}},
			[]string{"c", "b", "d", "a"},
		},
		"ascending": {
			&placementv1beta1.ClusterOrder{Priority: &placementv1beta1.ClusterPriority{Labels: []placementv1beta1.ClusterOrderLabel{{Key: "wave", Order: placementv1beta1.Ascending}}}},
			[]string{"b", "d", "c", "a"},
		},
		"scatter": {
			&placementv1beta1.ClusterOrder{Scatter: []placementv1beta1.ClusterScatter{{Key: "env"}}},
			[]string{"c", "a", "b", "d"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, planning.CompileOrder(test.given).Sort(clusters))
		})
	}
}

func TestMaxInFlightPerValue(t *testing.T) {
	assert.Zero(t, planning.MaxInFlightPerValue(nil))
	assert.Zero(t, planning.MaxInFlightPerValue(&placementv1beta1.ClusterOrder{Scatter: []placementv1beta1.ClusterScatter{{Key: "env"}}}))
	assert.Equal(t, 2, planning.MaxInFlightPerValue(&placementv1beta1.ClusterOrder{Scatter: []placementv1beta1.ClusterScatter{{Key: "env", MaxInFlight: new(int32(2))}}}))
}

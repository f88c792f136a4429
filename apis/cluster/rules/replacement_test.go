package rules_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestAClusterTakesPartInOneReplacementAtATime(t *testing.T) {
	member := func(name, replacedBy string, adjust ...func(*clusterv1beta1.MemberCluster)) clusterv1beta1.MemberCluster {
		m := clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Joined"})
		if replacedBy != "" {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1beta1.ReplacedByAnnotation, replacedBy)
		}
		for _, one := range adjust {
			one(&m)
		}
		return m
	}
	strange := func(m *clusterv1beta1.MemberCluster) { m.Status.Conditions = nil }
	leaving := func(m *clusterv1beta1.MemberCluster) { m.DeletionTimestamp = &metav1.Time{} }
	for name, test := range map[string]struct {
		by     string
		fleet  []clusterv1beta1.MemberCluster
		reason string
	}{
		"another takes its place":        {"new", []clusterv1beta1.MemberCluster{member("new", ""), member("x", "y"), member("y", "")}, ""},
		"it is asked for already":        {"new", []clusterv1beta1.MemberCluster{member("old", "new"), member("new", "")}, ""},
		"itself":                         {"old", []clusterv1beta1.MemberCluster{member("old", "")}, "a cluster cannot replace itself"},
		"no name":                        {"a/b", nil, `"a/b" is not the name of a cluster`},
		"an unknown name":                {"new", []clusterv1beta1.MemberCluster{member("x", "")}, "there is no member cluster new"},
		"one that has not joined":        {"new", []clusterv1beta1.MemberCluster{member("new", "", strange)}, "new has not joined the fleet"},
		"one that leaves":                {"new", []clusterv1beta1.MemberCluster{member("new", "", leaving)}, "new is leaving the fleet"},
		"one that is replaced":           {"new", []clusterv1beta1.MemberCluster{member("new", "x")}, "new is itself to be replaced by x"},
		"one that replaces another":      {"new", []clusterv1beta1.MemberCluster{member("new", ""), member("x", "new")}, "new is to replace x already: one cluster replaces one other at a time"},
		"of a cluster that replaces one": {"new", []clusterv1beta1.MemberCluster{member("new", ""), member("x", "old")}, "old is itself to replace x: wait until that is replaced, or give that up"},
		"one whose other one leaves":     {"new", []clusterv1beta1.MemberCluster{member("new", ""), member("x", "new", leaving), member("y", "old", leaving)}, ""},
		"two that replace each other":    {"new", []clusterv1beta1.MemberCluster{member("new", "old"), member("old", "new")}, "new is itself to be replaced by old"},
	} {
		t.Run(name, func(t *testing.T) {
			old := member("old", "")
			assert.Equal(t, test.reason, clusterrules.RefuseReplacement(&old, test.by, test.fleet))
		})
	}
}

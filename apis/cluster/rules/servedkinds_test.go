package rules_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func reporting(value string) *clusterv1beta1.MemberCluster {
	member := &clusterv1beta1.MemberCluster{}
	member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.ServedKindsProperty: {Value: value}}
	return member
}

func TestWhatAClusterReportsOfItsKindsIsRead(t *testing.T) {
	served := clusterrules.ServedKinds{"v1": {"Secret", "ConfigMap", "Secret"}, "apps/v1": {"Deployment"}, "none/v1": nil}
	served.AddUnknown("metrics.k8s.io/v1beta1")
	value := served.Report()
	assert.Equal(t, ";apps/v1=Deployment;metrics.k8s.io/v1beta1=*;v1=ConfigMap,Secret", value[16:])
	read, known := clusterrules.ServedKindsOf(reporting(value))
	assert.True(t, known)
	for kind, is := range map[schema.GroupVersionKind]bool{
		{Version: "v1", Kind: "Secret"}:                                   true,
		{Version: "v1", Kind: "Pod"}:                                      false,
		{Group: "apps", Version: "v1", Kind: "Deployment"}:                true,
		{Group: "apps", Version: "v1beta1", Kind: "Deployment"}:           false,
		{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetrics"}: true,
		{Group: "example.com", Version: "v1", Kind: "Widget"}:             false,
	} {
		assert.Equal(t, is, read.Serves(kind), kind)
	}
}

func TestKindsAreNotKnownUnlessAClusterReportsThem(t *testing.T) {
	many := clusterrules.ServedKinds{}
	for i := range 2000 {
		many[fmt.Sprintf("group-%d.example.com/v1", i)] = []string{"Widget"}
	}
	assert.Equal(t, "too many kinds to report", many.Report())
	assert.Empty(t, clusterrules.ServedKinds{}.Report())
	value := clusterrules.ServedKinds{"v1": {"Secret"}}.Report()
	for _, said := range []string{"", "v1=Secret", ";", value[:16], many.Report(), strings.Replace(value, "Secret", "Pod", 1), value + ";x"} {
		_, known := clusterrules.ServedKindsOf(reporting(said))
		assert.False(t, known, said)
	}
	_, known := clusterrules.ServedKindsOf(&clusterv1beta1.MemberCluster{})
	assert.False(t, known, "an older agent reports none")
}

func TestOverridesDoNotReadTheKindsOfClusters(t *testing.T) {
	assert.False(t, clusterv1beta1.IsLasting(clusterv1beta1.ServedKindsProperty), "their authors need not be allowed to read them")
	assert.True(t, clusterv1beta1.IsLasting(clusterv1beta1.RegionProperty))
}

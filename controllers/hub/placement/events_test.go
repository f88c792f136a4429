package placement

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestTheNoteOfAnEventIsAsLongAsTheAPITakesIt(t *testing.T) {
	f := failure{cluster: "member1", FailedResourcePlacement: placementv1beta1.FailedResourcePlacement{
		ResourceIdentifier: placementv1beta1.ResourceIdentifier{Kind: "ConfigMap", Name: "config"},
	}}
	f.Condition.Message = "refused"
	assert.Equal(t, "Cluster member1: ConfigMap config: refused", f.describeFailure())
	f.Condition.Message = strings.Repeat("ä", 4000)
	assert.LessOrEqual(t, len(f.describeFailure()), 1024)
	assert.True(t, utf8.ValidString(f.describeFailure()))
	assert.True(t, strings.HasSuffix(f.describeFailure(), "ä…"))
}

func TestWhatWasChangedOrDiffersOnAClusterIsToldOfOnce(t *testing.T) {
	front := placementv1beta1.ResourceIdentifier{Kind: "Deployment", Namespace: "web", Name: "front"}
	details := []placementv1beta1.PatchDetail{{Path: "/spec/replicas", ValueInMember: "3", ValueInHub: "1"}}
	for range 6 {
		details = append(details, placementv1beta1.PatchDetail{Path: "/metadata/labels/a"})
	}
	entry := func(cluster string) placementv1beta1.PerClusterPlacementStatus {
		return placementv1beta1.PerClusterPlacementStatus{
			ClusterName:       cluster,
			DriftedPlacements: []placementv1beta1.DriftedResourcePlacement{{ResourceIdentifier: front, ObservedDrifts: details}, {}},
			DiffedPlacements:  []placementv1beta1.DiffedResourcePlacement{{ResourceIdentifier: front, ObservedDiffs: details[:1]}},
		}
	}
	before := []placementv1beta1.PerClusterPlacementStatus{entry("member1"), {ClusterName: "member2"}}
	after := []placementv1beta1.PerClusterPlacementStatus{entry("member1"), entry("member2"), {ClusterName: "member3"}}
	labels := strings.Repeat(", /metadata/labels/a", 4)
	assert.Equal(t, []finding{{"member2", "Cluster member2: 2 resource(s) were changed there, first Deployment web/front at /spec/replicas" + labels + ", 2 more"}},
		newFindings(before, after, describeDrifts))
	assert.Equal(t, []finding{{"member2", "Cluster member2: 1 resource(s) differ there, first Deployment web/front at /spec/replicas"}}, newFindings(before, after, describeDiffs))
}

func TestTheEventOfADriftSaysWhatToDo(t *testing.T) {
	assert.Contains(t, afterDrift(&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}), "kubectl fleet diff web shows")
	inside := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "app"}}
	assert.Contains(t, afterDrift(inside), "kubectl fleet diff -n team app shows")
}

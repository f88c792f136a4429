package membership

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// somewhere are the properties of a member in a region, with these zones.
func somewhere(region string, zones ...string) map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue {
	return map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.ProviderProperty: {Value: "aws"}, clusterv1beta1.RegionProperty: {Value: region},
		clusterv1beta1.ZonesProperty: {Value: strings.Join(zones, ",")},
	}
}

func TestLabelsOfWhereAMemberIs(t *testing.T) {
	assert.Equal(t, map[string]string{
		"fleetflow.io/provider": "aws", "topology.kubernetes.io/region": "eu-1", "topology.kubernetes.io/zone": "eu-1a", "zone.fleetflow.io/eu-1a": "",
	}, locationOf(somewhere("eu-1", "eu-1a")))
	assert.Equal(t, map[string]string{
		"fleetflow.io/provider": "aws", "topology.kubernetes.io/region": "eu-1", "zone.fleetflow.io/eu-1a": "", "zone.fleetflow.io/eu-1b": "",
	}, locationOf(somewhere("eu-1", "eu-1a", "eu-1b")), "a cluster in two zones is in none alone")
	assert.Empty(t, locationOf(nil))
	assert.Equal(t, map[string]string{"fleetflow.io/provider": "aws"}, locationOf(somewhere("no label", "no label")))
	var many []string
	for i := range 300 {
		many = append(many, fmt.Sprintf("z%03d", i))
	}
	assert.Len(t, locationOf(somewhere("eu-1", many...)), 2+clusterv1beta1.MaxReportedZones, "whatever a member says")
}

func TestTheHubChangesNoLabelsButItsOwn(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a", "topology.kubernetes.io/region": "by-hand"}}}
	move := func(properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) map[string]string {
		labels, note := relabel(member, locationOf(properties))
		member.Labels = labels
		if note != "" {
			metav1.SetMetaDataAnnotation(&member.ObjectMeta, clusterv1beta1.LocationLabelsAnnotation, note)
		}
		return labels
	}
	byHand := map[string]string{"team": "a", "topology.kubernetes.io/region": "by-hand"}
	with := func(more map[string]string) map[string]string {
		all := maps.Clone(byHand)
		maps.Copy(all, more)
		return all
	}
	inOne := map[string]string{"fleetflow.io/provider": "aws", "topology.kubernetes.io/zone": "a", "zone.fleetflow.io/a": ""}
	assert.Equal(t, with(inOne), move(somewhere("eu-1", "a")))
	assert.Equal(t, with(inOne), move(nil), "while it has no nodes, it is where it was")
	assert.Equal(t, with(map[string]string{"fleetflow.io/provider": "aws", "zone.fleetflow.io/b": "", "zone.fleetflow.io/c": ""}), move(somewhere("eu-1", "b", "c")))

	member.Labels["fleetflow.io/provider"] = "ours"
	assert.Equal(t, "ours", move(somewhere("eu-1", "b"))["fleetflow.io/provider"], "from now on it is somebody else's")
	assert.Equal(t, "ours", move(somewhere("eu-1", "b"))["fleetflow.io/provider"])
	delete(member.Labels, "topology.kubernetes.io/region")
	assert.Equal(t, "eu-2", move(somewhere("eu-2", "b"))["topology.kubernetes.io/region"])
	assert.Equal(t, "eu-3", move(somewhere("eu-3", "b"))["topology.kubernetes.io/region"])

	// A note that somebody has written gives the hub no other labels to change.
	forged, _ := json.Marshal(map[string]string{"team": "a"}) // strings always encode
	member.Annotations[clusterv1beta1.LocationLabelsAnnotation] = string(forged)
	assert.Equal(t, "a", move(somewhere("eu-3", "b"))["team"])
	assert.NotContains(t, member.Annotations[clusterv1beta1.LocationLabelsAnnotation], "team")
}

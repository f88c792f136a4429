package membership

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// locationOf returns the properties that tell where the nodes of a cluster are, and whose they are.
func locationOf(nodes []corev1.Node) map[clusterv1beta1.PropertyName]string {
	providers := map[string]bool{}
	regions := map[string]bool{}
	zones := map[string]bool{}
	for i := range nodes {
		node := &nodes[i]
		for value, found := range map[string]map[string]bool{
			providerOf(node.Spec.ProviderID): providers, node.Labels[corev1.LabelTopologyRegion]: regions,
		} {
			if value != "" {
				found[value] = true
			}
		}
		if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" {
			zones[zone] = true
		}
	}
	where := map[clusterv1beta1.PropertyName]string{
		clusterv1beta1.ProviderProperty: theOnly(providers), clusterv1beta1.RegionProperty: theOnly(regions),
	}
	if len(zones) > 0 {
		named := slices.Sorted(maps.Keys(zones))
		where[clusterv1beta1.ZonesProperty] = strings.Join(named[:min(len(named), clusterv1beta1.MaxReportedZones)], ",")
		where[clusterv1beta1.ZoneCountProperty] = strconv.Itoa(len(named))
	}
	return where
}

// providerOf returns who provides a node, as its provider ID begins.
func providerOf(id string) string {
	provider, _, _ := strings.Cut(id, ":")
	return provider
}

// theOnly returns what is found if that is one value; empty if not.
func theOnly(found map[string]bool) string {
	if len(found) != 1 {
		return ""
	}
	for value := range found {
		return value
	}
	return ""
}

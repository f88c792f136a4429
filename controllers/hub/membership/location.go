package membership

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// labelLocation labels a member with where it reports to be, if the hub is to do that.
func (r *Reconciler) labelLocation(ctx context.Context, member *clusterv1beta1.MemberCluster, box *clusterv1beta1.InternalMemberCluster) error {
	if !r.options.LocationLabels || box == nil {
		return nil
	}
	labels, noted := relabel(member, locationOf(box.Status.Properties))
	if maps.Equal(labels, member.Labels) && noted == member.Annotations[clusterv1beta1.LocationLabelsAnnotation] {
		return nil
	}
	base := member.DeepCopy()
	member.Labels = labels
	metav1.SetMetaDataAnnotation(&member.ObjectMeta, clusterv1beta1.LocationLabelsAnnotation, noted)
	if err := r.client.Patch(ctx, member.DeepCopy(), client.MergeFrom(base)); err != nil {
		return fmt.Errorf("labelling member cluster %s with its location: %w", member.Name, err)
	}
	return nil
}

// locationOf returns the labels of a member that reports these properties. What is no value of a label makes none.
func locationOf(properties map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue) map[string]string {
	labels := map[string]string{}
	put := func(key, value string) {
		if value != "" && len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
	put(clusterv1beta1.ProviderLabel, properties[clusterv1beta1.ProviderProperty].Value)
	put(corev1.LabelTopologyRegion, properties[clusterv1beta1.RegionProperty].Value)
	zones := strings.Split(properties[clusterv1beta1.ZonesProperty].Value, ",")
	if len(zones) == 1 {
		put(corev1.LabelTopologyZone, zones[0])
	}
	for _, zone := range zones[:min(len(zones), clusterv1beta1.MaxReportedZones)] {
		if key := clusterv1beta1.ZoneLabelPrefix + zone; len(validation.IsQualifiedName(key)) == 0 {
			labels[key] = ""
		}
	}
	return labels
}

// relabel returns the labels of a member that is somewhere, and a note of those that the hub has made. A label that is set by hand
// stays, and so does the last known one of what is not reported any more: nodes may come back.
func relabel(member *clusterv1beta1.MemberCluster, where map[string]string) (labels map[string]string, note string) {
	labels = maps.Clone(member.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	made := map[string]string{}
	if err := json.Unmarshal([]byte(member.Annotations[clusterv1beta1.LocationLabelsAnnotation]), &made); err != nil {
		made = map[string]string{} // what cannot be read was written by hand
	}
	maps.DeleteFunc(made, func(key, value string) bool {
		current, has := labels[key]
		return !has || current != value || !isLocationLabel(key)
	})
	dropLeftZones(labels, made, where)
	for key, value := range where {
		_, has := labels[key]
		if _, ours := made[key]; ours || !has {
			labels[key] = value
			made[key] = value
		}
	}
	if len(made) == 0 && member.Annotations[clusterv1beta1.LocationLabelsAnnotation] == "" {
		return labels, ""
	}
	data, _ := json.Marshal(made) // strings always encode
	return labels, string(data)
}

// dropLeftZones takes away the labels that the hub has made of zones in which a member is no more, as long as it is in any.
func dropLeftZones(labels, made, where map[string]string) {
	isOfZone := func(key string) bool { return strings.HasPrefix(key, clusterv1beta1.ZoneLabelPrefix) }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(where)), isOfZone) {
		return
	}
	for key := range made {
		if _, still := where[key]; !still && (key == corev1.LabelTopologyZone || isOfZone(key)) {
			delete(labels, key)
			delete(made, key)
		}
	}
}

// isLocationLabel reports whether a label tells where a cluster is: the hub changes no others for what a member reports.
func isLocationLabel(key string) bool {
	return key == clusterv1beta1.ProviderLabel || key == corev1.LabelTopologyRegion || key == corev1.LabelTopologyZone ||
		strings.HasPrefix(key, clusterv1beta1.ZoneLabelPrefix)
}

package convert

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxWeight is the greatest weight of a cluster.
const maxWeight = 1_000_000

// preferring converts how KubeFed divides replicas.
type preferring struct {
	*conversion
	// byID are the preferences by namespace, federated kind and name; those left over have no workload.
	byID map[string]*preference
}

// preference is a ReplicaSchedulingPreference.
type preference struct {
	in         Input
	rule       placementv1beta1.ReplicaSchedulingRule
	intersects bool
}

// share is what a preference says of a cluster.
type share struct {
	MinReplicas int64  `json:"minReplicas"`
	MaxReplicas *int64 `json:"maxReplicas"`
	Weight      int64  `json:"weight"`
}

func preferenceID(namespace, federatedKind, name string) string {
	return namespace + "/" + federatedKind + "/" + name
}

func (f *preferring) readPreference(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	kind := spec.text("targetKind")
	p := &preference{in: in, rule: placementv1beta1.ReplicaSchedulingRule{
		Type: placementv1beta1.ReplicasDivided, TotalReplicas: new(takeAs[int32](spec, "totalReplicas")),
	}}
	if spec.flag("rebalance") {
		p.rule.Rebalance = placementv1beta1.RebalanceAlways
	}
	p.intersects = spec.flag("intersectWithClusterSelector")
	shares := takeAs[map[string]share](spec, "clusters")
	f.noteRest(in, all)
	if kind != "FederatedDeployment" && kind != "FederatedReplicaSet" {
		f.addNote(in, "spec.targetKind", Ignored, "KubeFed divides a FederatedDeployment or FederatedReplicaSet, not %q", kind)
		return all.err()
	}
	if p.rule.Clusters = f.readShares(in, shares); len(p.rule.Clusters) > maxNames {
		f.addNote(in, "spec.clusters", Unsupported, "a rule has weights of at most %d clusters, and this has %d: the workload is not divided",
			maxNames, len(p.rule.Clusters))
		return all.err()
	}
	f.fitShares(in, &p.rule)
	f.byID[preferenceID(in.Object.GetNamespace(), kind, in.Object.GetName())] = p
	return all.err()
}

// readShares reads the clusters in the order of their names; the star is for all others and comes last.
func (f *preferring) readShares(in Input, shares map[string]share) []placementv1beta1.ClusterReplicas {
	var names []string
	for name := range shares {
		if name != "*" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if _, there := shares["*"]; there {
		names = append(names, "*")
	}
	var clusters []placementv1beta1.ClusterReplicas
	for _, name := range names {
		s := shares[name]
		field := "spec.clusters[" + name + "]"
		made := placementv1beta1.ClusterReplicas{Weight: new(int32(min(max(s.Weight, 0), maxWeight)))}
		var terms []placementv1beta1.ClusterSelectorTerm
		if name != "*" {
			terms = namedClusters([]string{f.memberName(in, "spec.clusters", name)}).ClusterSelectorTerms
		}
		if s.Weight > maxWeight {
			f.addNote(in, field+".weight", Changed, "the greatest weight is %d", maxWeight)
		}
		if s.MinReplicas > 0 {
			made.MinReplicas = new(int32(s.MinReplicas)) //nolint:gosec // more replicas than an int32 has no workload
			f.noteMinimum(in, field, s)
		}
		if s.MaxReplicas != nil {
			made.MaxReplicas = new(int32(*s.MaxReplicas)) //nolint:gosec // more replicas than an int32 has no workload
			if made.MinReplicas != nil && *made.MinReplicas > *made.MaxReplicas {
				f.addNote(in, field+".minReplicas", Changed, "it is above maxReplicas, and becomes %d", *made.MaxReplicas)
				made.MinReplicas = made.MaxReplicas
			}
		}
		clusters = append(clusters, sharesFor(terms, made)...)
	}
	return clusters
}

// fitShares makes a rule of what a division refuses: KubeFed gave minima while replicas lasted, those of the heaviest first, and
// nothing if no cluster had a weight.
func (f *preferring) fitShares(in Input, rule *placementv1beta1.ReplicaSchedulingRule) {
	if len(rule.Clusters) == 0 {
		return
	}
	heaviest := make([]*placementv1beta1.ClusterReplicas, len(rule.Clusters))
	for i := range rule.Clusters {
		heaviest[i] = &rule.Clusters[i]
	}
	slices.SortStableFunc(heaviest, func(a, b *placementv1beta1.ClusterReplicas) int { return cmp.Compare(*b.Weight, *a.Weight) })
	left := *rule.TotalReplicas
	canGet := false
	for _, cluster := range heaviest {
		least := min(ptr.Deref(cluster.MinReplicas, 0), left)
		if cluster.MinReplicas != nil && *cluster.MinReplicas != least {
			f.addNote(in, "spec.clusters", Changed, "totalReplicas is less than all minReplicas: one of %d becomes %d, as KubeFed had it",
				*cluster.MinReplicas, least)
			cluster.MinReplicas = new(least)
		}
		left -= least
		canGet = canGet || least > 0 || *cluster.Weight > 0 && ptr.Deref(cluster.MaxReplicas, 1) > 0
	}
	if !canGet {
		f.addNote(in, "spec.clusters", Changed, "no cluster gets a replica, as before: totalReplicas becomes 0")
		rule.Clusters = nil
		rule.TotalReplicas = ptr.To[int32](0)
	}
}

// noteMinimum notes where a minimum acts otherwise: KubeFed adds the share of the weight to it.
func (f *preferring) noteMinimum(in Input, field string, s share) {
	if s.Weight > 0 {
		f.addNote(in, field+".minReplicas", Changed, "it is the least that the cluster gets; KubeFed gave it that, and the share of its weight in the rest")
	}
}

// usePreference divides a workload if a preference names it.
func (f *preferring) usePreference(x *federated) {
	id := preferenceID(x.in.Object.GetNamespace(), x.in.Object.GetKind(), x.in.Object.GetName())
	p := f.byID[id]
	if p == nil {
		return
	}
	delete(f.byID, id)
	if x.object.GetAnnotations()[retainReplicas] != "" {
		f.addNote(x.in, "spec.retainReplicas", Changed, "the preference has the last word: the workload's replicas are divided, not retained")
		annotations := x.object.GetAnnotations()
		delete(annotations, retainReplicas)
		x.object.SetAnnotations(annotations)
	}
	rule := p.rule
	gvk := x.object.GroupVersionKind()
	rule.Selector = &placementv1beta1.WorkloadSelector{Group: gvk.Group, Kind: gvk.Kind, Namespace: x.object.GetNamespace(),
		Name: x.object.GetName()}
	x.divided = &rule
	x.rules = f.withoutReplicas(x)
	f.comments[x.in.name()] = append(f.comments[x.in.name()], f.comments[p.in.name()]...)
	f.usePreferredClusters(x, p)
}

// usePreferredClusters places a divided workload where its preference does.
func (f *preferring) usePreferredClusters(x *federated, p *preference) {
	switch {
	case p.intersects && x.selector != nil:
		x.targets = clustersMatching(*x.selector)
	case p.intersects:
		f.addNote(x.in, "spec.placement", Changed, "there is no clusterSelector, and KubeFed divided nothing (intersectWithClusterSelector is true): the replicas are divided over the clusters of the placement")
	default:
		if !x.targets.isNowhere() && !x.targets.isEverywhere() {
			f.addNote(x.in, "spec.placement", Changed, "the preference decides on all clusters, whatever the placement says (intersectWithClusterSelector is false)")
		}
		x.targets = targets{}
	}
}

// withoutReplicas returns the overrides of a divided workload without those of its replicas, which KubeFed has written itself.
func (f *preferring) withoutReplicas(x *federated) []placementv1beta1.OverrideRule {
	var kept []placementv1beta1.OverrideRule
	noted := false
	for _, rule := range x.rules {
		rule.JSONPatchOverrides = slices.DeleteFunc(rule.JSONPatchOverrides, func(p placementv1beta1.JSONPatchOverride) bool {
			if p.Path == "/spec/replicas" && !noted {
				noted = true
				f.addNote(x.in, "spec.overrides", Ignored, "overrides of /spec/replicas are left out: the preference writes them")
			}
			return p.Path == "/spec/replicas"
		})
		if len(rule.JSONPatchOverrides) > 0 {
			kept = append(kept, rule)
		}
	}
	return kept
}

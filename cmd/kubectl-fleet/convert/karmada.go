package convert

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// karmadaDomain ends Karmada's API groups.
const karmadaDomain = "karmada.io"

// karmadaWithout are kinds of Karmada that have no counterpart, with what there is instead.
var karmadaWithout = map[string]string{
	"ResourceInterpreterCustomization":        "what a kind's state means is built in here; other kinds count as available once they are applied",
	"ResourceInterpreterWebhookConfiguration": "what a kind's state means is built in here; other kinds count as available once they are applied",
	"FederatedResourceQuota":                  "place a ResourceQuota, with an override where clusters differ",
	"ClusterTaintPolicy":                      "set taints on MemberClusters",
	"FederatedHPA":                            "place a HorizontalPodAutoscaler, and do not divide the replicas of its workload",
	"CronFederatedHPA":                        "scale the workload on the hub",
	"MultiClusterService":                     "use the multi-cluster services of your network",
	"MultiClusterIngress":                     "place the Ingress on the clusters that serve it",
	"ResourceBinding":                         "it is made of a policy: convert that",
	"ClusterResourceBinding":                  "it is made of a policy: convert that",
	"Work":                                    "it is made of a policy: convert that",
}

// clusterScoped are kinds of Kubernetes that are in no namespace. Custom ones are told by their definitions in the input.
var clusterScoped = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PersistentVolume", "StorageClass", "PriorityClass",
	"IngressClass", "RuntimeClass", "VolumeSnapshotClass", "GatewayClass", "APIService", "CSIDriver", "FlowSchema",
	"PriorityLevelConfiguration",
	"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
}

// propagation converts what Karmada has.
type propagation struct {
	*conversion
	// brought are the namespaces that a placement of the output takes to the members, needed are those with a placement in them.
	brought, needed map[string]bool
	policies        *policyReader
	overriding      *overriding
}

// policyReader reads how a policy of Karmada places: where, when it lets go, and in which order.
type policyReader struct {
	*conversion
	clusters *clusterReader
	// rulesOfPolicy are, by override policy, the objects that it changes.
	rulesOfPolicy map[string][]*objectRules
}

// clusterReader reads which clusters a policy of Karmada chooses, and how it divides replicas over them.
type clusterReader struct{ *conversion }

// overriding converts the override policies of Karmada.
type overriding struct {
	*conversion
	clusters *clusterReader
	// overrides gathers rules by the object that they change.
	overrides map[string]*objectRules
	// rulesOfPolicy are, by override policy, the objects that it changes.
	rulesOfPolicy map[string][]*objectRules
}

// objectRules are the rules of one object, of all policies that select it.
type objectRules struct {
	in     Input
	object *unstructured.Unstructured
	rules  []placementv1beta1.OverrideRule
}

func newPropagation(c *conversion) *propagation {
	clusters := &clusterReader{c}
	rules := map[string][]*objectRules{}
	return &propagation{
		conversion: c, brought: map[string]bool{}, needed: map[string]bool{}, policies: &policyReader{c, clusters, rules},
		overriding: &overriding{c, clusters, map[string]*objectRules{}, rules},
	}
}

func (p *propagation) convert(inputs []Input) error {
	// Karmada applies cluster-scoped override policies first, and policies in the order of their names.
	inputs = slices.Clone(inputs)
	slices.SortStableFunc(inputs, func(a, b Input) int {
		return strings.Compare(a.Object.GetKind()+"/"+a.Object.GetName(), b.Object.GetKind()+"/"+b.Object.GetName())
	})
	for _, in := range inputs {
		if err := p.convertOne(in); err != nil {
			return fmt.Errorf("%s: %s: %w", in.Source, in.name(), err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.overriding.overrides)) {
		if err := p.overriding.addRules(p.overriding.overrides[id]); err != nil {
			return err
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(p.needed)) {
		if err := p.bringNamespace(namespace); err != nil {
			return err
		}
	}
	if len(inputs) > 0 {
		p.addStep("1. set preserveResourcesOnDeletion: true on the policies, or delete policies only, never what they place")
		p.addStep("2. kubectl -n karmada-system scale deployment karmada-controller-manager --replicas 0")
		p.addStep("3. apply this, converted with --report-diff, and look at what would change: kubectl fleet diff")
		p.addStep("4. apply this, converted without --report-diff, with whenToTakeOver: Always until everything is applied: Never refuses what Karmada has placed")
		p.addStep("5. remove the labels and annotations of karmada.io where they are no longer wanted")
	}
	return nil
}

func (p *propagation) convertOne(in Input) error {
	switch kind := in.Object.GetKind(); kind {
	case "PropagationPolicy", "ClusterPropagationPolicy":
		return p.convertPolicy(in)
	case "OverridePolicy", "ClusterOverridePolicy":
		return p.overriding.convertOverrides(in)
	case "Cluster":
		return p.convertCluster(in)
	case "WorkloadRebalancer":
		return p.convertRebalancer(in)
	default:
		p.addNote(in, "", Unsupported, "%s", cmp.Or(karmadaWithout[kind], "there is no counterpart of this kind"))
		return nil
	}
}

func (p *propagation) convertCluster(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	region := spec.text("region")
	provider := spec.text("provider")
	zones := takeAs[[]string](spec, "zones")
	if zone := spec.text("zone"); zone != "" && len(zones) == 0 {
		zones = []string{zone}
	}
	labels := maps.Clone(in.Object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	p.addJoin(p.memberName(in, "metadata.name", in.Object.GetName()), p.locationLabels(labels, region, provider, zones))
	p.addNote(in, "", Changed, "the cluster joins with kubectl fleet join; secrets and addresses are not converted, as members come to the hub")
	if taints := takeAs[[]map[string]any](spec, "taints"); len(taints) > 0 {
		p.addNote(in, "spec.taints", Unsupported, "set the taints on the MemberCluster once it has joined")
	}
	return all.err()
}

// selected are the selectors of a policy, by the namespace of what they select; cluster-scoped objects have none.
type selected map[string][]placedTerm

func (p *propagation) convertPolicy(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	chosen := p.readSelectors(in, spec)
	placing := p.policies.readPolicy(in, spec)
	dependencies := spec.flag("propagateDeps")
	if spec.flag("association") {
		p.addNote(in, "spec.association", Ignored, "Karmada never looked at it")
	}
	p.noteRest(in, all)
	if err := all.err(); err != nil {
		return err
	}
	for _, namespace := range slices.Sorted(maps.Keys(chosen)) {
		terms := p.withoutOverlaps(in, namespace, chosen[namespace])
		made := placementv1beta1.PlacementSpec{
			ResourceSelectors: terms, Policy: placing.policy, Strategy: placing.strategy,
			Priority: &placing.priority, Preemption: placing.preemption, PropagateDeps: dependencies && namespace != "",
			RequiredOverrides: placing.required,
		}
		if len(terms) > maxSelectors {
			p.addNote(in, "spec.resourceSelectors", Unsupported, "a placement has at most %d selectors: the rest is left out", maxSelectors)
			made.ResourceSelectors = made.ResourceSelectors[:maxSelectors]
		}
		if namespace != "" {
			p.needed[namespace] = true
		}
		comments := slices.Clone(p.comments[in.name()])
		if !p.SafeRollout {
			comments = append(comments, atOnce)
		}
		if err := p.addPlacementOf(in.Object.GetName(), namespace, made, comments); err != nil {
			return err
		}
	}
	return nil
}

// readSelectors reads what a policy places.
func (p *propagation) readSelectors(in Input, spec fields) selected {
	chosen := selected{}
	for _, item := range spec.list("resourceSelectors") {
		s := readSelector(item)
		namespace, places := p.placedIn(in, item, s)
		if !places {
			continue
		}
		if s.Kind == "Namespace" {
			s.SelectionScope = placementv1beta1.NamespaceOnly
			p.brought[s.Name] = true
		}
		if s.Kind == "Secret" && s.Name == "" && s.LabelSelector == nil {
			p.addNote(in, item.path, Changed, "it places every Secret of the namespace")
		}
		chosen[namespace] = append(chosen[namespace], placedTerm{ResourceSelectorTerm: s.ResourceSelectorTerm, path: item.path})
	}
	return chosen
}

// placedIn returns the namespace of what a selector of a policy selects; empty if that is cluster-scoped. It is false if the selector
// places nothing here.
func (p *propagation) placedIn(in Input, item fields, s karmadaSelector) (namespace string, places bool) {
	if s.ignoredLabels {
		p.addNote(in, item.pathOf("labelSelector"), Ignored, "Karmada looks at labels only if there is no name")
	}
	namespace = cmp.Or(in.Object.GetNamespace(), s.namespace)
	switch isClusterScoped := p.isClusterScoped(s.Kind); {
	case isClusterScoped && in.Object.GetNamespace() == "":
		return "", true
	case isClusterScoped:
		p.addNote(in, item.path, Ignored, "a PropagationPolicy does not place cluster-scoped objects")
	case namespace == "" && knownTypes[s.Kind].Version != "":
		p.addNote(in, item.path+".namespace", Unsupported, "the selector is left out: it is for all namespaces. Name each of them, in a selector of its own")
	case namespace != "" && snapshot.ReservedNamespace(namespace):
		p.addNote(in, item.path+".namespace", Unsupported, "the selector is left out: namespace %s is reserved, and nothing in it is ever placed", namespace)
	default:
		return namespace, true
	}
	return "", false
}

// karmadaSelector is a selector with the namespace of what it selects.
type karmadaSelector struct {
	placementv1beta1.ResourceSelectorTerm
	namespace string
	// ignoredLabels says that there are labels beside the name, at which Karmada does not look.
	ignoredLabels bool
}

func readSelector(item fields) (s karmadaSelector) {
	gv, err := schema.ParseGroupVersion(item.text("apiVersion"))
	if err != nil {
		item.fail(item.pathOf("apiVersion"), err)
	}
	s.Group = gv.Group
	s.Version = gv.Version
	if s.Kind = item.text("kind"); s.Kind == "" || s.Version == "" {
		item.fail(item.path, errors.New("apiVersion and kind are required"))
	}
	s.namespace = item.text("namespace")
	s.Name = item.text("name")
	labels := takeAs[*metav1.LabelSelector](item, "labelSelector")
	if s.Name == "" {
		s.LabelSelector = labels
	} else {
		s.ignoredLabels = labels != nil
	}
	return s
}

// isClusterScoped reports whether a kind is in no namespace.
func (c *conversion) isClusterScoped(kind string) bool {
	if slices.Contains(clusterScoped, kind) {
		return true
	}
	for _, in := range c.templates {
		if in.Object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		of, _, _ := unstructured.NestedString(in.Object.Object, "spec", "names", "kind") // an odd definition tells nothing
		scope, _, _ := unstructured.NestedString(in.Object.Object, "spec", "scope")
		if of == kind {
			return scope == "Cluster"
		}
	}
	return false
}

// bringNamespace places a namespace on all clusters, as Karmada does with every namespace. A placement in it does not.
func (p *propagation) bringNamespace(namespace string) error {
	if p.brought[namespace] {
		return nil
	}
	spec := placementv1beta1.PlacementSpec{
		ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{
			Version: "v1", Kind: "Namespace", Name: namespace, SelectionScope: placementv1beta1.NamespaceOnly,
		}},
		Policy:   &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
		Strategy: p.defaultStrategy(),
	}
	spec.Strategy.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}
	return p.addPlacementOf(joinedName("namespace", namespace), "", spec, []string{"Karmada brings every namespace to all clusters by itself"})
}

// placing is where and how a policy places.
type placing struct {
	policy   *placementv1beta1.PlacementPolicy
	strategy *placementv1beta1.RolloutStrategy
	// priority and preemption say which policy has an object that several select.
	priority   int32
	preemption placementv1beta1.Preemption
	// required are the overrides without which nothing is placed.
	required []placementv1beta1.RequiredOverride
}

// readPolicy reads where and how a policy places.
func (p *policyReader) readPolicy(in Input, spec fields) placing {
	made := placing{strategy: p.defaultStrategy()}
	placement := spec.sub("placement")
	made.policy = p.clusters.readClusters(in, placement)
	p.clusters.readTolerations(in, placement, made.policy)
	p.clusters.readDivision(in, placement, made.policy)
	p.readFailover(in, spec, made)
	p.readPriority(in, spec, &made)
	p.readScheduling(in, spec, &made)
	made.required = p.readRequired(in, spec)
	p.readStrategy(in, spec, made.strategy)
	return made
}

// readPriority reads which policy has an object that several select. A placement gets a priority even if the policy has none: two
// placements without one may both place an object.
func (p *policyReader) readPriority(in Input, spec fields, made *placing) {
	made.priority = takeAs[int32](spec, "priority")
	switch made.preemption = takeAs[placementv1beta1.Preemption](spec, "preemption"); made.preemption {
	case placementv1beta1.PreemptionAlways, "":
	case placementv1beta1.PreemptionNever:
		made.preemption = "" // as if it were absent
	default:
		p.addNote(in, "spec.preemption", Unsupported, "it is Never or Always")
		made.preemption = ""
	}
}

// readClusters reads which clusters a policy places on.
func (p *clusterReader) readClusters(in Input, placement fields) *placementv1beta1.PlacementPolicy {
	if groups := placement.list("clusterAffinities"); len(groups) > 0 {
		return p.readGroups(in, groups)
	}
	if affinity := placement.sub("clusterAffinity"); len(affinity.content) > 0 {
		return p.readAffinity(in, affinity)
	}
	return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
}

// maxGroups is how many groups of clusters a policy can have.
const maxGroups = 10

// readGroups reads groups of clusters, of which the first is taken that has enough.
func (p *clusterReader) readGroups(in Input, groups []fields) *placementv1beta1.PlacementPolicy {
	policy := &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	for i, group := range groups {
		given := group.text("affinityName")
		terms := p.readTerms(in, group)
		if i == maxGroups {
			p.addNote(in, group.path, Unsupported, "there are at most %d groups: this one, and those after it, are left out", maxGroups)
		}
		overflow := group.list("overflowAffinities")
		group.take("overflowAffinities")
		if len(overflow) > 0 && len(groups) > 1 {
			p.addNote(in, group.path+".overflowAffinities", Unsupported, "one of several groups does not overflow: they are left out")
			overflow = nil
		}
		if i >= maxGroups {
			continue
		}
		p.addGroup(in, group.pathOf("affinityName"), policy, given, terms)
		p.readOverflow(in, overflow, policy, given)
	}
	return policy
}

// readOverflow reads the groups that take what the group of a policy has no room for.
func (p *clusterReader) readOverflow(in Input, groups []fields, policy *placementv1beta1.PlacementPolicy, first string) {
	for i, group := range groups {
		given := group.text("affinityName")
		terms := p.readTerms(in, group)
		p.noteRest(in, group)
		if len(policy.AffinityGroups) == maxGroups {
			p.addNote(in, group.path, Unsupported, "there are at most %d groups: this one, and those after it, are left out", maxGroups)
			break
		}
		policy.AffinityGroupMode = placementv1beta1.AffinityGroupOverflow
		p.addGroup(in, group.pathOf("affinityName"), policy, cmp.Or(given, fmt.Sprintf("%.20s-overflow-%d", first, i+1)), terms)
	}
}

// addGroup adds a group of clusters to a policy.
func (p *clusterReader) addGroup(in Input, path string, policy *placementv1beta1.PlacementPolicy, given string,
	terms []placementv1beta1.ClusterSelectorTerm) {
	name := strings.Trim(strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(given)), "-")
	if name != given {
		p.addNote(in, path, Changed, "a group's name has lower-case letters, digits and hyphens: %s becomes %s", given, name)
	}
	if matchesAll(terms) {
		terms = []placementv1beta1.ClusterSelectorTerm{}
	}
	policy.AffinityGroups = append(policy.AffinityGroups, placementv1beta1.AffinityGroup{
		Name: name, ClusterSelector: placementv1beta1.ClusterSelector{ClusterSelectorTerms: terms},
	})
}

func (p *clusterReader) readAffinity(in Input, affinity fields) *placementv1beta1.PlacementPolicy {
	terms := p.readTerms(in, affinity)
	if names := namesIn(terms); p.PickFixed && len(names) > 0 {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickFixedPlacementType, ClusterNames: names}
	}
	if len(terms) == 1 && terms[0].LabelSelector == nil {
		return &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType}
	}
	return requireTerms(terms)
}

// namesIn returns the names of clusters if terms are one that says nothing but names.
func namesIn(terms []placementv1beta1.ClusterSelectorTerm) []string {
	if len(terms) != 1 || terms[0].LabelSelector == nil || len(terms[0].LabelSelector.MatchLabels) > 0 ||
		len(terms[0].LabelSelector.MatchExpressions) != 1 {
		return nil
	}
	if only := terms[0].LabelSelector.MatchExpressions[0]; only.Key == clusterv1beta1.MemberNameLabel &&
		only.Operator == metav1.LabelSelectorOpIn {
		return only.Values
	}
	return nil
}

// readTerms reads the clusters that an affinity matches: usually one term, and one of each zone that it names.
func (p *clusterReader) readTerms(in Input, affinity fields) []placementv1beta1.ClusterSelectorTerm {
	labels := takeAs[metav1.LabelSelector](affinity, "labelSelector")
	named := takeAs[[]string](affinity, "clusterNames")
	excluded := takeAs[[]string](affinity, "exclude")
	for _, names := range []*[]string{&named, &excluded} {
		for i, name := range *names {
			(*names)[i] = p.memberName(in, affinity.path, name)
		}
		slices.Sort(*names)
		*names = slices.Compact(*names)
		if len(*names) > maxNames {
			p.addNote(in, affinity.path, Unsupported, "a term names at most %d clusters: the rest is left out; use a label", maxNames)
			*names = (*names)[:maxNames]
		}
	}
	if len(named) > 0 {
		labels.MatchExpressions = append(labels.MatchExpressions, clusterv1beta1.SelectNames(named...).MatchExpressions...)
	}
	if len(excluded) > 0 {
		labels.MatchExpressions = append(labels.MatchExpressions, clusterv1beta1.SelectOtherNames(excluded...).MatchExpressions...)
	}
	zones := p.readFields(in, affinity, &labels)
	if len(zones) == 0 {
		term := placementv1beta1.ClusterSelectorTerm{}
		if len(labels.MatchLabels)+len(labels.MatchExpressions) > 0 {
			term.LabelSelector = &labels
		}
		return []placementv1beta1.ClusterSelectorTerm{term}
	}
	if len(zones) > maxTerms {
		p.addNote(in, affinity.path+".fieldSelector", Unsupported, "at most %d zones can be named: the rest is left out; use a label", maxTerms)
		zones = zones[:maxTerms]
	}
	var terms []placementv1beta1.ClusterSelectorTerm
	for _, zone := range zones {
		selector := labels.DeepCopy()
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: clusterv1beta1.ZoneLabelPrefix + zone, Operator: metav1.LabelSelectorOpExists,
		})
		terms = append(terms, placementv1beta1.ClusterSelectorTerm{LabelSelector: selector})
	}
	return terms
}

// readFields reads requirements on fields of clusters, which are labels here. It returns the zones of which a cluster has to be in
// one.
func (p *clusterReader) readFields(in Input, affinity fields, labels *metav1.LabelSelector) (zones []string) {
	selector := affinity.sub("fieldSelector")
	for _, r := range takeAs[[]metav1.LabelSelectorRequirement](selector, "matchExpressions") {
		label := map[string]string{"region": p.RegionLabel, "provider": p.ProviderLabel}[r.Key]
		switch {
		case r.Key == "zone" && r.Operator == metav1.LabelSelectorOpIn:
			zones = append(zones, r.Values...)
		case r.Key == "zone":
			for _, zone := range r.Values {
				labels.MatchExpressions = append(labels.MatchExpressions, metav1.LabelSelectorRequirement{
					Key: clusterv1beta1.ZoneLabelPrefix + zone, Operator: metav1.LabelSelectorOpDoesNotExist,
				})
			}
		case label == "":
			p.addNote(in, selector.path, Unsupported, "field %s of clusters is not known: use a label", r.Key)
		default:
			labels.MatchExpressions = append(labels.MatchExpressions,
				metav1.LabelSelectorRequirement{Key: label, Operator: r.Operator, Values: r.Values})
		}
	}
	return zones
}

// readTolerations reads tolerations.
func (p *clusterReader) readTolerations(in Input, placement fields, policy *placementv1beta1.PlacementPolicy) {
	for _, item := range placement.list("clusterTolerations") {
		made := placementv1beta1.Toleration{
			Key: item.text("key"), Operator: takeAs[corev1.TolerationOperator](item, "operator"), Value: item.text("value"),
			Effect: takeAs[corev1.TaintEffect](item, "effect"), TolerationSeconds: takeAs[*int64](item, "tolerationSeconds"),
		}
		switch {
		case made.Operator != "" && made.Operator != corev1.TolerationOpEqual && made.Operator != corev1.TolerationOpExists:
			p.addNote(in, item.path+".operator", Unsupported, "the toleration is left out: an operator is Equal or Exists")
		case policy.PlacementType == placementv1beta1.PickFixedPlacementType:
			p.addNote(in, item.path, Ignored, "clusters that are named are placed on whatever their taints")
		default:
			policy.Tolerations = append(policy.Tolerations, made)
		}
	}
}

// readStrategy reads how a policy writes and removes.
func (p *policyReader) readStrategy(in Input, spec fields, s *placementv1beta1.RolloutStrategy) {
	apply := ptr.Deref(s.ApplyStrategy, placementv1beta1.ApplyStrategy{})
	apply.WhenToTakeOver = placementv1beta1.WhenToTakeOverTypeNever
	if spec.text("conflictResolution") == "Overwrite" {
		apply.WhenToTakeOver = placementv1beta1.WhenToTakeOverTypeAlways
	}
	s.ApplyStrategy = &apply
	s.DeleteStrategy = &placementv1beta1.DeleteStrategy{PropagationPolicy: placementv1beta1.DeletePropagationPolicyAbandon}
	if spec.flag("preserveResourcesOnDeletion") {
		s.DeleteStrategy.RemovedResources = placementv1beta1.DeletePropagationPolicyAbandon
	}
	suspension := spec.sub("suspension")
	clusters := suspension.sub("dispatchingOnClusters")
	made := placementv1beta1.Suspension{All: suspension.flag("dispatching"), ClusterNames: takeAs[[]string](clusters, "clusterNames")}
	for i, name := range made.ClusterNames {
		made.ClusterNames[i] = p.memberName(in, clusters.pathOf("clusterNames"), name)
	}
	if made.All || len(made.ClusterNames) > 0 {
		p.addNote(in, "spec.suspension", Changed, "removals wait, too; Karmada went on deleting")
		s.Suspension = &made
	}
}

package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// kubefedDomain ends KubeFed's API groups and begins its annotations.
const (
	kubefedDomain           = "kubefed.io"
	orphanAnnotation        = "kubefed.io/orphan"
	deleteOptionAnnotation  = "kubefed.io/deleteoption"
	retainReplicas          = placementv1beta1.RetainReplicasAnnotation
	lastAppliedByKubectl    = "kubectl.kubernetes.io/last-applied-configuration"
	federatedPrefix         = "Federated"
	preferenceKind          = "ReplicaSchedulingPreference"
	federatedNamespaceKind  = "FederatedNamespace"
	enabled, disabledOption = "Enabled", "Disabled"
)

// knownTypes are the API versions of kinds whose templates do not say theirs, and of whose FederatedTypeConfig there is none: those
// that KubeFed's chart enables, and more of Kubernetes' own.
var knownTypes = map[string]schema.GroupVersion{
	"ClusterRole":        {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"ClusterRoleBinding": {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"Role":               {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"RoleBinding":        {Group: "rbac.authorization.k8s.io", Version: "v1"},
	"ConfigMap":          {Version: "v1"}, "Secret": {Version: "v1"}, "Service": {Version: "v1"}, "ServiceAccount": {Version: "v1"},
	"Namespace": {Version: "v1"}, "PersistentVolumeClaim": {Version: "v1"}, "ResourceQuota": {Version: "v1"}, "LimitRange": {Version: "v1"},
	"Deployment": {Group: "apps", Version: "v1"}, "ReplicaSet": {Group: "apps", Version: "v1"},
	"StatefulSet": {Group: "apps", Version: "v1"}, "DaemonSet": {Group: "apps", Version: "v1"},
	"Job": {Group: "batch", Version: "v1"}, "CronJob": {Group: "batch", Version: "v1"},
	"Ingress": {Group: "networking.k8s.io", Version: "v1"}, "NetworkPolicy": {Group: "networking.k8s.io", Version: "v1"},
	"HorizontalPodAutoscaler": {Group: "autoscaling", Version: "v2"}, "PodDisruptionBudget": {Group: "policy", Version: "v1"},
	"CustomResourceDefinition": {Group: "apiextensions.k8s.io", Version: "v1"}, "PriorityClass": {Group: "scheduling.k8s.io", Version: "v1"},
	"StorageClass": {Group: "storage.k8s.io", Version: "v1"}, "IngressClass": {Group: "networking.k8s.io", Version: "v1"},
}

// withoutCounterpart are kinds of KubeFed that have no counterpart, with what takes their place.
var withoutCounterpart = map[string]string{
	"ClusterPropagatedVersion": "KubeFed keeps its own state in it; the state here is in Works and bindings",
	"PropagatedVersion":        "KubeFed keeps its own state in it; the state here is in Works and bindings",
	"FederatedServiceStatus":   "the state of a Service on members is in the status of Works if reportBackStrategy asks for it",
}

// federation converts what KubeFed has.
type federation struct {
	*conversion
	// types are target types by the federated kind, reported those whose status is collected.
	types       map[string]schema.GroupVersionKind
	reported    map[string]bool
	preferences *preferring
	// takeOver is empty if the input does not say whether what members have is adopted.
	takeOver placementv1beta1.WhenToTakeOverType
	// namespaces are FederatedNamespaces by name.
	namespaces map[string]*federated
	names      map[string]bool
}

// federated is one federated object.
type federated struct {
	in      Input
	object  *unstructured.Unstructured
	targets targets
	// selector is that of the placement, whether it has an effect or not.
	selector *metav1.LabelSelector
	rules    []placementv1beta1.OverrideRule
	abandon  bool
	report   bool
	divided  *placementv1beta1.ReplicaSchedulingRule
}

func newFederation(c *conversion) *federation {
	return &federation{
		conversion: c, types: map[string]schema.GroupVersionKind{}, reported: map[string]bool{},
		preferences: &preferring{c, map[string]*preference{}}, namespaces: map[string]*federated{}, names: map[string]bool{},
	}
}

func (f *federation) convert(inputs []Input) error {
	var objects []*federated
	for _, in := range inputs {
		if err := f.readSettings(in); err != nil {
			return fmt.Errorf("%s: %s: %w", in.Source, in.name(), err)
		}
	}
	for _, in := range inputs {
		if !strings.HasPrefix(in.Object.GetKind(), federatedPrefix) || in.Object.GetKind() == "FederatedTypeConfig" ||
			withoutCounterpart[in.Object.GetKind()] != "" {
			continue
		}
		object, err := f.readFederated(in)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", in.Source, in.name(), err)
		}
		switch {
		case object == nil:
		case in.Object.GetKind() == federatedNamespaceKind:
			f.namespaces[object.object.GetName()] = object
		default:
			objects = append(objects, object)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(f.preferences.byID)) {
		f.addNote(f.preferences.byID[id].in, "", Changed, "its workload is not in the input: nothing is divided")
	}
	if len(inputs) > 0 {
		f.addSteps()
	}
	return f.makePlacements(objects)
}

// addSteps adds the steps of handing over from KubeFed.
func (f *federation) addSteps() {
	f.addStep("1. kubectl annotate every federated object with kubefed.io/orphan=true, and wait until KubeFed has seen it")
	f.addStep("2. kubectl -n kube-federation-system scale deployment kubefed-controller-manager --replicas 0")
	f.addStep("3. apply this, converted with --report-diff, and look at what would change: kubectl fleet diff")
	f.addStep("4. apply this, converted without --report-diff")
	f.addStep("5. remove the label kubefed.io/managed where it is no longer wanted")
}

// readSettings reads what is not itself placed.
func (f *federation) readSettings(in Input) error {
	kind := in.Object.GetKind()
	if why := withoutCounterpart[kind]; why != "" {
		f.addNote(in, "", Unsupported, "%s", why)
		return nil
	}
	switch kind {
	case "FederatedTypeConfig":
		return f.readType(in)
	case preferenceKind:
		return f.preferences.readPreference(in)
	case "KubeFedCluster":
		return f.readCluster(in)
	case "KubeFedConfig":
		return f.readConfig(in)
	}
	if !strings.HasPrefix(kind, federatedPrefix) {
		f.addNote(in, "", Unsupported, "there is no counterpart of this kind")
	}
	return nil
}

// apiResource names a kind as FederatedTypeConfigs do.
type apiResource struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	PluralName string `json:"pluralName"`
	Scope      string `json:"scope"`
}

func (f *federation) readType(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	target := takeAs[apiResource](spec, "targetType")
	kind := cmp.Or(takeAs[apiResource](spec, "federatedType").Kind, federatedPrefix+target.Kind)
	takeAs[apiResource](spec, "statusType")
	propagation := spec.text("propagation")
	f.types[kind] = schema.GroupVersionKind{Group: target.Group, Version: target.Version, Kind: target.Kind}
	f.reported[kind] = spec.text("statusCollection") == enabled
	f.noteRest(in, all)
	if all.err() != nil || propagation != disabledOption {
		return all.err()
	}
	disabled := &fleetflowv1alpha1.PropagatedType{
		ObjectMeta: metav1.ObjectMeta{Name: in.Object.GetName()},
		Spec:       fleetflowv1alpha1.PropagatedTypeSpec{Propagation: fleetflowv1alpha1.PropagationDisabled},
	}
	f.addNote(in, "spec.propagation", Changed, "members go on repairing what was placed before it was disabled")
	made, err := toManifest(disabled, "PropagatedType", fleetflowv1alpha1.GroupVersion.String())
	if err != nil {
		return err
	}
	f.addManifest(in, made)
	return nil
}

// readCluster returns how the cluster joins: our members come to the hub, so no secret is converted.
func (f *federation) readCluster(in Input) error {
	labels := maps.Clone(in.Object.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	region, _, err := unstructured.NestedString(in.Object.Object, "status", "region")
	if err != nil {
		return fmt.Errorf("status.region: %w", err)
	}
	zones, _, err := unstructured.NestedStringSlice(in.Object.Object, "status", "zones")
	if err != nil {
		return fmt.Errorf("status.zones: %w", err)
	}
	f.addJoin(f.memberName(in, "metadata.name", in.Object.GetName()), f.locationLabels(labels, region, "", zones))
	f.addNote(in, "", Changed, "the cluster joins with kubectl fleet join; its secret and CA are not converted, as members come to the hub")
	return nil
}

// locationLabels returns labels of a MemberCluster with those of where it is.
func (c *conversion) locationLabels(labels map[string]string, region, provider string, zones []string) map[string]string {
	if region != "" {
		labels[c.RegionLabel] = region
	}
	if provider != "" {
		labels[c.ProviderLabel] = provider
	}
	if len(zones) == 1 {
		labels[c.ZoneLabel] = zones[0]
	}
	for _, zone := range zones {
		labels[clusterv1beta1.ZoneLabelPrefix+zone] = ""
	}
	return labels
}

// addJoin adds the lines that have a cluster join.
func (c *conversion) addJoin(name string, labels map[string]string) {
	c.addStep("kubectl fleet join %s --member-context %s", name, name)
	if len(labels) == 0 {
		return
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, key+"="+labels[key])
	}
	c.addStep("kubectl label membercluster %s %s", name, strings.Join(words, " "))
}

func (f *federation) readConfig(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	if spec.text("scope") == "Namespaced" {
		namespace := in.Object.GetNamespace()
		f.addNote(in, "spec.scope", Changed, "install the hub agent with placeableNamespaces={%s}, and the member agents with scope=Namespaced and namespaces={%s}", namespace, namespace)
	}
	f.takeOver = placementv1beta1.WhenToTakeOverTypeAlways
	if spec.sub("syncController").text("adoptResources") == disabledOption {
		f.takeOver = placementv1beta1.WhenToTakeOverTypeNever
	}
	f.noteRest(in, all)
	return all.err()
}

// readFederated reads one federated object. It returns nil if it cannot be placed, with a note.
func (f *federation) readFederated(in Input) (*federated, error) {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	x := &federated{in: in, report: f.reported[in.Object.GetKind()]}
	if x.object = f.readTemplate(in, spec); x.object == nil {
		return nil, all.err()
	}
	f.readAnnotations(x)
	f.readPlacement(x, spec)
	x.rules = f.readOverrides(in, spec)
	if spec.flag("retainReplicas") {
		annotate(x.object, retainReplicas, "true")
	}
	f.preferences.usePreference(x)
	f.noteRest(in, all)
	return x, all.err()
}

// readTemplate reads the plain object.
func (f *federation) readTemplate(in Input, spec fields) *unstructured.Unstructured {
	template := spec.sub("template")
	delete(spec.content, "template")
	object := &unstructured.Unstructured{Object: template.content}
	if object.Object == nil {
		object.Object = map[string]any{}
	}
	if !f.identifyTemplate(in, object) {
		return nil
	}
	namespace := in.Object.GetNamespace()
	name := in.Object.GetName()
	if in.Object.GetKind() == federatedNamespaceKind {
		namespace = ""
	}
	if reserved := cmp.Or(namespace, name); (namespace != "" || object.GetKind() == "Namespace") && snapshot.ReservedNamespace(reserved) {
		f.addNote(in, "metadata.namespace", Unsupported, "the object is left out: namespace %s is reserved, and nothing in it is ever placed", reserved)
		return nil
	}
	labels := object.GetLabels()
	annotations := object.GetAnnotations()
	finalizers := object.GetFinalizers()
	delete(object.Object, "metadata")
	object.SetName(name)
	if namespace != "" {
		object.SetNamespace(namespace)
	}
	if len(labels) > 0 {
		object.SetLabels(labels)
	}
	f.keepMetadata(in, object, annotations, finalizers)
	return object
}

// identifyTemplate gives the object of a template its kind and version. It is false if the version is unknown.
func (f *federation) identifyTemplate(in Input, object *unstructured.Unstructured) bool {
	kind := strings.TrimPrefix(in.Object.GetKind(), federatedPrefix)
	if target, there := f.types[in.Object.GetKind()]; there {
		kind = target.Kind
		if object.GetAPIVersion() == "" {
			object.SetAPIVersion(target.GroupVersion().String())
		}
	}
	if known, there := knownTypes[kind]; there && object.GetAPIVersion() == "" {
		object.SetAPIVersion(known.String())
	}
	if object.GetAPIVersion() == "" {
		f.addNote(in, "spec.template.apiVersion", Unsupported, "the object is left out: its API version is not known. Set it, or add the FederatedTypeConfig of the kind to the input")
		return false
	}
	object.SetKind(kind)
	return true
}

// keepMetadata keeps the annotations and finalizers of a template if the user wants them.
func (f *federation) keepMetadata(in Input, object *unstructured.Unstructured, annotations map[string]string, finalizers []string) {
	switch {
	case len(annotations)+len(finalizers) == 0:
	case f.KeepTemplateMetadata:
		f.addNote(in, "spec.template.metadata", Changed, "annotations and finalizers reach the members here")
		if len(annotations) > 0 {
			object.SetAnnotations(annotations)
		}
		if len(finalizers) > 0 {
			object.SetFinalizers(finalizers)
		}
	default:
		f.addNote(in, "spec.template.metadata", Ignored, "annotations and finalizers of a template never reached a member, and are left out; --keep-template-metadata keeps them")
	}
}

func annotate(object *unstructured.Unstructured, key, value string) {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	object.SetAnnotations(annotations)
}

// readAnnotations reads what annotations of a federated object say about it.
func (f *federation) readAnnotations(x *federated) {
	annotations := maps.Clone(x.in.Object.GetAnnotations())
	x.abandon = annotations[orphanAnnotation] == "true"
	if annotations[deleteOptionAnnotation] != "" {
		f.addNote(x.in, "metadata.annotations["+deleteOptionAnnotation+"]", Unsupported, "members delete what is removed with their own options")
	}
	for _, key := range []string{orphanAnnotation, deleteOptionAnnotation, lastAppliedByKubectl} {
		delete(annotations, key)
	}
	if len(annotations)+len(x.in.Object.GetLabels()) > 0 {
		f.addNote(x.in, "metadata", Ignored, "labels and annotations of a federated object never reached a member, and are left out")
	}
}

func (f *federation) readPlacement(x *federated, spec fields) {
	placement := spec.sub("placement")
	named := placement.has("clusters")
	clusters := takeAs[[]struct {
		Name string `json:"name"`
	}](placement, "clusters")
	x.selector = takeAs[*metav1.LabelSelector](placement, "clusterSelector")
	x.targets = nowhere
	switch {
	case named && len(clusters) == 0:
		f.addNote(x.in, "spec.placement.clusters", Ignored, "the object is placed nowhere, as before: the list of clusters is empty, whatever clusterSelector says")
	case named:
		if x.selector != nil {
			f.addNote(x.in, "spec.placement.clusterSelector", Ignored, "clusters are named, so the selector had no effect")
		}
		x.targets = targets{byName: true}
		for _, cluster := range clusters {
			x.targets.names = append(x.targets.names, f.memberName(x.in, "spec.placement.clusters", cluster.Name))
		}
		slices.Sort(x.targets.names)
		x.targets.names = slices.Compact(x.targets.names)
	case x.selector != nil:
		x.targets = clustersMatching(*x.selector)
	}
}

// clustersMatching returns the clusters that a selector matches.
func clustersMatching(selector metav1.LabelSelector) targets {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return targets{}
	}
	return targets{selectors: []metav1.LabelSelector{selector}}
}

// jsonPatch is one operation on an object.
type jsonPatch struct {
	Op    string               `json:"op"`
	Path  string               `json:"path"`
	Value apiextensionsv1.JSON `json:"value"`
}

// readOverrides makes a rule of the clusters that get equal patches.
func (f *federation) readOverrides(in Input, spec fields) []placementv1beta1.OverrideRule {
	var order []string
	clusters := map[string][]string{}
	patches := map[string][]placementv1beta1.JSONPatchOverride{}
	for _, override := range spec.list("overrides") {
		cluster := override.text("clusterName")
		var kept []placementv1beta1.JSONPatchOverride
		for _, operation := range takeAs[[]jsonPatch](override, "clusterOverrides") {
			if patch, is := f.readPatch(in, override.pathOf("clusterOverrides"), operation); is {
				kept = append(kept, patch)
			}
		}
		if id := contentKey(kept); len(kept) > 0 {
			if clusters[id] == nil {
				order = append(order, id)
			}
			clusters[id] = append(clusters[id], f.memberName(in, override.pathOf("clusterName"), cluster))
			patches[id] = kept
		}
	}
	var rules []placementv1beta1.OverrideRule
	for _, id := range order {
		slices.Sort(clusters[id])
		rules = append(rules, patchRules(namedClusters(clusters[id]), patches[id])...)
	}
	if len(rules) > maxRules {
		f.addNote(in, "spec.overrides", Unsupported, "an override has at most %d rules, and this would need %d: the rest is left out; give clusters that differ a label, and use ${MEMBER-CLUSTER-LABEL-KEY-...} in one rule", maxRules, len(rules))
		rules = rules[:maxRules]
	}
	return rules
}

// patchRules returns the rules of patches: one has at most maxPatches.
func patchRules(selector placementv1beta1.ClusterSelector, patches []placementv1beta1.JSONPatchOverride) []placementv1beta1.OverrideRule {
	var rules []placementv1beta1.OverrideRule
	for some := range slices.Chunk(patches, maxPatches) {
		rules = append(rules, placementv1beta1.OverrideRule{
			ClusterSelector: new(selector), OverrideType: placementv1beta1.JSONPatchOverrideType, JSONPatchOverrides: some,
		})
	}
	return rules
}

func (c *conversion) readPatch(in Input, field string, p jsonPatch) (placementv1beta1.JSONPatchOverride, bool) {
	made := placementv1beta1.JSONPatchOverride{
		Operator: placementv1beta1.JSONPatchOverrideOperator(cmp.Or(p.Op, string(placementv1beta1.JSONPatchOverrideOpReplace))),
		Path:     p.Path, Value: p.Value,
	}
	if why := refusedPath(p.Path); why != "" {
		c.addNote(in, field, Unsupported, "the operation on %s is left out: %s", p.Path, why)
		return made, false
	}
	if made.Operator == placementv1beta1.JSONPatchOverrideOpRemove {
		made.Value = apiextensionsv1.JSON{}
	} else if text := strings.TrimSpace(string(made.Value.Raw)); text == "" || text == "null" {
		c.addNote(in, field, Changed, "the operation on %s sets null: it removes the field here", p.Path)
		made.Operator = placementv1beta1.JSONPatchOverrideOpRemove
		made.Value = apiextensionsv1.JSON{}
	}
	return made, true
}

// refusedPath returns why an override may not change a field.
func refusedPath(path string) string {
	first, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	second, _, _ := strings.Cut(rest, "/")
	switch {
	case !strings.HasPrefix(path, "/"):
		return "a path begins with a slash"
	case first == "apiVersion", first == "kind", first == "status":
		return "an override cannot change " + first
	case first == "metadata" && second != "labels" && second != "annotations":
		return "an override can only change labels and annotations of metadata"
	default:
		return ""
	}
}

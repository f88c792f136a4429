package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Dependency is an object of the core group that a selected object names. It is always in the namespace of that: pods and
// Ingresses cannot name what is in another one.
type Dependency struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Identity is that of the object, whatever its version.
func (d Dependency) Identity() Identity {
	return Identity{GroupKind: schema.GroupKind{Kind: d.Kind}, Namespace: d.Namespace, Name: d.Name}
}

// String names the object for people.
func (d Dependency) String() string { return fmt.Sprintf("%s %s/%s", d.Kind, d.Namespace, d.Name) }

func compareDependencies(a, b Dependency) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Need is a dependency, and which object names it first.
type Need struct {
	Dependency
	By string
	// Optional says that all objects that name it can do without it.
	Optional bool
}

// Missing says, for people, that the dependency is not placed, and why.
func (n Need) Missing(why string) string {
	return fmt.Sprintf("%s names %s %q, %s", n.By, n.Kind, n.Name, why)
}

// AbsentDependency and UnfitDependency say why a dependency is not placed that is not on the hub, or that is never placed.
const (
	AbsentDependency = "which does not exist in its namespace on the hub, the only one whose objects it can use"
	UnfitDependency  = "which is being deleted, or is none that is placed because Kubernetes or the fleet makes it itself"
)

// templated says where objects have the template of their pods; withTemplate are the kinds that have one.
type templated struct {
	Spec struct {
		Template    *corev1.PodTemplateSpec `json:"template"`
		JobTemplate struct {
			Spec struct {
				Template *corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		} `json:"jobTemplate"`
		VolumeClaimTemplates []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

var withTemplate = map[schema.GroupKind]bool{
	{Kind: "ReplicationController"}:                 true,
	{Group: "apps", Kind: "Deployment"}:             true,
	{Group: "apps", Kind: "ReplicaSet"}:             true,
	{Group: "apps", Kind: "StatefulSet"}:            true,
	{Group: "apps", Kind: "DaemonSet"}:              true,
	{Group: "batch", Kind: "Job"}:                   true,
	{Group: "batch", Kind: "CronJob"}:               true,
	{Group: "apps.kruise.io", Kind: "CloneSet"}:     true,
	{Group: "apps.kruise.io", Kind: "StatefulSet"}:  true,
	{Group: "apps.kruise.io", Kind: "DaemonSet"}:    true,
	{Group: "apps.kruise.io", Kind: "BroadcastJob"}: true,
}

var ingressKind = schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}

// FindNeeds finds what the pod templates and Ingresses among items name: ConfigMaps, Secrets, service accounts other than default,
// volume claims that no template makes. In order, each once. What an object names that is not readable as one of its kind is left
// out. Envelopes are not opened.
func FindNeeds(items []Item) []Need {
	found := map[Dependency]*Need{}
	for i := range items {
		item := &items[i]
		if item.Namespace == "" || item.Manifest == nil || item.Envelope {
			continue
		}
		f := finder{namespace: item.Namespace, by: fmt.Sprintf("%s %s/%s", item.Kind, item.Namespace, item.Name), found: found}
		switch {
		case item.GroupKind == ingressKind:
			f.addIngress(item.Manifest)
		case withTemplate[item.GroupKind]:
			f.addTemplate(item.Manifest)
		}
	}
	needs := make([]Need, 0, len(found))
	for _, need := range found {
		needs = append(needs, *need)
	}
	slices.SortFunc(needs, func(a, b Need) int { return compareDependencies(a.Dependency, b.Dependency) })
	return needs
}

// finder notes what one object names.
type finder struct {
	namespace, by string
	found         map[Dependency]*Need
}

func (f finder) add(kind, name string, optional *bool) {
	if name == "" {
		return
	}
	need := Need{Dependency: Dependency{kind, f.namespace, name}, By: f.by, Optional: optional != nil && *optional}
	known := f.found[need.Dependency]
	switch {
	case known == nil:
		f.found[need.Dependency] = &need
	case known.Optional && !need.Optional: // the one that cannot do without it is the one to name
		*known = need
	case known.Optional == need.Optional && need.By < known.By:
		known.By = need.By
	}
}

func (f finder) addIngress(manifest []byte) {
	var ingress struct {
		Spec struct {
			TLS []struct {
				SecretName string `json:"secretName"`
			} `json:"tls"`
		} `json:"spec"`
	}
	if json.Unmarshal(manifest, &ingress) != nil {
		return
	}
	for _, tls := range ingress.Spec.TLS {
		f.add("Secret", tls.SecretName, nil)
	}
}

func (f finder) addTemplate(manifest []byte) {
	var object templated
	if json.Unmarshal(manifest, &object) != nil {
		return
	}
	template := cmp.Or(object.Spec.Template, object.Spec.JobTemplate.Spec.Template)
	if template == nil {
		return
	}
	made := map[string]bool{}
	for _, claim := range object.Spec.VolumeClaimTemplates {
		made[claim.Metadata.Name] = true
	}
	f.addPod(&template.Spec, made)
}

// addPod adds what a pod names. A volume that has the name of a claim template is made of that.
func (f finder) addPod(pod *corev1.PodSpec, made map[string]bool) {
	if pod.ServiceAccountName != "default" {
		f.add("ServiceAccount", pod.ServiceAccountName, nil)
	}
	for _, secret := range pod.ImagePullSecrets {
		f.add("Secret", secret.Name, nil)
	}
	for i := range pod.InitContainers {
		f.addEnvironment(pod.InitContainers[i].Env, pod.InitContainers[i].EnvFrom)
	}
	for i := range pod.Containers {
		f.addEnvironment(pod.Containers[i].Env, pod.Containers[i].EnvFrom)
	}
	for i := range pod.Volumes {
		volume := &pod.Volumes[i]
		if claim := volume.PersistentVolumeClaim; claim != nil && !made[volume.Name] {
			f.add("PersistentVolumeClaim", claim.ClaimName, nil)
		}
		f.addVolume(&volume.VolumeSource)
	}
}

func (f finder) addEnvironment(variables []corev1.EnvVar, whole []corev1.EnvFromSource) {
	for i := range variables {
		from := variables[i].ValueFrom
		if from == nil {
			continue
		}
		if key := from.ConfigMapKeyRef; key != nil {
			f.add("ConfigMap", key.Name, key.Optional)
		}
		if key := from.SecretKeyRef; key != nil {
			f.add("Secret", key.Name, key.Optional)
		}
	}
	for i := range whole {
		if ref := whole[i].ConfigMapRef; ref != nil {
			f.add("ConfigMap", ref.Name, ref.Optional)
		}
		if ref := whole[i].SecretRef; ref != nil {
			f.add("Secret", ref.Name, ref.Optional)
		}
	}
}

func (f finder) addVolume(volume *corev1.VolumeSource) {
	if source := volume.ConfigMap; source != nil {
		f.add("ConfigMap", source.Name, source.Optional)
	}
	if source := volume.Secret; source != nil {
		f.add("Secret", source.SecretName, source.Optional)
	}
	if volume.Projected != nil {
		for i := range volume.Projected.Sources {
			source := &volume.Projected.Sources[i]
			if source.ConfigMap != nil {
				f.add("ConfigMap", source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				f.add("Secret", source.Secret.Name, source.Secret.Optional)
			}
		}
	}
	if source := volume.AzureFile; source != nil {
		f.add("Secret", source.SecretName, nil)
	}
	for _, ref := range driverSecrets(volume) {
		if ref != nil {
			f.add("Secret", ref.Name, nil)
		}
	}
}

// driverSecrets returns the Secrets that drivers of volumes take.
func driverSecrets(volume *corev1.VolumeSource) []*corev1.LocalObjectReference {
	var refs []*corev1.LocalObjectReference
	if source := volume.CSI; source != nil {
		refs = append(refs, source.NodePublishSecretRef)
	}
	if source := volume.CephFS; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.Cinder; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.FlexVolume; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.ISCSI; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.RBD; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.ScaleIO; source != nil {
		refs = append(refs, source.SecretRef)
	}
	if source := volume.StorageOS; source != nil {
		refs = append(refs, source.SecretRef)
	}
	return refs
}

// Bounds of what is added to a selection: the list is kept in the verdict, on the placement.
const (
	maxDependencies     = 1000
	maxDependencyLength = 64 << 10
)

// CheckDependencies refuses more of them than a verdict can hold.
func CheckDependencies(dependencies []Dependency) error {
	length := 0
	for _, d := range dependencies {
		length += len(d.Kind) + len(d.Namespace) + len(d.Name) + len(`{"kind":"","namespace":"","name":""},`)
	}
	if len(dependencies) <= maxDependencies && length <= maxDependencyLength {
		return nil
	}
	return &InvalidError{Reason: ReasonTooMuch, Message: fmt.Sprintf(
		"spec.propagateDeps adds %d objects that no selector selects, and at most %d are, with names of %d bytes together: select them, by kind or with their Namespace. "+
			"What was placed before stays as it is", len(dependencies), maxDependencies, maxDependencyLength)}
}

// AddDependencies makes the selection select dependencies, too, except those of kinds that are held, or that are not placed at
// all; refuses says of the latter why. It returns the rules that it has added.
func (s *Selection) AddDependencies(dependencies []Dependency, catalog *Catalog) (added []Rule, refused map[Dependency]string) {
	refused = map[Dependency]string{}
	for _, d := range dependencies {
		gvk := schema.GroupVersionKind{Version: "v1", Kind: d.Kind}
		kind, served := catalog.Lookup(gvk)
		name, held := catalog.HeldAs(gvk.GroupKind())
		switch flag := catalog.filter.reasonToExclude(gvk); {
		case !served || !kind.Placeable:
			refused[d] = "of a kind that the hub does not place"
		case flag != "":
			refused[d] = "of a kind that " + flag
		case held:
			s.holdKind(name)
		default:
			added = append(added, Rule{Index: -1, Kind: kind, Namespace: d.Namespace, Name: d.Name, Labels: labels.Everything(),
				filter: catalog.filter})
		}
	}
	s.Rules = append(s.Rules, added...)
	return added, refused
}

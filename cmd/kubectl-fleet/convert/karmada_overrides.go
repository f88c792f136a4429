package convert

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// maxOverrides is how many overrides can be in use.
const maxOverrides = 100

// convertOverrides adds the rules of an override policy to those of every object that it selects.
func (p *overriding) convertOverrides(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	objects := p.readOverridden(in, spec)
	p.rulesOfPolicy[in.name()] = objects
	rules := spec.list("overrideRules")
	if spec.has("overriders") { // as it was before there were rules
		rules = append(rules, fields{
			content: map[string]any{"targetCluster": spec.take("targetCluster"), "overriders": spec.take("overriders")}, path: spec.path,
			failure: spec.failure,
		})
	}
	for _, rule := range rules {
		p.readRule(in, rule, objects)
	}
	p.noteRest(in, all)
	return all.err()
}

// readOverridden finds the objects that an override policy selects.
func (p *overriding) readOverridden(in Input, spec fields) []*objectRules {
	items := spec.list("resourceSelectors")
	var objects []*objectRules
	for _, item := range items {
		s := readSelector(item)
		namespace := cmp.Or(in.Object.GetNamespace(), s.namespace)
		if p.isClusterScoped(s.Kind) {
			namespace = ""
		}
		switch found := p.findTemplates(s, namespace); {
		case len(found) > 0:
			for _, object := range found {
				objects = append(objects, p.rulesOf(in, object))
			}
		case s.Name != "" && (namespace != "" || p.isClusterScoped(s.Kind)):
			object := &unstructured.Unstructured{Object: map[string]any{}}
			object.SetAPIVersion(metav1.GroupVersion{Group: s.Group, Version: s.Version}.String())
			object.SetKind(s.Kind)
			object.SetNamespace(namespace)
			object.SetName(s.Name)
			objects = append(objects, p.rulesOf(in, object))
		default:
			p.addNote(in, item.path, Unsupported, "an override names the objects that it changes: none in the input matches; add them to the input")
		}
	}
	if len(items) == 0 {
		objects = p.readAll(in)
	}
	if len(p.overrides) > maxOverrides {
		p.addNote(in, "spec.resourceSelectors", Unsupported, "at most %d overrides can be in use, and these are %d", maxOverrides, len(p.overrides))
	}
	return objects
}

// readAll finds the objects of a policy that is for all objects, or for all of its namespace.
func (p *overriding) readAll(in Input) []*objectRules {
	var objects []*objectRules
	for _, template := range p.templates {
		if in.Object.GetNamespace() == "" || template.Object.GetNamespace() == in.Object.GetNamespace() {
			objects = append(objects, p.rulesOf(in, template.Object))
		}
	}
	if len(objects) == 0 {
		p.addNote(in, "spec.resourceSelectors", Unsupported, "the policy is for all objects, and an override names the objects that it changes: add them to the input")
	}
	return objects
}

// findTemplates finds the manifests of the input that a selector selects.
func (p *overriding) findTemplates(s karmadaSelector, namespace string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector)
	if s.LabelSelector == nil {
		selector = labels.Everything()
	} else if err != nil {
		return nil
	}
	for _, in := range p.templates {
		gvk := in.Object.GroupVersionKind()
		if gvk.Group == s.Group && gvk.Kind == s.Kind && (namespace == "" || in.Object.GetNamespace() == namespace) &&
			(s.Name == "" || in.Object.GetName() == s.Name) && selector.Matches(labels.Set(in.Object.GetLabels())) {
			found = append(found, in.Object)
		}
	}
	return found
}

// rulesOf returns the rules of an object so far.
func (p *overriding) rulesOf(in Input, object *unstructured.Unstructured) *objectRules {
	id := object.GetNamespace() + "/" + object.GroupVersionKind().GroupKind().String() + "/" + object.GetName()
	if p.overrides[id] == nil {
		p.overrides[id] = &objectRules{in: in, object: object}
	}
	return p.overrides[id]
}

// addRules adds the override of an object.
func (p *overriding) addRules(o *objectRules) error {
	if len(o.rules) > maxRules {
		p.addNote(o.in, "spec.overrideRules", Unsupported, "an override has at most %d rules, and %s would need %d: the rest is left out", maxRules,
			nameOf(o.object), len(o.rules))
		o.rules = o.rules[:maxRules]
	}
	if len(o.rules) == 0 {
		return nil
	}
	return p.addOverrideOf(o.in, o.object, joinedName(o.object.GetKind(), o.object.GetName()), nil, o.rules)
}

// readRule adds a rule to each object.
func (p *overriding) readRule(in Input, rule fields, objects []*objectRules) {
	selector := placementv1beta1.ClusterSelector{ClusterSelectorTerms: []placementv1beta1.ClusterSelectorTerm{}}
	if rule.has("targetCluster") {
		if terms := p.clusters.readTerms(in, rule.sub("targetCluster")); !matchesAll(terms) {
			selector.ClusterSelectorTerms = terms
		}
	}
	made := p.readOverriders(in, rule.sub("overriders"))
	for _, o := range objects {
		var patches []placementv1beta1.JSONPatchOverride
		for _, make := range made {
			patches = append(patches, make(o.object)...)
		}
		o.rules = append(o.rules, patchRules(selector, patches)...)
	}
}

// Operations of the overriders of Karmada, as its API has them.
type (
	plaintextOperation struct {
		Path     string               `json:"path"`
		Operator string               `json:"operator"`
		Value    apiextensionsv1.JSON `json:"value"`
	}
	metadataOperation struct {
		Operator string            `json:"operator"`
		Value    map[string]string `json:"value"`
	}
	imageOperation struct {
		Component string `json:"component"`
		Operator  string `json:"operator"`
		Value     string `json:"value"`
		Predicate *struct {
			Path string `json:"path"`
		} `json:"predicate"`
	}
	commandOperation struct {
		ContainerName string   `json:"containerName"`
		Operator      string   `json:"operator"`
		Value         []string `json:"value"`
	}
)

// patchMaker makes the patches of one object.
type patchMaker func(object *unstructured.Unstructured) []placementv1beta1.JSONPatchOverride

// readOverriders reads the overriders of a rule in the order in which Karmada applies them.
func (p *overriding) readOverriders(in Input, overriders fields) []patchMaker {
	return slices.Concat(
		p.readImages(in, overriders), p.readCommands(in, overriders), p.readLabels(in, overriders),
		p.readFieldOverrides(in, overriders), p.readPlaintext(in, overriders),
	)
}

// readPlaintext reads JSON patches.
func (p *overriding) readPlaintext(in Input, overriders fields) []patchMaker {
	var patches []placementv1beta1.JSONPatchOverride
	for _, o := range takeAs[[]plaintextOperation](overriders, "plaintext") {
		if patch, is := p.readPatch(in, overriders.path+".plaintext", jsonPatch{Op: o.Operator, Path: o.Path, Value: o.Value}); is {
			patches = append(patches, patch)
		}
	}
	return []patchMaker{func(*unstructured.Unstructured) []placementv1beta1.JSONPatchOverride { return patches }}
}

// readLabels reads what is done to labels and annotations.
func (p *overriding) readLabels(in Input, overriders fields) []patchMaker {
	var all []patchMaker
	for _, kind := range []string{"labels", "annotations"} {
		field := kind + "Overrider"
		for _, o := range takeAs[[]metadataOperation](overriders, field) {
			if o.Operator != "add" {
				p.addNote(in, overriders.path+"."+field, Changed, "the operator %s needs the key to be there: an object without it is not placed",
					o.Operator)
			}
			all = append(all, func(object *unstructured.Unstructured) []placementv1beta1.JSONPatchOverride {
				return metadataPatches(object, kind, placementv1beta1.JSONPatchOverrideOperator(o.Operator), o.Value)
			})
		}
	}
	return all
}

// metadataPatches change labels or annotations, key by key.
func metadataPatches(object *unstructured.Unstructured, kind string, op placementv1beta1.JSONPatchOverrideOperator,
	values map[string]string) []placementv1beta1.JSONPatchOverride {
	var patches []placementv1beta1.JSONPatchOverride
	there, _, _ := unstructured.NestedMap(object.Object, "metadata", kind) // an odd one counts as none
	if op == placementv1beta1.JSONPatchOverrideOpAdd && len(there) == 0 && len(object.Object) > len(stubFields) {
		patches = append(patches, placementv1beta1.JSONPatchOverride{Operator: op, Path: "/metadata/" + kind,
			Value: encodeJSON(map[string]string{})})
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		patch := placementv1beta1.JSONPatchOverride{Operator: op, Path: "/metadata/" + kind + "/" +
			strings.NewReplacer("~", "~0", "/", "~1").Replace(key)}
		if op != placementv1beta1.JSONPatchOverrideOpRemove {
			patch.Value = encodeJSON(values[key])
		}
		patches = append(patches, patch)
	}
	return patches
}

// stubFields are all that is known of an object that is not in the input.
var stubFields = []string{"apiVersion", "kind", "metadata"}

func encodeJSON(value any) apiextensionsv1.JSON {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("encoding a string or a list of them: %v", err))
	}
	return apiextensionsv1.JSON{Raw: raw}
}

// container is a container of an object's pods.
type container struct {
	path    string
	content map[string]any
}

// containersOf returns the containers of a workload's pods.
func containersOf(object *unstructured.Unstructured) []container {
	at := []string{"spec", "template", "spec", "containers"}
	switch object.GetKind() {
	case "Pod":
		at = []string{"spec", "containers"}
	case "CronJob":
		at = []string{"spec", "jobTemplate", "spec", "template", "spec", "containers"}
	}
	items, _, _ := unstructured.NestedSlice(object.Object, at...) // an odd one counts as none
	var all []container
	for i, item := range items {
		if content, is := item.(map[string]any); is {
			all = append(all, container{path: "/" + strings.Join(at, "/") + "/" + strconv.Itoa(i), content: content})
		}
	}
	return all
}

// noteMissing notes an overrider that needs the manifest of the object.
func (p *overriding) noteMissing(in Input, field string, object *unstructured.Unstructured) {
	p.addNote(in, field, Unsupported, "there is no counterpart without the manifest of %s: add it to the input", nameOf(object))
}

// readImages reads what is done to images.
func (p *overriding) readImages(in Input, overriders fields) []patchMaker {
	operations := takeAs[[]imageOperation](overriders, "imageOverrider")
	if len(operations) == 0 {
		return nil
	}
	field := overriders.path + ".imageOverrider"
	return []patchMaker{func(object *unstructured.Unstructured) []placementv1beta1.JSONPatchOverride {
		var patches []placementv1beta1.JSONPatchOverride
		containers := containersOf(object)
		if len(containers) == 0 {
			p.noteMissing(in, field, object)
		}
		for _, c := range containers {
			before, _, _ := unstructured.NestedString(c.content, "image") // an odd one counts as none
			image := parseImage(before)
			for _, o := range operations {
				if o.Predicate == nil || o.Predicate.Path == c.path+"/image" {
					image.changePart(o.Component, o.Operator, o.Value)
				}
			}
			if after := image.String(); after != before {
				patches = append(patches, placementv1beta1.JSONPatchOverride{
					Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: c.path + "/image", Value: encodeJSON(after),
				})
			}
		}
		return patches
	}}
}

// image is a reference to an image in its parts.
type image struct{ registry, repository, tag string }

// parseImage parses a reference; the tag has its colon, or is a digest with its at sign.
func parseImage(text string) *image {
	i := &image{repository: text}
	if first, rest, found := strings.Cut(text, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		i.registry = first
		i.repository = rest
	}
	if at := strings.IndexAny(i.repository, ":@"); at >= 0 {
		i.repository, i.tag = i.repository[:at], i.repository[at:]
	}
	return i
}

// String returns the reference.
func (i *image) String() string {
	if i.registry != "" {
		return i.registry + "/" + i.repository + i.tag
	}
	return i.repository + i.tag
}

// changePart changes a part as Karmada does: add appends to what is there.
func (i *image) changePart(component, operator, value string) {
	part := map[string]*string{"Registry": &i.registry, "Repository": &i.repository, "Tag": &i.tag}[component]
	if part == nil {
		return
	}
	if component == "Tag" && i.tag == "" && value != "" {
		i.tag = ":"
		if strings.Contains(value, ":") {
			i.tag = "@"
		}
	}
	separator := ""
	if component == "Tag" && i.tag != "" {
		separator = i.tag[:1]
	}
	switch operator {
	case "add":
		*part += value
	case "remove":
		*part = ""
	case "replace":
		*part = separator + value
	}
}

// readCommands reads what is done to commands and arguments of containers.
func (p *overriding) readCommands(in Input, overriders fields) []patchMaker {
	var all []patchMaker
	for _, kind := range []string{"command", "args"} {
		field := overriders.path + "." + kind + "Overrider"
		operations := takeAs[[]commandOperation](overriders, kind+"Overrider")
		if len(operations) == 0 {
			continue
		}
		all = append(all, func(object *unstructured.Unstructured) []placementv1beta1.JSONPatchOverride {
			var patches []placementv1beta1.JSONPatchOverride
			containers := containersOf(object)
			if len(containers) == 0 {
				p.noteMissing(in, field, object)
			}
			for _, c := range containers {
				before, found, _ := unstructured.NestedStringSlice(c.content, kind) // an odd one counts as none
				after := slices.Clone(before)
				for _, o := range operations {
					if o.ContainerName == c.content["name"] {
						after = changeWords(after, o.Operator, o.Value)
					}
				}
				if slices.Equal(before, after) {
					continue
				}
				op := placementv1beta1.JSONPatchOverrideOpReplace
				if !found {
					op = placementv1beta1.JSONPatchOverrideOpAdd
				}
				patches = append(patches, placementv1beta1.JSONPatchOverride{Operator: op, Path: c.path + "/" + kind, Value: encodeJSON(after)})
			}
			return patches
		})
	}
	return all
}

// changeWords adds words to a command, or removes them.
func changeWords(command []string, operator string, words []string) []string {
	if operator == "remove" {
		return slices.DeleteFunc(command, func(word string) bool { return slices.Contains(words, word) })
	}
	return append(command, words...)
}

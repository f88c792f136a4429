package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Item is one selected object as a snapshot holds it. It takes a fraction of the memory that
// the object takes.
type Item struct {
	Identity
	// Manifest is the stripped object as JSON; nil if only its content has told that it is
	// not placed.
	Manifest []byte
	// Envelope says that it holds other objects.
	Envelope bool

	apiVersion string
}

// Encode makes an item of a selected object.
func Encode(object *unstructured.Unstructured) (Item, error) {
	gk := object.GroupVersionKind().GroupKind()
	item := Item{Identity: Identify(gk, object), apiVersion: object.GetAPIVersion()}
	if isToken(object) || isMadeForOthers(gk, object) {
		return item, nil
	}
	_, item.Envelope = EnvelopeType(gk, object.GetAnnotations())
	var err error
	if item.Manifest, err = json.Marshal(Strip(object).Object); err != nil {
		return Item{}, fmt.Errorf("encoding %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return item, nil
}

// isToken reports whether an object is a token of a service account, which only its content
// reveals as generated.
func isToken(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Kind: "Secret"}) {
		return false
	}
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	return kind == string(corev1.SecretTypeServiceAccountToken)
}

// isMadeForOthers reports whether a controller of the hub has made an object for another. That shows in the content: a claim
// with an owner, or an object that only such controllers have written.
func isMadeForOthers(gk schema.GroupKind, object *unstructured.Unstructured) bool {
	return gk == volumeClaim && len(object.GetOwnerReferences()) > 0 || rules.IsMadeByControllers(gk, object.GetManagedFields())
}

// ClaimMaker is a StatefulSet: it makes claims of its templates, one for each of its pods, and does not own them by default.
type ClaimMaker struct {
	Namespace, Name string
	Templates       []string
}

// NewClaimMaker reads the templates of a StatefulSet.
func NewClaimMaker(set *unstructured.Unstructured) ClaimMaker {
	maker := ClaimMaker{Namespace: set.GetNamespace(), Name: set.GetName()}
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	for _, template := range templates {
		content, _ := template.(map[string]any)
		if name, _, _ := unstructured.NestedString(content, "metadata", "name"); name != "" {
			maker.Templates = append(maker.Templates, name)
		}
	}
	return maker
}

// Makes reports whether an item is a claim that the set makes, by its name: <template>-<set>-<ordinal>.
func (m ClaimMaker) Makes(item Item) bool {
	if item.GroupKind != volumeClaim || item.Namespace != m.Namespace {
		return false
	}
	return slices.ContainsFunc(m.Templates, func(template string) bool {
		ordinal, ok := strings.CutPrefix(item.Name, template+"-"+m.Name+"-")
		_, err := strconv.ParseUint(ordinal, 10, 31)
		return ok && err == nil
	})
}

// IsClaim reports whether an item is a claim of a volume that is placed so far.
func (i *Item) IsClaim() bool { return i.GroupKind == volumeClaim && i.Manifest != nil }

// LeaveOut keeps the item from being placed; it counts as selected.
func (i *Item) LeaveOut() { i.Manifest = nil }

// IsTooLarge reports whether no snapshot can hold the object.
func (i *Item) IsTooLarge() bool { return len(i.Manifest) > ObjectLimit }

// KeepFormer lets an object that is too large stay as the latest snapshot has it; nil if it
// is not in there. It returns the sentence that says so.
func (i *Item) KeepFormer(manifest []byte) string {
	kind := Kind{GroupVersionKind: schema.FromAPIVersionAndKind(i.apiVersion, i.Kind)}
	name := placementv1beta1.Scope{Namespace: i.Namespace}.String() + i.Name
	what := "until then it is not placed"
	if manifest != nil {
		what = "until then it stays placed as it was before"
	}
	sentence := fmt.Sprintf("%s %q has %d bytes, and an object that is placed may have %d at most: make it smaller, or split it into several; %s",
		kind, name, len(i.Manifest), ObjectLimit, what)
	i.Manifest = manifest
	return sentence
}

package envelope

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/document"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// openEntry makes an object of what is under a key, or names the rule it breaks.
func openEntry(value any, id placementv1beta1.EnvelopeIdentifier, rules Rules) (object *unstructured.Unstructured, rule string) {
	if id.Type == placementv1beta1.ConfigMapEnvelopeType {
		text, is := value.(string)
		if !is {
			return nil, "its value is no text"
		}
		if value, rule = parseDocument(text); rule != "" {
			return nil, rule
		}
	}
	content, is := value.(map[string]any)
	if !is {
		return nil, "it is no object: write apiVersion, kind, metadata and so on below the key"
	}
	object = &unstructured.Unstructured{Object: content}
	for _, check := range []func(*unstructured.Unstructured) string{checkIdentity, refuseList, refuseUnplaceable} {
		if rule := check(object); rule != "" {
			return nil, rule
		}
	}
	if flag := rules.Filter.ReasonToExcludeEnveloped(object.GroupVersionKind(), object.GetName()); flag != "" {
		return nil, fmt.Sprintf("%s is %s: remove it, or have the flag changed", KeyOf(object), flag)
	}
	return object, checkNamespace(object, id, rules)
}

// quoted finds what an error of the YAML reader repeats of a document. That may be a
// secret, and errors are told where more people read than may read the envelope.
var quoted = regexp.MustCompile(`(?s)(cannot decode \S+ |unknown anchor |invalid map key: ).*?( as a !!\w+| referenced|)$`)

// parseDocument reads the one YAML or JSON document in a text.
func parseDocument(text string) (value any, rule string) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader([]byte(text))))
	for {
		text, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "it cannot be read: " + err.Error()
		}
		next, err := document.Decode(text)
		switch {
		case err != nil:
			return nil, "it is neither YAML nor JSON: " + quoted.ReplaceAllString(err.Error(), "$1…$2")
		case next == nil:
			continue // a document of comments
		case value != nil:
			return nil, "it has more than one object: put each under a key of its own"
		}
		value = next
	}
	if value == nil {
		return nil, "it is empty: write an object, or remove the key"
	}
	return value, ""
}

// checkIdentity demands that an object says what it is.
func checkIdentity(object *unstructured.Unstructured) string {
	for _, field := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}} {
		if _, _, err := unstructured.NestedString(object.Object, field...); err != nil {
			return strings.Join(field, ".") + ", which names the object, is no text"
		}
	}
	switch {
	case object.GetAPIVersion() == "":
		return "apiVersion is missing"
	case object.GetKind() == "":
		return "kind is missing"
	case object.GetName() == "" && object.GetGenerateName() != "":
		return "metadata.name is missing: generateName does not work here, the object could not be found again"
	case object.GetName() == "":
		return "metadata.name is missing"
	case object.GroupVersionKind().Kind == "":
		return fmt.Sprintf("apiVersion %q cannot be read: write it as v1 or as group/version", object.GetAPIVersion())
	}
	return ""
}

// refuseList refuses lists.
func refuseList(object *unstructured.Unstructured) string {
	if object.IsList() {
		return "it is a list: put each object under a key of its own"
	}
	return ""
}

// refuseUnplaceable refuses what must not get to a member by any way.
func refuseUnplaceable(object *unstructured.Unstructured) string {
	gk := object.GroupVersionKind().GroupKind()
	annotations, _, err := unstructured.NestedMap(object.Object, "metadata", "annotations")
	if err != nil {
		return "its annotations cannot be read: write each as a name with a text"
	}
	marked, _ := annotations[placementv1beta1.EnvelopeConfigMapAnnotation].(string)
	_, nested := snapshot.EnvelopeType(gk, map[string]string{placementv1beta1.EnvelopeConfigMapAnnotation: marked})
	switch {
	case nested:
		return fmt.Sprintf("%s is an envelope itself: envelopes cannot be nested; place it by itself", KeyOf(object))
	case gk.Group == placementv1beta1.GroupVersion.Group, gk.Group == clusterv1beta1.GroupVersion.Group:
		return fmt.Sprintf("%s is of the fleet's own API group %s, which is never placed: remove it", KeyOf(object), gk.Group)
	case gk == snapshot.NamespaceKind && snapshot.ReservedNamespace(object.GetName()):
		return fmt.Sprintf("namespace %q is reserved: namespaces named default, kube-* and fleet-* are never placed; remove it", object.GetName())
	}
	return ""
}

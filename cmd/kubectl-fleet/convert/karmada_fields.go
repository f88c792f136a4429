package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/apis/document"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// fieldOverride changes a document that stands in a string of an object, such as a file in a ConfigMap.
type fieldOverride struct {
	FieldPath string           `json:"fieldPath"`
	JSON      []fieldOperation `json:"json"`
	YAML      []fieldOperation `json:"yaml"`
}

// fieldOperation is one change in the document.
type fieldOperation struct {
	SubPath  string               `json:"subPath"`
	Operator string               `json:"operator"`
	Value    apiextensionsv1.JSON `json:"value,omitzero"`
}

// readFieldOverrides reads what is done to documents within strings: the new string is worked out from the manifest.
func (p *overriding) readFieldOverrides(in Input, overriders fields) []patchMaker {
	overrides := takeAs[[]fieldOverride](overriders, "fieldOverrider")
	field := overriders.path + ".fieldOverrider"
	var all []patchMaker
	for _, o := range overrides {
		all = append(all, func(object *unstructured.Unstructured) []placementv1beta1.JSONPatchOverride {
			before, found := stringAt(object.Object, o.FieldPath)
			if !found {
				p.addNote(in, field, Unsupported, "there is no counterpart without the manifest of %s and a string at %s: add it to the input",
					nameOf(object), o.FieldPath)
				return nil
			}
			after, err := o.apply(before)
			if err != nil {
				p.addNote(in, field, Unsupported, "%s of %s cannot be changed: %v", o.FieldPath, nameOf(object), err)
				return nil
			}
			return []placementv1beta1.JSONPatchOverride{{Operator: placementv1beta1.JSONPatchOverrideOpReplace, Path: o.FieldPath,
				Value: encodeJSON(after)}}
		})
	}
	return all
}

// apply applies the operations to a document. Errors do not show it: it may be secret.
func (o *fieldOverride) apply(text string) (string, error) {
	operations, err := json.Marshal(toPatch(append(o.JSON, o.YAML...)))
	if err != nil {
		return "", fmt.Errorf("encoding the operations: %w", err)
	}
	patch, err := jsonpatch.DecodePatch(operations)
	if err != nil {
		return "", fmt.Errorf("reading the operations: %w", err)
	}
	data, err := document.ToJSON([]byte(text))
	if err != nil {
		return "", errors.New("it is neither JSON nor YAML")
	}
	if data, err = patch.Apply(data); err != nil {
		return "", errors.New("an operation does not fit the document")
	}
	if len(o.YAML) == 0 {
		return string(data), nil
	}
	if data, err = yaml.JSONToYAML(data); err != nil {
		return "", fmt.Errorf("encoding the document: %w", err)
	}
	return string(data), nil
}

func toPatch(operations []fieldOperation) []map[string]any {
	var patch []map[string]any
	for _, o := range operations {
		operation := map[string]any{"op": o.Operator, "path": o.SubPath}
		if len(o.Value.Raw) > 0 {
			operation["value"] = o.Value
		}
		patch = append(patch, operation)
	}
	return patch
}

// stringAt returns the string at a JSON pointer.
func stringAt(content any, pointer string) (string, bool) {
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch at := content.(type) {
		case map[string]any:
			content = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(at) {
				return "", false
			}
			content = at[i]
		default:
			return "", false
		}
	}
	text, is := content.(string)
	return text, is
}

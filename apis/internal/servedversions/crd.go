package main

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// addVersions returns the kind that a CRD defines, and the CRD with the versions of the kind. A CRD that has them
// already stays as it is, so the order of generators does not matter.
func addVersions(text []byte, served map[kind][]string) (kind, []byte, error) {
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return kind{}, nil, fmt.Errorf("decoding: %w", err)
	}
	group, _, _ := unstructured.NestedString(crd, "spec", "group")
	name, _, _ := unstructured.NestedString(crd, "spec", "names", "kind")
	folder, _, _ := strings.Cut(group, ".")
	of := kind{folder, name}
	wanted, known := served[of]
	if !known {
		return of, nil, fmt.Errorf("say which versions %s is served in: write // %sv1,%s above its Go type", of, marker, stored)
	}
	origin, err := storedVersion(crd)
	if err != nil {
		return of, nil, err
	}
	tighten(origin)
	versions := make([]any, 0, len(wanted))
	for _, version := range wanted {
		copied := maps.Clone(origin)
		copied["name"], copied["served"], copied["storage"] = version, true, version == stored
		versions = append(versions, copied)
	}
	spec := crd["spec"].(map[string]any)
	spec["versions"] = versions
	spec["conversion"] = map[string]any{"strategy": "None"}
	written, err := yaml.Marshal(crd)
	if err != nil {
		return of, nil, fmt.Errorf("encoding: %w", err)
	}
	return of, append([]byte("---\n"), written...), nil
}

// storedVersion returns the version that all others are copies of.
func storedVersion(crd map[string]any) (map[string]any, error) {
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return nil, fmt.Errorf("reading the versions: %w", err)
	}
	for _, version := range versions {
		if fields, ok := version.(map[string]any); ok && fields["name"] == stored {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("there is no version %s", stored)
}

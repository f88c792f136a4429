// Command servedversions gives the CRDs that controller-gen wrote the further versions that their kinds are served in,
// and, before it copies, the limits that no marker can give: of label selectors, times, quantities, and fields that
// can be numbers and strings.
//
// Every version has the schema, the columns and the subresources of the one version that has Go types, so writing
// through any of them loses nothing and no conversion is needed. Which versions a kind has is said above its Go type:
//
//	// +kubebuilder:metadata:annotations="versions=v1,v1beta1"
//
// Run it after controller-gen: servedversions <folder of CRDs>...
package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// annotation is where controller-gen leaves the versions of a kind; it does not stay in the CRD.
const annotation = "versions"

func main() {
	yamlv2.FutureLineWrap() // a text that is broken into lines takes more bytes
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "servedversions:", err)
		os.Exit(1)
	}
}

// run rewrites every CRD of the fleet in some folders. The definitions of SIG Multicluster stay as it publishes them.
func run(folders []string) error {
	var problems []error
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*fleet*.io_*.yaml"))
		if err != nil {
			return fmt.Errorf("listing CRDs: %w", err)
		}
		for _, file := range files {
			if err := rewrite(file); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", file, err))
			}
		}
	}
	return errors.Join(problems...)
}

func rewrite(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading a CRD: %w", err)
	}
	crd := map[string]any{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return fmt.Errorf("decoding: %w", err)
	}
	if err := addVersions(crd); err != nil {
		return err
	}
	if text, err = yaml.Marshal(crd); err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	return os.WriteFile(file, append([]byte("---\n"), shareSchema(text)...), 0o644)
}

// shareSchema has all versions but the first name the schema of the first, which is theirs, by an alias of YAML. Helm keeps all
// definitions of a chart in one Secret, which may have 1 MiB.
func shareSchema(text []byte) []byte {
	const field = "    schema:" // of an item of spec.versions
	var shared []string
	schemas := 0
	inCopy := false
	for line := range strings.Lines(string(text)) {
		inCopy = inCopy && (line == "\n" || strings.HasPrefix(line, field[:4]+" "))
		switch {
		case inCopy:
			continue
		case line != field+"\n":
			shared = append(shared, line)
		case schemas == 0:
			schemas++
			shared = append(shared, field+" &schema\n")
		default:
			inCopy = true
			shared = append(shared, field+" *schema\n")
		}
	}
	return []byte(strings.Join(shared, ""))
}

// shortenRun keeps the first sentence of descriptions in the strategy that a run has frozen and in its conditions, and the values that a
// field can have: the strategy itself has them whole, and kubectl could not apply a definition that has them twice in three versions.
func shortenRun(version map[string]any) {
	snapshot, found, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema", "properties", "status", "properties",
		"stagedUpdateStrategySnapshot", "properties")
	if found {
		shorten(snapshot)
		shortenConditions(version["schema"])
	}
}

// shortenConditions keeps the first sentence of what each field of a condition is, which Kubernetes says wherever there are conditions: a run has
// them in eleven places.
func shortenConditions(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		if described, is := schema["description"].(string); is && strings.HasPrefix(described, "Condition contains details") {
			shorten(schema["properties"])
			return
		}
		for _, below := range schema {
			shortenConditions(below)
		}
	case []any:
		for _, below := range schema {
			shortenConditions(below)
		}
	}
}

// unnamedValues returns the few values of a field, or of the entries of a list, if a text does not name them all.
func unnamedValues(schema map[string]any, text string) (values []string) {
	entries, _ := schema["items"].(map[string]any)
	named := true
	for _, of := range []any{schema["enum"], entries["enum"]} {
		list, _ := of.([]any)
		for _, value := range list {
			values = append(values, fmt.Sprint(value))
			named = named && strings.Contains(text, fmt.Sprint(value))
		}
	}
	if named {
		return nil
	}
	return values
}

// addition is what descriptions of fields that KubeFleet does not have say.
const addition = "addition of fleetflow"

func shorten(schema any) {
	switch schema := schema.(type) {
	case map[string]any:
		described, is := schema["description"].(string)
		if first, _, more := strings.Cut(strings.ReplaceAll(described, "\n", " "), ". "); is && more {
			short := first + "."
			if values := unnamedValues(schema, first); len(values) > 0 {
				short += " One of " + strings.Join(values, ", ") + "."
			}
			if strings.Contains(described, addition) && !strings.Contains(first, addition) {
				short += " An " + addition + "."
			}
			schema["description"] = short
		}
		for _, below := range schema {
			shorten(below)
		}
	case []any:
		for _, below := range schema {
			shorten(below)
		}
	}
}

// addVersions replaces the one version of a CRD, which has Go types and in which objects are stored, by one copy for each
// version of the kind.
func addVersions(crd map[string]any) error {
	names, _, _ := unstructured.NestedString(crd, "metadata", "annotations", annotation)
	if names == "" {
		return fmt.Errorf(`say which versions it is served in: write // +kubebuilder:metadata:annotations="%s=v1,v1beta1" above its Go type`,
			annotation)
	}
	unstructured.RemoveNestedField(crd, "metadata", "annotations", annotation)
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return fmt.Errorf("reading the versions: %w", err)
	}
	if len(versions) != 1 {
		return fmt.Errorf("there are %d versions, not only the one that is stored", len(versions))
	}
	tighten(versions[0])
	shortenRun(versions[0].(map[string]any))
	stored := versions[0].(map[string]any)["name"]
	var copies []any
	for version := range strings.SplitSeq(names, ",") {
		copied := maps.Clone(versions[0].(map[string]any))
		copied["name"], copied["served"], copied["storage"] = version, true, version == stored
		copies = append(copies, copied)
	}
	spec := crd["spec"].(map[string]any)
	spec["versions"] = copies
	spec["conversion"] = map[string]any{"strategy": "None"}
	return nil
}

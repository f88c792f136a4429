// Package definitions compares the fields of the fleet's Go types with those that a hub stores. What a definition lacks, the API server
// drops, and says nothing: a placement loses what pauses it.
package definitions

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Versions are the groups and versions that the agents of the fleet read and write.
var Versions = []schema.GroupVersion{clusterv1beta1.GroupVersion, placementv1beta1.GroupVersion, fleetflowv1alpha1.GroupVersion}

// Remedy is what to do about a Gap.
const Remedy = "helm show crds <chart hub-agent> | kubectl apply --server-side --force-conflicts -f -"

// Gap has the fields that a kind has here and not on the hub, the highest ones of those that stand in one another.
type Gap struct {
	Kind   schema.GroupVersionKind
	Fields []string
}

// String returns the kind and its fields, such as ClusterResourcePlacement.placement.kubernetes-fleet.io v1beta1: spec.strategy.suspension.
func (g Gap) String() string {
	return g.Kind.Kind + "." + g.Kind.Group + " " + g.Kind.Version + ": " + strings.Join(g.Fields, ", ")
}

// Describe returns what the definitions of a hub lack.
func Describe(gaps []Gap) string {
	said := make([]string, 0, len(gaps))
	for _, gap := range gaps {
		said = append(said, gap.String())
	}
	return fmt.Sprintf("the definitions of %d kind(s) lack fields, which the hub drops from every object that is read or written: %s",
		len(gaps), strings.Join(said, "; "))
}

// Schema is what OpenAPI says of the fields of a value.
type Schema struct {
	Properties           map[string]*Schema `json:"properties"`
	Items                *Schema            `json:"items"`
	AdditionalProperties *Schema            `json:"additionalProperties"`
	PreserveUnknown      bool               `json:"x-kubernetes-preserve-unknown-fields"`
	Ref                  string             `json:"$ref"`
	AllOf                []*Schema          `json:"allOf"`
	// Kinds are those that the schema is of, if it is one of whole objects.
	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// UnmarshalJSON reads a Schema. Where it says true or false in place of one, all fields are taken, or nothing is known.
func (s *Schema) UnmarshalJSON(data []byte) error {
	if text := string(data); text == "true" || text == "false" {
		s.PreserveUnknown = true
		return nil
	}
	type plain Schema
	return json.Unmarshal(data, (*plain)(s))
}

// Lacking returns what the schemas of a hub lack of the types of a scheme, in order. Kinds without a schema are left out: the hub does
// not serve them.
func Lacking(scheme *runtime.Scheme, schemas map[schema.GroupVersionKind]*Schema) []Gap {
	var gaps []Gap
	for kind, has := range schemas {
		of, known := scheme.KnownTypes(kind.GroupVersion())[kind.Kind]
		if !known || !slices.Contains(Versions, kind.GroupVersion()) {
			continue
		}
		lacking := map[string]bool{}
		compareStruct(of, has, "", lacking)
		if len(lacking) > 0 {
			gaps = append(gaps, Gap{Kind: kind, Fields: slices.Sorted(maps.Keys(lacking))})
		}
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return strings.Compare(a.String(), b.String()) })
	return gaps
}

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	// ofKubernetes are types that every object has, and of which a definition says nothing.
	ofKubernetes = []reflect.Type{reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]()}
)

func compareStruct(of reflect.Type, has *Schema, path string, lacking map[string]bool) {
	for field := range of.Fields() {
		if slices.Contains(ofKubernetes, field.Type) {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
			compareValue(field.Type, has, path, lacking)
		case has.Properties[name] == nil:
			lacking[strings.TrimPrefix(path+"."+name, ".")] = true
		default:
			compareValue(field.Type, has.Properties[name], path+"."+name, lacking)
		}
	}
}

// compareValue compares what is in a value. Of a type that encodes itself nothing is known, nor of what a schema leaves open.
func compareValue(of reflect.Type, has *Schema, path string, lacking map[string]bool) {
	if has == nil || has.PreserveUnknown || has.Ref != "" || len(has.AllOf) > 0 || of.Implements(marshaler) || reflect.PointerTo(of).Implements(marshaler) {
		return
	}
	switch of.Kind() {
	case reflect.Pointer:
		compareValue(of.Elem(), has, path, lacking)
	case reflect.Slice:
		compareValue(of.Elem(), has.Items, path+"[]", lacking)
	case reflect.Map:
		compareValue(of.Elem(), has.AdditionalProperties, path+"{}", lacking)
	case reflect.Struct:
		if len(has.Properties) > 0 {
			compareStruct(of, has, path, lacking)
		}
	}
}

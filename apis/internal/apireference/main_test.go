package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// zoo has one of everything that the reference writes about.
const zoo = `
spec:
  group: zoo.example.com
  scope: Namespaced
  names: {kind: Zoo, plural: zoos, shortNames: [z], categories: [parks]}
  versions:
  - name: v1
    additionalPrinterColumns: [{name: Open}, {name: Visitors, priority: 1}]
    schema:
      openAPIV3Schema:
        type: object
        description: "Zoo is a park.\nIt has animals. They | live there."
        x-kubernetes-validations: [{rule: "true", message: "no <zoo>: build one"}]
        required: [spec]
        properties:
          metadata: {type: object}
          spec:
            type: object
            description: Spec says what to see.
            properties:
              size: {type: integer, minimum: 1, maximum: 9, default: 3, description: Size of the zoo.}
              fee: {x-kubernetes-int-or-string: true, pattern: "^(a|b)$", description: Fee to enter.}
              opened: {type: string, format: date-time, description: When it opened.}
              food: {type: object, x-kubernetes-preserve-unknown-fields: true, description: Food of any kind.}
              animals:
                type: array
                minItems: 1
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                description: Animals to see.
                items: &animal
                  type: object
                  required: [name]
                  x-kubernetes-validations: [{rule: self.ok, messageExpression: "'the animal ' + self.name.replace('a', 'b') + ' is gone'"}]
                  properties:
                    name: {type: string, maxLength: 63, description: Name of the animal.}
                    mood: {type: string, enum: [good, bad], description: Mood today.}
              pairs:
                type: object
                description: Pairs by name.
                additionalProperties: *animal
              house:
                type: object
                description: House for the night.
                properties:
                  rooms:
                    type: object
                    description: Rooms in the house.
                    properties:
                      a: {type: boolean, description: Room a.}
                      b: {type: boolean, description: Room b.}
                      c: {type: boolean, description: Room c.}
                      conditions:
                        type: array
                        description: Conditions of the rooms.
                        items:
                          type: object
                          properties:
                            lastTransitionTime: {type: string, description: Since when.}
                            message: {type: string, description: Text.}
                            observedGeneration: {type: integer, description: Of what.}
                            reason: {type: string, description: Why.}
                            status: {type: string, description: Whether.}
                            type: {type: string, description: What.}
  - name: v1beta1
`

func decode(t *testing.T, text string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), crd))
	return crd
}

func TestReferenceSaysWhatTheCRDSays(t *testing.T) {
	crd := decode(t, zoo)
	reference := newReference([]*kind{{
		topic: &topic{title: "Parks", intro: "Where to go."}, crd: crd, root: crd.Spec.Versions[0].Schema.OpenAPIV3Schema,
	}})
	var out bytes.Buffer
	reference.write(&out)
	_, body, found := strings.Cut(out.String(), introduction)
	require.True(t, found)
	const want = `| Kind | Short | Versions | Scope | |
|---|---|---|---|---|
| [Zoo](#zoo) | 'z' | v1, v1beta1 | namespace | Zoo is a park. |

## Parks

Where to go.

### Zoo

Zoo is a park. It has animals. They \| live there.

- apiVersion: 'zoo.example.com/v1', 'zoo.example.com/v1beta1'
- scope: namespace
- 'kubectl get': 'zoos', 'z'; with others of the fleet: 'parks'
- columns: Open; with '-o wide' also Visitors
- Rule: “no &lt;zoo&gt;: build one”

| Field | Type | |
|---|---|---|
| 'spec' | object, required | Spec says what to see. |
| <a id="zoo-spec-animals"></a>'spec.animals' | list of objects | Animals to see.<br>Not empty.<br>One entry for each 'name'.<br>Each entry: Rule: “the animal … is gone” |
| 'spec.animals[].mood' | string | Mood today.<br>One of 'good', 'bad'. |
| 'spec.animals[].name' | string, required | Name of the animal.<br>At most 63 characters. |
| 'spec.fee' | number or string | Fee to enter.<br>Matches '^(a\|b)$'. |
| 'spec.food' | any object | Food of any kind. |
| 'spec.house' | object | House for the night. |
| 'spec.house.rooms' | object | Rooms in the house.<br>Fields: [below](#zoo-spec-house-rooms). |
| 'spec.opened' | time | When it opened. |
| 'spec.pairs' | map to objects | Pairs by name.<br>Fields: see ['spec.animals'](#zoo-spec-animals).<br>Each entry: Rule: “the animal … is gone” |
| 'spec.size' | number, default '3' | Size of the zoo.<br>1 to 9. |

<a id="zoo-spec-house-rooms"></a>
'spec.house.rooms' of Zoo:

| Field | Type | |
|---|---|---|
| 'a' | boolean | Room a. |
| 'b' | boolean | Room b. |
| 'c' | boolean | Room c. |
| 'conditions' | list of objects | Conditions of the rooms.<br>Fields: see [Condition](#condition). |

## Common parts

What many kinds have.

### Condition

| Field | Type | |
|---|---|---|
| 'lastTransitionTime' | string | Since when. |
| 'message' | string | Text. |
| 'observedGeneration' | number | Of what. |
| 'reason' | string | Why. |
| 'status' | string | Whether. |
| 'type' | string | What. |
`
	assert.Equal(t, strings.ReplaceAll(want, "'", "`"), strings.ReplaceAll(body, "'", "`"))
}

func TestEveryKindIsInAChapter(t *testing.T) {
	crds := map[string]*apiextensionsv1.CustomResourceDefinition{"Zoo": decode(t, zoo)}
	_, err := arrange(crds)
	assert.ErrorContains(t, err, "kind Zoo is in no chapter: add it to topics()")
	assert.ErrorContains(t, err, "the chapter Clusters has kind MemberCluster, which has no CRD")
}

// charts are the folders of the real CRDs.
var charts = []string{"../../../deploy/charts/hub-agent/crds", "../../../deploy/charts/member-agent/crds"}

func TestReferenceIsTheSameEveryTime(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "a.md"), filepath.Join(t.TempDir(), "b.md")
	require.NoError(t, run(first, charts))
	require.NoError(t, run(second, charts))
	one, err := os.ReadFile(first)
	require.NoError(t, err)
	two, err := os.ReadFile(second)
	require.NoError(t, err)
	assert.Equal(t, string(one), string(two))
}

// Every message that a rule may answer with has to be found by those who search the reference for it.
func TestReferenceHasEveryRule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reference.md")
	require.NoError(t, run(file, charts))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	rules := 0
	var check func(schema *apiextensionsv1.JSONSchemaProps)
	check = func(schema *apiextensionsv1.JSONSchemaProps) {
		for _, rule := range rulesOf(schema) {
			rules++
			assert.Contains(t, string(text), rule)
		}
		if inner, _ := content(schema); inner != schema {
			check(inner)
		}
		for _, property := range schema.Properties {
			check(&property)
		}
	}
	for _, folder := range charts {
		files, err := filepath.Glob(filepath.Join(folder, "*.kubernetes-fleet.io_*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			crd, err := read(file)
			require.NoError(t, err)
			check(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		}
	}
	assert.Positive(t, rules)
}

func TestLinksOfTheReferenceLead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reference.md")
	require.NoError(t, run(file, charts))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	links := 0
	for _, part := range strings.Split(string(text), "](#")[1:] {
		anchor, _, _ := strings.Cut(part, ")")
		links++
		heading := strings.Contains(strings.ToLower(string(text)), "\n### "+strings.ReplaceAll(anchor, "-", " ")+"\n")
		assert.True(t, heading || strings.Count(string(text), `<a id="`+anchor+`">`) == 1, anchor)
	}
	assert.Positive(t, links)
}

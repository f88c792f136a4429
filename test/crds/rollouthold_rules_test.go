package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfRolloutHolds(t *testing.T) {
	const operators = "an operator of matchExpressions is In or NotIn, with values, or Exists or DoesNotExist, without"
	k := loadKind(t, "RolloutHold")
	for name, tc := range map[string]struct {
		spec, refusal string
	}{
		"a message is enough":        {spec: "{message: payments down}"},
		"there is none without":      {spec: "{}", refusal: "spec.message: Required value"},
		"an empty message is none":   {spec: `{message: ""}`, refusal: "spec.message in body should be at least 1 chars long"},
		"a message is one sentence":  {spec: "{message: " + strings.Repeat("x", 257) + "}", refusal: "may not be more than 256"},
		"selectors":                  {spec: "{message: m, clusterSelector: {matchLabels: {region: west}}, placementSelector: {matchExpressions: [{key: team, operator: In, values: [web]}]}}"},
		"empty selectors":            {spec: "{message: m, clusterSelector: {}, placementSelector: {}}"},
		"a label that exists":        {spec: "{message: m, clusterSelector: {matchExpressions: [{key: team, operator: Exists}]}}"},
		"labels of Namespaces":       {spec: "{message: m, namespaceSelector: {matchLabels: {team: payments}}}"},
		"values of them are missing": {spec: "{message: m, namespaceSelector: {matchExpressions: [{key: team, operator: In}]}}", refusal: operators},
		"an operator there is not":   {spec: "{message: m, clusterSelector: {matchExpressions: [{key: team, operator: Like, values: [web]}]}}", refusal: `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"values are missing":         {spec: "{message: m, placementSelector: {matchExpressions: [{key: team, operator: In}]}}", refusal: operators},
		"values that say nothing":    {spec: "{message: m, placementSelector: {matchExpressions: [{key: team, operator: Exists, values: [web]}]}}", refusal: operators},
		"some starts":                {spec: "{message: m, starts: [Updates, Evictions]}"},
		"all starts":                 {spec: "{message: m, starts: [Updates, FirstPlacements, Removals, Evictions]}"},
		"no start":                   {spec: "{message: m, starts: []}", refusal: "should have at least 1 items"},
		"a start there is not":       {spec: "{message: m, starts: [Rollbacks]}", refusal: `supported values: "Updates", "FirstPlacements", "Removals", "Evictions"`},
		"a start twice":              {spec: "{message: m, starts: [Updates, Updates]}", refusal: "Duplicate value"},
		"rollbacks may be exempt":    {spec: "{message: m, rollbacks: Exempt}"},
		"or gated":                   {spec: "{message: m, rollbacks: Gated}"},
		"and nothing else":           {spec: "{message: m, rollbacks: Allowed}", refusal: `supported values: "Gated", "Exempt"`},
		"it may expire":              {spec: `{message: m, expirationTime: "2126-11-22T06:00:00Z"}`},
		"at an instant with a zone":  {spec: `{message: m, expirationTime: "2126-11-22"}`, refusal: "must be of type date-time"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, fmt.Sprintf("apiVersion: fleetflow.io/v1alpha1\nkind: RolloutHold\nmetadata: {name: incident}\nspec: %s\n", tc.spec), "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
}

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
		"a reason is enough":        {spec: "{reason: payments down}"},
		"there is none without":     {spec: "{}", refusal: "spec.reason: Required value"},
		"an empty reason is none":   {spec: `{reason: ""}`, refusal: "spec.reason in body should be at least 1 chars long"},
		"a reason is one sentence":  {spec: "{reason: " + strings.Repeat("x", 257) + "}", refusal: "may not be more than 256"},
		"selectors":                 {spec: "{reason: r, clusterSelector: {matchLabels: {region: west}}, placementSelector: {matchExpressions: [{key: team, operator: In, values: [web]}]}}"},
		"empty selectors":           {spec: "{reason: r, clusterSelector: {}, placementSelector: {}}"},
		"a label that exists":       {spec: "{reason: r, clusterSelector: {matchExpressions: [{key: team, operator: Exists}]}}"},
		"an operator there is not":  {spec: "{reason: r, clusterSelector: {matchExpressions: [{key: team, operator: Like, values: [web]}]}}", refusal: `supported values: "In", "NotIn", "Exists", "DoesNotExist"`},
		"values are missing":        {spec: "{reason: r, placementSelector: {matchExpressions: [{key: team, operator: In}]}}", refusal: operators},
		"values that say nothing":   {spec: "{reason: r, placementSelector: {matchExpressions: [{key: team, operator: Exists, values: [web]}]}}", refusal: operators},
		"some starts":               {spec: "{reason: r, applies: [Updates, Evictions]}"},
		"all starts":                {spec: "{reason: r, applies: [Updates, FirstPlacements, Removals, Evictions]}"},
		"no start":                  {spec: "{reason: r, applies: []}", refusal: "should have at least 1 items"},
		"a start there is not":      {spec: "{reason: r, applies: [Rollbacks]}", refusal: `supported values: "Updates", "FirstPlacements", "Removals", "Evictions"`},
		"a start twice":             {spec: "{reason: r, applies: [Updates, Updates]}", refusal: "Duplicate value"},
		"rollbacks may be exempt":   {spec: "{reason: r, rollbacks: Exempt}"},
		"or gated":                  {spec: "{reason: r, rollbacks: Gated}"},
		"and nothing else":          {spec: "{reason: r, rollbacks: Allowed}", refusal: `supported values: "Gated", "Exempt"`},
		"it may expire":             {spec: `{reason: r, expiresAt: "2126-11-22T06:00:00Z"}`},
		"at an instant with a zone": {spec: `{reason: r, expiresAt: "2126-11-22"}`, refusal: "must be of type date-time"},
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

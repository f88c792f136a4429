package crds

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfRolloutExemptions(t *testing.T) {
	const end = `expirationTime: "2126-11-22T06:00:00Z"`
	k := loadKind(t, "RolloutExemption")
	for name, tc := range map[string]struct {
		spec, refusal string
	}{
		"a run, from a hold":            {spec: "{run: web-17, from: [{kind: Hold, name: incident}], message: r, " + end + "}"},
		"a placement, from all windows": {spec: "{placement: web, from: [{kind: Window}], message: r, " + end + "}"},
		"one in a namespace, a window":  {spec: "{run: web-17, namespace: team-a, from: [{kind: Window, name: nights}], message: r, ticket: INC-9, " + end + "}"},
		"from an analysis":              {spec: "{run: web-17, from: [{kind: Analysis, stage: canary}], message: r, " + end + "}"},
		"that very run":                 {spec: "{run: web-17, uid: 0e7a4c3e-5a3c-4f0e-9e1c-2d1f7f1d6a55, from: [{kind: Window}], message: r, " + end + "}"},
		"a uid that is none":            {spec: "{run: web-17, uid: " + strings.Repeat("x", 65) + ", from: [{kind: Window}], message: r, " + end + "}", refusal: "may not be more than 64"},
		"neither run nor placement":     {spec: "{from: [{kind: Window}], message: r, " + end + "}", refusal: "set exactly one of run and placement"},
		"both":                          {spec: "{run: a, placement: b, from: [{kind: Window}], message: r, " + end + "}", refusal: "set exactly one of run and placement"},
		"from nothing":                  {spec: "{run: a, from: [], message: r, " + end + "}", refusal: "should have at least 1 items"},
		"an approval is never waived":   {spec: "{run: a, from: [{kind: Approval}], message: r, " + end + "}", refusal: `supported values: "Hold", "Window", "Analysis"`},
		"a hold has a name":             {spec: "{run: a, from: [{kind: Hold}], message: r, " + end + "}", refusal: "name the hold"},
		"a hold has no stage":           {spec: "{run: a, from: [{kind: Hold, name: h, stage: s}], message: r, " + end + "}", refusal: "stage belongs to kind Analysis"},
		"an analysis has a stage":       {spec: "{run: a, from: [{kind: Analysis}], message: r, " + end + "}", refusal: "which needs the name of the stage"},
		"an analysis has no name":       {spec: "{run: a, from: [{kind: Analysis, stage: s, name: other}], message: r, " + end + "}", refusal: "an Analysis is named by its stage, without name"},
		"a placement has no analyses":   {spec: "{placement: a, from: [{kind: Analysis, stage: s}], message: r, " + end + "}", refusal: "an Analysis belongs to an update run: set run instead of placement"},
		"no reason":                     {spec: "{run: a, from: [{kind: Window}], " + end + "}", refusal: "spec.message: Required value"},
		"an empty reason":               {spec: `{run: a, from: [{kind: Window}], message: "", ` + end + "}", refusal: "spec.message in body should be at least 1 chars long"},
		"a long reason":                 {spec: "{run: a, from: [{kind: Window}], message: " + strings.Repeat("x", 257) + ", " + end + "}", refusal: "may not be more than 256"},
		"no end":                        {spec: "{run: a, from: [{kind: Window}], message: r}", refusal: "spec.expirationTime: Required value"},
		"an end that is no instant":     {spec: `{run: a, from: [{kind: Window}], message: r, expirationTime: "2126-11-22"}`, refusal: "must be of type date-time"},
		"more than twenty is too much":  {spec: "{run: a, from: [" + strings.Repeat("{kind: Window},", 21) + "], message: r, " + end + "}", refusal: "must have at most 20 items"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs := k.admit(t, fmt.Sprintf("apiVersion: fleetflow.io/v1alpha1\nkind: RolloutExemption\nmetadata: {name: hotfix}\nspec: %s\n", tc.spec), "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
}

func TestAnExemptionDoesNotChange(t *testing.T) {
	const manifest = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption, metadata: {name: hotfix}, spec: {run: %s, from: [{kind: Window}], message: r, expirationTime: "2126-11-22T06:00:00Z"}}`
	_, errs := loadKind(t, "RolloutExemption").admit(t, fmt.Sprintf(manifest, "b"), fmt.Sprintf(manifest, "a"))
	assert.Contains(t, texts(errs), "an exemption does not change: delete it, and create another one")
}

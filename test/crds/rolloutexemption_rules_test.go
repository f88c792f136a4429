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
		"a run, from a hold":             {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: web-17}, exemptFrom: [{kind: RolloutHold, name: incident}], message: r, " + end + "}"},
		"a placement, from all windows":  {spec: "{targetRef: {kind: ClusterResourcePlacement, name: web}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}"},
		"one in a namespace, a window":   {spec: "{targetRef: {kind: StagedUpdateRun, namespace: team-a, name: web-17}, exemptFrom: [{kind: RolloutWindow, name: nights}], message: r, ticket: INC-9, " + end + "}"},
		"from an analysis":               {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: web-17}, exemptFrom: [{kind: StageAnalysis, stage: canary}], message: r, " + end + "}"},
		"that very run":                  {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: web-17, uid: 0e7a4c3e-5a3c-4f0e-9e1c-2d1f7f1d6a55}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}"},
		"a uid that is none":             {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: web-17, uid: " + strings.Repeat("x", 65) + "}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}", refusal: "may not be more than 64"},
		"no target":                      {spec: "{exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}", refusal: "spec.targetRef: Required value"},
		"a team's run without namespace": {spec: "{targetRef: {kind: StagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}", refusal: "namespace belongs to the kinds StagedUpdateRun and ResourcePlacement"},
		"a run of the cluster in one":    {spec: "{targetRef: {kind: ClusterStagedUpdateRun, namespace: team-a, name: a}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}", refusal: "namespace belongs to the kinds StagedUpdateRun and ResourcePlacement"},
		"another kind":                   {spec: "{targetRef: {kind: Deployment, name: a}, exemptFrom: [{kind: RolloutWindow}], message: r, " + end + "}", refusal: `supported values: "ClusterStagedUpdateRun", "StagedUpdateRun", "ClusterResourcePlacement", "ResourcePlacement"`},
		"from nothing":                   {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [], message: r, " + end + "}", refusal: "should have at least 1 items"},
		"an approval is never waived":    {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: Approval}], message: r, " + end + "}", refusal: `supported values: "RolloutHold", "RolloutWindow", "StageAnalysis"`},
		"a hold has a name":              {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutHold}], message: r, " + end + "}", refusal: "name the hold"},
		"a hold has no stage":            {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutHold, name: h, stage: s}], message: r, " + end + "}", refusal: "stage belongs to kind StageAnalysis"},
		"an analysis has a stage":        {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: StageAnalysis}], message: r, " + end + "}", refusal: "which needs the name of the stage"},
		"an analysis has no name":        {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: StageAnalysis, stage: s, name: other}], message: r, " + end + "}", refusal: "the analyses of a stage are named by the stage, without name"},
		"a placement has no analyses":    {spec: "{targetRef: {kind: ClusterResourcePlacement, name: a}, exemptFrom: [{kind: StageAnalysis, stage: s}], message: r, " + end + "}", refusal: "a StageAnalysis belongs to an update run: name a ClusterStagedUpdateRun"},
		"no message":                     {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], " + end + "}", refusal: "spec.message: Required value"},
		"an empty message":               {spec: `{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], message: "", ` + end + "}", refusal: "spec.message in body should be at least 1 chars long"},
		"a long message":                 {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], message: " + strings.Repeat("x", 257) + ", " + end + "}", refusal: "may not be more than 256"},
		"no end":                         {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], message: r}", refusal: "spec.expirationTime: Required value"},
		"an end that is no instant":      {spec: `{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [{kind: RolloutWindow}], message: r, expirationTime: "2126-11-22"}`, refusal: "must be of type date-time"},
		"more than twenty is too much":   {spec: "{targetRef: {kind: ClusterStagedUpdateRun, name: a}, exemptFrom: [" + strings.Repeat("{kind: RolloutWindow},", 21) + "], message: r, " + end + "}", refusal: "must have at most 20 items"},
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
	const manifest = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption, metadata: {name: hotfix}, spec: {targetRef: {kind: ClusterStagedUpdateRun, name: %s}, exemptFrom: [{kind: RolloutWindow}], message: r, expirationTime: "2126-11-22T06:00:00Z"}}`
	_, errs := loadKind(t, "RolloutExemption").admit(t, fmt.Sprintf(manifest, "b"), fmt.Sprintf(manifest, "a"))
	assert.Contains(t, texts(errs), "an exemption does not change: delete it, and create another one")
}

package crds

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/resource"
)

// unreadable returns the fields at and below a schema that admit values which Go cannot read. One such value would keep
// an agent from reading any object of the kind.
func unreadable(path string, s *schema.Structural) []string {
	var found []string
	if problem := looseness(s); problem != "" {
		found = append(found, path+" is "+problem)
	}
	for name, property := range s.Properties {
		found = append(found, unreadable(path+"."+name, &property)...)
	}
	if s.Items != nil {
		found = append(found, unreadable(path+"[]", s.Items)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
		found = append(found, unreadable(path+"{}", s.AdditionalProperties.Structural)...)
	}
	return found
}

// looseness says what a schema by itself admits and Go cannot read.
func looseness(s *schema.Structural) string {
	v := s.ValueValidation
	if v == nil {
		v = &schema.ValueValidation{}
	}
	isQuantity := strings.Contains(v.Pattern, "[KMGTPE]i")
	switch {
	case v.Format == "date-time" && v.Pattern == "":
		return "a time of any form"
	case isQuantity && !strings.Contains(v.Pattern, "[0-9]{1,2}"):
		return "a quantity of any form"
	case s.XIntOrString && !isQuantity && (v.Maximum == nil || *v.Maximum > math.MaxInt32):
		return "a number without limit"
	}
	return ""
}

func TestWhatIsAdmittedCanBeRead(t *testing.T) {
	for name := range loadCRDs(t) {
		assert.Empty(t, unreadable(name, loadKind(t, name).structural))
	}
}

func TestNumbersAndWaitsThatCannotBeReadAreRefused(t *testing.T) {
	const tooLarge = "should be less than or equal to 2147483647"
	run(t, "ClusterResourcePlacement", map[string]ruleCase{
		"a surge":              {spec: placementRolling("maxSurge: 3000000000"), refusal: tooLarge},
		"an unavailability":    {spec: placementRolling("maxUnavailable: 3000000000"), refusal: tooLarge},
		"the largest there is": {spec: placementRolling("maxUnavailable: 2147483647, maxSurge: 2147483647")},
		"a percentage":         {spec: placementRolling("maxUnavailable: 100%, maxSurge: '10'")},
	})
	run(t, "ClusterResourcePlacementDisruptionBudget", map[string]ruleCase{
		"a maximum": {spec: "{maxUnavailable: 3000000000}", refusal: tooLarge},
		"a minimum": {spec: "{minAvailable: 3000000000}", refusal: tooLarge},
	})
	stage := func(fields string) string { return "{stages: [{name: canary, " + fields + "}]}" }
	cases := map[string]ruleCase{"a concurrency": {spec: stage("maxConcurrency: 3000000000"), refusal: tooLarge}}
	for _, wait := range []string{"99999999999h", "2562048h", "9999999999999999999999s", "0.5ms", "0.0001s", "01h", "1h05m"} {
		cases["a wait of "+wait] = ruleCase{spec: stage("afterStageTasks: [{type: TimedWait, waitTime: " + wait + "}]"),
			refusal: "waitTime must be 0, or 1ms to 292 years: write it like 30s, 15m or 1h30m"}
	}
	for _, wait := range []string{"2562047h", "0.001s", "0.5s", "1h1h", "0h30m", "10h"} {
		cases["but not a wait of "+wait] = ruleCase{spec: stage("afterStageTasks: [{type: TimedWait, waitTime: " + wait + "}]")}
	}
	run(t, "ClusterStagedUpdateStrategy", cases)
}

func placementRolling(limits string) string {
	return "{resourceSelectors: [{group: '', version: v1, kind: Namespace, name: web}], strategy: {rollingUpdate: {" + limits + "}}}"
}

// TestTimesAreThoseOfGo asks for what the API server and Go make of a time, which has to be the same.
func TestTimesAreThoseOfGo(t *testing.T) {
	k := loadKind(t, "ClusterApprovalRequest")
	for text, readable := range map[string]bool{
		"2025-01-01T00:00:00Z": true, "2025-01-01T00:00:00.5Z": true, "2025-01-01T00:00:00+02:00": true, "2025-01-01T23:59:59.123456789-05:30": true,
		"2025-01-01t00:00:00Z": false, "2025-01-01T00:00:00z": false, "2025-01-01T00:00:00x5Z": false, "2025-01-01T00:00:00+25:00": false,
		"2025-02-31T00:00:00Z": false, "2025-01-01T24:00:00Z": false, "2025-01-01 00:00:00Z": false, "2025-01-01": false, "now": false,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := time.Parse(time.RFC3339, text)
			require.Equal(t, readable, err == nil)
			_, errs := k.admit(t, fmt.Sprintf(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: a}
spec: {parentStageRollout: a, targetStage: b}
status: {conditions: [{type: Approved, status: "True", reason: lgtm, message: lgtm, lastTransitionTime: "%s"}]}
`, text), "")
			assert.Equal(t, readable, len(errs) == 0, texts(errs))
		})
	}
}

// TestQuantitiesAreThoseOfGo asks for what the API server and Go make of a quantity, which has to be the same.
func TestQuantitiesAreThoseOfGo(t *testing.T) {
	k := loadKind(t, "InternalMemberCluster")
	for text, readable := range map[string]bool{
		"3": true, "-3": true, "1.5": true, ".5": true, "5.": true, "100m": true, "10Gi": true, "1e3": true, "1E-3": true, "2E": true,
		"1e1.5": false, "1e99999999999999999999": false, "1e": false, "0x1": false, "many": false, "1gi": false,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := resource.ParseQuantity(text)
			require.Equal(t, readable, err == nil)
			_, errs := k.admit(t, fmt.Sprintf(`
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: InternalMemberCluster
metadata: {name: a}
spec: {state: Join}
status: {resourceUsage: {capacity: {cpu: "%s"}}}
`, text), "")
			assert.Equal(t, readable, len(errs) == 0, texts(errs))
		})
	}
}

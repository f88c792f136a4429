//go:build integration

package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// exemption is a manifest of one that ends after a while.
func exemption(name, annotations string, lasts time.Duration) string {
	return fmt.Sprintf(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption, metadata: {generateName: %s-, annotations: {%s}},
  spec: {targetRef: {kind: ClusterStagedUpdateRun, name: web-17}, exemptFrom: [{kind: RolloutHold, name: incident}], message: CVE, expirationTime: "%s"}}`, name, annotations, time.Now().Add(lasts).UTC().Format(time.RFC3339))
}

// createsExemption tries to make one.
func createsExemption(t *testing.T, s *session) error {
	return creates(exemption("role", "", time.Hour))(t, s)
}

func TestWhoMadeAnExemptionIsToldByTheHub(t *testing.T) {
	jane := as(t, "jane")
	made := jane.create(t, exemption("mine", "", 2*time.Hour))
	assert.Equal(t, "jane", made.GetAnnotations()[placementv1beta1.CreatorAnnotation])
	sent := jane.create(t, exemption("sent", placementv1beta1.CreatorAnnotation+": jane", 2*time.Hour))
	assert.Equal(t, "jane", sent.GetAnnotations()[placementv1beta1.CreatorAnnotation], "where the hub cannot note it, the command sends it")

	requireRefusal(t, creates(exemption("theirs", placementv1beta1.CreatorAnnotation+": ada", time.Hour))(t, jane), "says who has created the run or the exemption: leave it out")
	requireRefusal(t, changes(exemption("mine", "", time.Hour), "", made.GetName(), `{metadata: {annotations: {"`+placementv1beta1.CreatorAnnotation+`": ada}}}`)(t, jane), "says who has created the run or the exemption")
	requireRefusal(t, changes(exemption("mine", "", time.Hour), "", made.GetName(), `{spec: {message: other}}`)(t, jane), "an exemption does not change: delete it, and create another one")
	require.NoError(t, changes(exemption("mine", "", time.Hour), "", made.GetName(), `{metadata: {labels: {a: b}}}`)(t, jane))
}

func TestAnExemptionFromBusyClusters(t *testing.T) {
	from := func(what string) string {
		return strings.Replace(exemption("busy", "", time.Hour), "[{kind: RolloutHold, name: incident}]", "["+what+"]", 1)
	}
	jane := as(t, "jane")
	require.NoError(t, creates(from("{kind: BusyCluster}"))(t, jane))
	require.NoError(t, creates(from("{kind: BusyCluster, name: member-1}"))(t, jane))
	requireRefusal(t, creates(from("{kind: BusyCluster, stage: canary}"))(t, jane), "stage belongs to kind StageAnalysis")
	requireRefusal(t, creates(from("{kind: Busy}"))(t, jane), `supported values: "RolloutHold", "RolloutWindow", "StageAnalysis", "BusyCluster"`)
}

func TestAnExemptionEndsWithinADay(t *testing.T) {
	jane := as(t, "jane")
	requireRefusal(t, creates(exemption("past", "", -time.Minute))(t, jane), "spec.expirationTime has passed")
	requireRefusal(t, creates(exemption("long", "", 25*time.Hour))(t, jane), "an exemption ends within 24 hours of its creation")
	require.NoError(t, creates(exemption("day", "", 24*time.Hour-time.Minute))(t, jane))
}

func TestAHoldEndsAfterItIsMade(t *testing.T) {
	hold := func(fields string) string {
		return "{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {generateName: ends-}, spec: {message: payments down, clusterSelector: {matchLabels: {region: nowhere}}" + fields + "}}"
	}
	until := func(from time.Duration) string {
		return fmt.Sprintf(", expirationTime: %q", time.Now().Add(from).UTC().Format(time.RFC3339))
	}
	jane := as(t, "jane")
	requireRefusal(t, creates(hold(until(-time.Minute)))(t, jane), "spec.expirationTime has passed: name an instant that is still to come")
	require.NoError(t, creates(hold(until(time.Minute)))(t, jane))
	require.NoError(t, creates(hold(until(1000*time.Hour)))(t, jane), "unlike an exemption")
	require.NoError(t, creates(hold(""))(t, jane))
}

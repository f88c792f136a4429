package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestASkippedClusterIsCountedAlikeWhereverARunIsShown(t *testing.T) {
	run, _ := waitingAtCanary()
	run.Status.StagesStatus[1].Clusters[0].Conditions = []metav1.Condition{
		condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionFalse, placementv1beta1.ReasonClusterUpdatingSkipped, time.Minute),
	}
	c := newConsole(t, run)
	require.NoError(t, c.run("status", "web-5"))
	assert.Regexp(t, `run/web-5 .* 3/3, 1 skipped`, c.Out.String())
	require.NoError(t, c.run("get", "runs"))
	assert.Regexp(t, `web-5 .* 3/3, 1 skipped`, c.Out.String())
	require.NoError(t, c.run("status", "web-5", "-o", "json"))
	assert.Regexp(t, `"total": 3,\s+"done": 2,\s+"skipped": 1`, c.Out.String(), "programs get each number by itself")
}

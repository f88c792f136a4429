package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
)

// guestbookRun is a run as KubeFleet's documentation prints it in the middle: messages are empty, nothing is fleetflow's.
const guestbookRun = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateRun
metadata: {name: guestbook-updaterun, generation: 1, uid: run-uid, creationTimestamp: "2026-01-02T14:47:41Z"}
spec: {placementName: guestbook-crp, resourceSnapshotIndex: "0", stagedRolloutStrategyName: team-a-strategy}
status:
  policySnapshotIndexUsed: "0"
  conditions:
  - {type: Initialized, status: "True", reason: UpdateRunInitializedSuccessfully, message: ClusterStagedUpdateRun initialized successfully, observedGeneration: 1, lastTransitionTime: "2026-01-02T14:47:41Z"}
  - {type: Progressing, status: "True", reason: UpdateRunStarted, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:47:41Z"}
  stagedUpdateStrategySnapshot:
    stages:
    - {name: staging, labelSelector: {matchLabels: {environment: staging}}, afterStageTasks: [{type: TimedWait, waitTime: 1m}]}
    - {name: canary, labelSelector: {matchLabels: {environment: canary}}, afterStageTasks: [{type: Approval}]}
    - {name: production, labelSelector: {matchLabels: {environment: production}}}
  stagesStatus:
  - stageName: staging
    startTime: "2026-01-02T14:47:41Z"
    endTime: "2026-01-02T14:48:56Z"
    afterStageTaskStatus:
    - {type: TimedWait, conditions: [{type: WaitTimeElapsed, status: "True", reason: AfterStageTaskWaitTimeElapsed, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:48:56Z"}]}
    clusters:
    - clusterName: member1
      conditions:
      - {type: Started, status: "True", reason: ClusterUpdatingStarted, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:47:41Z"}
      - {type: Succeeded, status: "True", reason: ClusterUpdatingSucceeded, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:47:56Z"}
      resourceOverrideSnapshots: [{name: guestbook-app-ro-0, namespace: guestbook}]
    conditions:
    - {type: Progressing, status: "False", reason: StageUpdatingWaiting, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:47:56Z"}
    - {type: Succeeded, status: "True", reason: StageUpdatingSucceeded, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:48:56Z"}
  - stageName: canary
    startTime: "2026-01-02T14:48:56Z"
    afterStageTaskStatus:
    - type: Approval
      approvalRequestName: guestbook-updaterun-canary
      conditions:
      - {type: ApprovalRequestCreated, status: "True", reason: AfterStageTaskApprovalRequestCreated, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:49:11Z"}
    clusters:
    - clusterName: member2
      conditions:
      - {type: Started, status: "True", reason: ClusterUpdatingStarted, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:48:56Z"}
      - {type: Succeeded, status: "True", reason: ClusterUpdatingSucceeded, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:49:11Z"}
    conditions:
    - {type: Progressing, status: "False", reason: StageUpdatingWaiting, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:49:11Z"}
  - stageName: production
    clusters: [{clusterName: member3}]
  deletionStageStatus: {stageName: kubernetes-fleet.io/deleteStage, clusters: []}
`

// guestbookPlacement is the placement of that run, as it is printed before.
const guestbookPlacement = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: guestbook-crp, generation: 1, creationTimestamp: "2026-01-02T14:00:00Z"}
spec:
  resourceSelectors: [{group: "", kind: Namespace, name: guestbook, version: v1}]
  strategy: {type: External}
status:
  observedResourceIndex: "0"
  conditions:
  - {type: ClusterResourcePlacementScheduled, status: "True", reason: SchedulingPolicyFulfilled, message: "found all cluster needed as specified by the scheduling policy, found 3 cluster(s)", observedGeneration: 1, lastTransitionTime: "2026-01-02T14:00:00Z"}
  - {type: ClusterResourcePlacementRolloutStarted, status: Unknown, reason: RolloutStartedUnknown, message: There are still 3 cluster(s) in the process of deciding whether to roll out the latest resources or not, observedGeneration: 1, lastTransitionTime: "2026-01-02T14:00:00Z"}
  placementStatuses:
  - clusterName: member1
    conditions:
    - {type: Scheduled, status: "True", reason: Scheduled, message: picked by scheduling policy, observedGeneration: 1, lastTransitionTime: "2026-01-02T14:00:00Z"}
    - {type: RolloutStarted, status: Unknown, reason: RolloutStartedUnknown, message: In the process of deciding whether to roll out the latest resources or not, observedGeneration: 1, lastTransitionTime: "2026-01-02T14:00:00Z"}
`

func TestObjectsOfAKubeFleetHubAreUnderstood(t *testing.T) {
	run := object[placementv1beta1.ClusterStagedUpdateRun](t, guestbookRun)
	placement := object[placementv1beta1.ClusterResourcePlacement](t, guestbookPlacement)
	c := newConsole(t, run, placement)
	require.NoError(t, c.run("status", "guestbook-updaterun"))
	c.Golden("kubefleet-run.txt")
	require.NoError(t, c.run("status", "guestbook-crp"))
	assert.Contains(t, c.Out.String(), "◷ placement/guestbook-crp  Waiting")
	require.NoError(t, c.run("get", "placements,runs"))
	assert.Contains(t, c.Out.String(), "approval of guestbook-updaterun-canary")
	assert.Contains(t, c.Out.String(), "run guestbook-updaterun: Waiting")
	require.NoError(t, c.run("history", "guestbook-crp"))
	assert.Contains(t, c.Out.String(), "stage staging succeeded, 1 of 1 clusters, after 75s")
	require.NoError(t, c.run("diff", "guestbook-crp"))
	assert.Contains(t, c.Out.String(), "no differences reported on 1 member")
}

func TestTheRecordedHubOfALiveKubeFleetIsShownAndSteered(t *testing.T) {
	c := newConsole(t, recordedHub(t)...)
	for line, want := range map[string][]string{
		"get":                                    {"member-1", "web ", "roll", "team-namespace", "web-1", "web-2"},
		"get members -o wide":                    {"LABELS"},
		"get members -o name":                    {"membercluster.cluster.kubernetes-fleet.io/member-1\n"},
		"get runs web-1 web-2":                   {"Succeeded"},
		"get approvals web-2-after-canary":       {"web-2", "canary"},
		"status placement/web":                   {"placement/web", "member-1"},
		"status run/web-1":                       {"✓ run/web-1", "Succeeded"},
		"status placement/some --all":            {"placement/some"},
		"history web":                            {"web-1", "web-2"},
		"diff placement/web":                     {"placement/web"},
		"diff placement/web --member member-1":   {"placement/web"},
		"why member-1 --placement placement/web": {"member-1"},
		"why --placement some":                   {"picked by scheduling policy"},
		"get placements -o jsonpath={.items[*].metadata.name}": {"fixed", "web"},
	} {
		t.Run(line, func(t *testing.T) {
			if err := c.run(strings.Split(line, " ")...); err != nil {
				exit, is := errors.AsType[*cli.Exit](err)
				require.True(t, is && exit.Err == nil, "%v", err) // members differ, which diff has said
			}
			for _, text := range want {
				assert.Contains(t, c.Out.String(), text)
			}
		})
	}
	require.NoError(t, c.run("cordon", "member-1"))
	require.NoError(t, c.run("uncordon", "member-1"))
	assert.Equal(t, "member/member-1 uncordoned\n", c.Out.String())
	require.ErrorContains(t, c.run("approve", "web-1"), "has ended (succeeded)")
}

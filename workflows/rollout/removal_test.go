package rollout_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// A stage that removes has no requests: what its status says, and what may begin, is the request.
func TestAStageThatRemovesBeginsWhateverMayBegin(t *testing.T) {
	no := refusal("no", instant(9))
	waits := rollout.StageCluster{Name: "waits"}
	closed := rollout.StageCluster{Name: "closed", Waits: []rollout.Wait{hold}, Owner: rollout.OwnerNone}
	suspended := rollout.StageCluster{Name: "suspended", Owner: rollout.OwnerNone, Waits: []rollout.Wait{freeze}}
	goes := rollout.StageCluster{Name: "goes", Phase: rollout.ClusterUpdating, Owner: rollout.OwnerThisRun, StartedAt: instant(0)}
	gone := rollout.StageCluster{Name: "gone", Phase: rollout.ClusterUpdating, Owner: rollout.OwnerThisRun, Available: true, StartedAt: instant(0)}
	unwritten := rollout.StageCluster{Name: "unwritten", Phase: rollout.ClusterUpdating, Owner: rollout.OwnerNone, StartedAt: instant(0)}
	begun := goes
	begun.Name = "begun"
	begun.Phase = rollout.ClusterWaiting
	begun.StartedAt = time.Time{}
	left := rollout.StageCluster{Name: "left", Phase: rollout.ClusterSkipped}
	again := rollout.StageCluster{Name: "again", Owner: rollout.OwnerGone}
	refused := unwritten
	refused.Name = "refused"
	refused.Waits = []rollout.Wait{no}
	closedBegun := unwritten
	closedBegun.Waits = []rollout.Wait{hold}
	cleared := rollout.StageCluster{Name: "cleared", Phase: rollout.ClusterDone}
	for sentence, test := range map[string]struct {
		clusters        []rollout.StageCluster
		stopping, stuck bool
		minute          int
		want            func(*rollout.StagePlan)
	}{
		"all that wait begin at the same time": {clusters: []rollout.StageCluster{waits, goes, unwritten}, want: func(p *rollout.StagePlan) {
			p.Start = []string{"waits", "unwritten"}
			p.InFlight = []string{"waits", "goes", "unwritten"}
			p.Progress = true
			p.LookAt = instant(5)
		}},
		"a closed one does not, and others are not kept waiting": {clusters: []rollout.StageCluster{closed, waits}, want: func(p *rollout.StagePlan) {
			p.Start = []string{"waits"}
			p.InFlight = []string{"waits"}
			p.Waits = waitsOf(hold, "closed")
			p.Progress = true
		}},
		"with closed ones alone it stands still": {clusters: []rollout.StageCluster{closed, cleared}, want: func(p *rollout.StagePlan) {
			p.Waits = waitsOf(hold, "closed")
			p.StandsStill = true
		}},
		"one that was not written to is taken back when it closes": {clusters: []rollout.StageCluster{closedBegun}, want: func(p *rollout.StagePlan) {
			p.NotStarted = []string{"unwritten"}
			p.TakeBack = []string{"unwritten"}
			p.Waits = waitsOf(hold, "unwritten")
			p.StandsStill = true
		}},
		"a suspended one is said to be so": {clusters: []rollout.StageCluster{suspended}, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"suspended"}
			p.Waits = waitsOf(freeze, "suspended")
			p.Tell = p.Waits
			p.Progress = true
		}},
		"a refused one is tried again later": {clusters: []rollout.StageCluster{refused}, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"refused"}
			p.Waits = waitsOf(no, "refused")
			p.Tell = p.Waits
			p.Progress = true
			p.LookAt = instant(5)
		}},
		"what is gone is recorded at once, and the run is stuck no longer": {clusters: []rollout.StageCluster{gone, goes}, stuck: true, minute: 6, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"goes"}
			p.Done = []string{"gone"}
			p.RecordDone = true
			p.Progress = true
		}},
		"what does not go is named": {clusters: []rollout.StageCluster{goes}, minute: 5, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"goes"}
			p.Stuck = "goes"
		}},
		"one that is selected again is left, and it is over": {clusters: []rollout.StageCluster{again, gone}, want: func(p *rollout.StagePlan) {
			p.Leave = []string{"again"}
			p.Done = []string{"gone"}
			p.RecordDone = true
			p.Over = true
			p.Progress = true
		}},
		"what was left is not reported again": {clusters: []rollout.StageCluster{left, goes}, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"goes"}
			p.Progress = true
			p.LookAt = instant(5)
		}},
		"a run that stops begins nothing": {clusters: []rollout.StageCluster{waits, goes, unwritten}, stopping: true, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"goes"}
			p.NotStarted = []string{"unwritten"}
			p.TakeBack = []string{"unwritten"}
		}},
		"what has begun without a word in the status is waited for": {clusters: []rollout.StageCluster{begun}, stopping: true, want: func(p *rollout.StagePlan) {
			p.InFlight = []string{"begun"}
		}},
		"a run that stops is not over": {clusters: []rollout.StageCluster{gone}, stopping: true, want: func(p *rollout.StagePlan) {
			p.Done = []string{"gone"}
			p.RecordDone = true
		}},
		"without clusters it is over": {want: func(p *rollout.StagePlan) {
			p.Over = true
			p.Progress = true
		}},
	} {
		want := rollout.StagePlan{}
		test.want(&want)
		assert.Equal(t, want, rollout.DecideStage(rollout.StageFacts{
			Removes: true, MembershipFrozen: true, Clusters: test.clusters, Deadline: 5 * time.Minute, Stopping: test.stopping, Stuck: test.stuck, Now: instant(test.minute),
		}), sentence)
	}
}

// A run with clusters out of service does not end well, though nothing is left to remove.
func TestAStageThatRemovesIsNotOverWithClustersOutOfService(t *testing.T) {
	facts := rollout.StageFacts{Removes: true, OutOfService: true}
	plan := rollout.DecideStage(facts)
	assert.True(t, plan.LeavesOut)
	assert.True(t, plan.HasOutcomes())
	assert.False(t, plan.Over || plan.Rests() || plan.Progress)
	facts.Stopping = true
	assert.False(t, rollout.DecideStage(facts).LeavesOut, "a run that stops says so")
	facts = rollout.StageFacts{Removes: true}
	plan = rollout.DecideStage(facts)
	assert.True(t, plan.Over)
	assert.False(t, plan.LeavesOut)
}

//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
)

const (
	hubAgent = "hub-agent"
	// controlTimeout bounds what the supervisor is asked to do.
	controlTimeout = 2 * time.Minute
	// longSoak outlasts the time a killed hub agent needs to come back, so that it can be told whether the wait was
	// taken up where it was or begun anew.
	longSoak = 10 * time.Second
)

// point is where in a run something is done to the fleet.
type point struct {
	name string
	// reach brings the run there and returns what lets it go on.
	reach func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) (release func())
}

var rightAfterCreation = point{"right after its creation", func(*spec, *placementv1beta1.ClusterStagedUpdateRun) func() {
	return func() {}
}}

// duringFirstStage holds the run in its first stage: the agent of its cluster is down.
var duringFirstStage = point{"during the first stage", func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) func() {
	s.awaitStarted(run, "member-2")
	return func() { s.start("member-2/agent") }
}}

var duringSoak = point{"during the soak", func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) func() {
	s.awaitSoaking(run)
	return func() {}
}}

var waitingForApproval = point{"while it waits for an approval", func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) func() {
	s.awaitRequest(run, "canary")
	return func() {}
}}

// disturbance is what is done to the fleet.
type disturbance func(s *spec)

func killHubAgent(s *spec) {
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Kill, hubAgent) })
	s.controlled(func(ctx context.Context) error { return s.Control.WaitReady(ctx, hubAgent) })
}

func restartTemporal(s *spec) {
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Restart, "temporal") })
}

func wipeTemporal(s *spec) {
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Wipe, "temporal") })
}

// survives is a run with a soak and an approval that is disturbed at one point: it ends as if nothing had happened.
func survives(disturb disturbance, at point, d channel) func(*spec) {
	return func(s *spec) {
		s.externalPlacement()
		s.strategy(staging(soak(longSoak)), canary(approval))
		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		if at.name == duringFirstStage.name {
			s.stop("member-2/agent")
		}
		run := s.startRun("run", "0")
		release := at.reach(s, run)
		disturb(s)
		release()

		s.awaitRequest(run, "canary")
		d.approve(s, run, "canary")
		ended := s.awaitSucceeded(run)
		s.requireApproved(run, "canary", d)
		s.requireGatesKept(ended)
		s.requireSoakedOnce(ended, "staging")
		s.awaitValue(value1, allMembers...)
		s.requireAvailable(s.awaitAvailable("0"), "0", ", resourceSnapshotIndex: 0, clusterStagedUpdateRun: "+run.Name, allMembers...)
		s.requireWrittenOnce(bindings)
	}
}

// requireWrittenOnce asserts that the run wrote to each cluster once, in the order of the how-to.
func (s *spec) requireWrittenOnce(bindings *recording) {
	s.Helper()
	if !s.blinded {
		changes := bindings.upTo(s, newestOf(s.bindings()))
		require.Equal(s, []string{"member-2", "member-3", "member-1"}, writes(changes, bindings.initial), "order of the clusters")
	}
	for _, b := range s.bindings() {
		before := bindings.initial[client.ObjectKeyFromObject(b)]
		require.Equal(s, before.GetUID(), b.UID)
		require.Equal(s, before.GetGeneration()+1, b.Generation, "writes to %s", b.Spec.TargetCluster)
	}
}

// controlled asks the supervisor for something.
func (s *spec) controlled(do func(context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), controlTimeout)
	defer cancel()
	require.NoError(s, do(ctx))
}

// stop takes a component down; it is started again when the spec ends, if not before.
func (s *spec) stop(component string) {
	s.Helper()
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Stop, component) })
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), controlTimeout)
		defer cancel()
		if err := s.Control.Do(ctx, control.Start, component); err != nil {
			s.Errorf("starting %s again: %v", component, err)
		}
	})
}

func (s *spec) start(component string) {
	s.Helper()
	s.controlled(func(ctx context.Context) error { return s.Control.Do(ctx, control.Start, component) })
}

// awaitStarted waits until a run has begun with a cluster.
func (s *spec) awaitStarted(run *placementv1beta1.ClusterStagedUpdateRun, name string) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to have started "+name, func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		for _, stage := range r.Status.StagesStatus {
			for _, c := range stage.Clusters {
				if c.ClusterName == name {
					return isTrue(c.Conditions, placementv1beta1.ConditionTypeStarted, r.Generation)
				}
			}
		}
		return fmt.Errorf("no stage has %s", name)
	})
}

// awaitSoaking waits until the first stage of a run has begun to soak.
func (s *spec) awaitSoaking(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to soak", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if len(r.Status.StagesStatus) == 0 {
			return fmt.Errorf("it has no stages")
		}
		return has(r.Status.StagesStatus[0].Conditions, placementv1beta1.ConditionTypeProgressing, metav1.ConditionFalse, r.Generation)
	})
}

func runWaitsForAMemberThatIsAway(s *spec) {
	s.externalPlacement()
	s.strategy(staging(), canary())
	s.stop("member-3/agent")
	bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
	run := s.startRun("run", "0")
	s.awaitStarted(run, "member-3")
	s.during(nil, quietFor)
	require.Equal(s, []string{"member-2", "member-3"}, writes(bindings.soFar(), bindings.initial), "member-1 waits for its turn")
	s.requireNothingOn("member-3", "member-1")

	s.start("member-3/agent")
	s.awaitSucceeded(run)
	s.awaitValue(value1, allMembers...)
	s.requireWrittenOnce(bindings)
}

// withoutTemporalWhatIsDecidedGoesOn takes the Temporal server away: what is placed is repaired, reported and cleared all
// the same; new rollouts say that they wait, and go on by themselves.
func withoutTemporalWhatIsDecidedGoesOn(s *spec) {
	s.namespaceWithConfigMap()
	s.create(s.deployment())
	s.place()
	s.awaitAvailable("0")
	staged := newSpec(s.T)
	staged.externalPlacement()
	staged.strategy(staging(), canary())
	gone := newSpec(s.T)
	gone.namespaceWithConfigMap()
	placement := gone.place()
	gone.awaitAvailable("0")
	for _, id := range []string{s.name, staged.name, gone.name} {
		s.awaitClosed("placement/" + id)
	}

	s.stop("temporal")
	s.requireCheckSaysTemporalIsAway()
	s.loseConfigMapOn("member-1")
	s.requireStatusFollows("member-1")
	gone.delete(s.hub, placement)
	awaitGone(gone, s.hub, placement)
	gone.awaitCleared(allMembers...)
	gone.requireNoneLeft()

	run := staged.startRun("run", "0")
	await(s, s.hub, run.DeepCopy(), "to say that Temporal is away", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		return engineAway(r.Status.Conditions, r.Generation)
	})
	s.changeTo(value2)
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { p.Spec.Policy.Tolerations = tolerateAnything })
	await(s, s.hub, s.placement(), "to say that Temporal is away", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return engineAway(p.Status.Conditions, p.Generation)
	})
	s.awaitValue(value1, allMembers...)

	s.start("temporal")
	staged.awaitSucceeded(run)
	await(s, s.hub, run.DeepCopy(), "to say no more that Temporal is away", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		if away := meta.FindStatusCondition(r.Status.Conditions, placementv1beta1.ConditionTypeEngineReachable); away == nil || away.Status != metav1.ConditionTrue {
			return fmt.Errorf("its conditions are %s", spoken(r.Status.Conditions))
		}
		return nil
	})
	staged.awaitValue(value1, allMembers...)
	s.awaitValue(value2, allMembers...)
	s.requireAvailable(s.awaitAvailable("1"), "1", "", allMembers...)
}

// requireCheckSaysTemporalIsAway requires that the check of the installation is red though nothing waits for Temporal.
func (s *spec) requireCheckSaysTemporalIsAway() {
	s.Helper()
	note := &coordinationv1.Lease{}
	note.Namespace = clusterv1beta1.SystemNamespace
	note.Name = clusterv1beta1.TemporalLease
	await(s, s.hub, note, "to say that Temporal is away", func(l *coordinationv1.Lease) error {
		if l.Annotations[clusterv1beta1.TemporalProblemAnnotation] == "" {
			return errors.New("it names no problem")
		}
		return nil
	})
	out, code := s.kubectlFleet("check", "--strict")
	require.Equal(s, 1, code, out)
	require.Contains(s, out, "✗ temporal   the hub agent has not reached Temporal for ")
}

// tolerateAnything changes a placement's policy without changing which clusters it picks.
var tolerateAnything = []placementv1beta1.Toleration{{Operator: corev1.TolerationOpExists}}

func engineAway(conditions []metav1.Condition, generation int64) error {
	if err := has(conditions, placementv1beta1.ConditionTypeEngineReachable, metav1.ConditionFalse, generation); err != nil {
		return err
	}
	if c := meta.FindStatusCondition(conditions, placementv1beta1.ConditionTypeEngineReachable); c.Reason != placementv1beta1.ReasonTemporalUnreachable {
		return fmt.Errorf("its reason is %s", c.Reason)
	}
	return nil
}

// requireStatusFollows takes the replicas of the Deployment on a member away and gives them back: the placement says so.
func (s *spec) requireStatusFollows(name string) {
	s.Helper()
	s.cordon(name, true)
	defer s.cordon(name, false)
	member := s.member(name)
	require.NoError(s, member.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.name), client.GracePeriodSeconds(0)))
	lost := await(s, s.hub, s.placement(), "to be unavailable", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement("Available"), metav1.ConditionFalse, p.Generation)
	})
	entry := lost.Status.PerClusterPlacementStatuses[0]
	require.Equal(s, name, entry.ClusterName)
	require.Len(s, entry.FailedPlacements, 1)
	require.Equal(s, "Deployment", entry.FailedPlacements[0].Kind)
	require.Equal(s, "ManifestNotAvailableYet", entry.FailedPlacements[0].Condition.Reason)

	s.cordon(name, false)
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
}

// cordon lets a member's nodes take no new pods, or lets them again.
func (s *spec) cordon(name string, off bool) {
	s.Helper()
	member := s.member(name)
	var nodes corev1.NodeList
	require.NoError(s, member.List(s.Context(), &nodes))
	for i := range nodes.Items {
		update(s, member, &nodes.Items[i], func(n *corev1.Node) { n.Spec.Unschedulable = off })
	}
}

//go:build integration

package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// leads is what the hub agent that runs the controllers has among its metrics.
const leads = `leader_election_master_status{name="hub-agent.fleetflow.io"} 1`

// replica is one of several hub agents.
type replica struct {
	name, metrics string
	process       *exec.Cmd
}

// replica starts a hub agent that runs everything, as each Pod of the chart does, with more flags.
func (s *spec) replica(name string, more ...string) *replica {
	s.Helper()
	return s.replicaOf(s.Fleet.Binary(hubAgent), name, more...)
}

// replicaOf starts one of another build.
func (s *spec) replicaOf(program, name string, more ...string) *replica {
	s.Helper()
	r := &replica{name: name, metrics: s.freeAddress()}
	r.process = s.agent(name, program, nil, append(more,
		"--kubeconfig="+s.Fleet.HubAgentKubeconfig(), "--temporal-address="+s.Fleet.Address("temporal"), "--temporal-approvals=any",
		"--metrics-bind-address="+r.metrics, "--metrics-secure=false", "--health-probe-bind-address="+s.freeAddress(), "--leader-election-lease-duration=4s",
		"--leader-election-renew-deadline=3s", "--leader-election-retry-period=500ms")...)
	return r
}

// signs is the end of the identity by which Temporal knows the replica.
func (r *replica) signs() string { return fmt.Sprintf("/%d", r.process.Process.Pid) }

// leading says whether a replica runs the controllers, by its own word.
func (s *spec) leading(r *replica) bool {
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, "http://"+r.metrics+"/metrics", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false // it is not up yet
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return err == nil && strings.Contains(string(text), leads)
}

// awaitLeader waits until one of the replicas, and no other, leads.
func (s *spec) awaitLeader(replicas ...*replica) *replica {
	s.Helper()
	var leader *replica
	s.eventually("one hub agent leads", func() error {
		leader = nil
		for _, r := range replicas {
			switch {
			case !s.leading(r):
			case leader != nil:
				return fmt.Errorf("%s and %s both lead", leader.name, r.name)
			default:
				leader = r
			}
		}
		if leader == nil {
			return errors.New("nobody leads")
		}
		return nil
	})
	return leader
}

// awaitWorkers waits until Temporal knows workers of each of the replicas on their queues.
func (s *spec) awaitWorkers(replicas ...*replica) {
	s.Helper()
	for _, queue := range []string{wf.TaskQueue, wf.LongTaskQueue, wf.AdvanceTaskQueue} {
		s.eventually("workers of every replica poll "+queue, func() error {
			answer, err := s.Temporal.DescribeTaskQueue(s.Context(), queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
			if err != nil {
				return err
			}
			known := ""
			for _, poller := range answer.GetPollers() {
				known += poller.GetIdentity() + "\n"
			}
			for _, r := range replicas {
				if !strings.Contains(known, r.signs()+"\n") {
					return fmt.Errorf("%s%s is not among the pollers:\n%s", r.name, r.signs(), known)
				}
			}
			return nil
		})
	}
}

// whoWaits is the replica whose worker waits for a cluster of a workflow.
func (s *spec) whoWaits(workflow string, replicas ...*replica) *replica {
	s.Helper()
	var found *replica
	s.eventually("somebody waits for a cluster of "+workflow, func() error {
		answer, err := s.Temporal.DescribeWorkflowExecution(s.Context(), workflow, "")
		if err != nil {
			return err
		}
		for _, activity := range answer.GetPendingActivities() {
			for _, r := range replicas {
				if strings.HasSuffix(activity.GetLastWorkerIdentity(), r.signs()) {
					found = r
					return nil
				}
			}
		}
		return errors.New("none of the replicas has an activity of it")
	})
	return found
}

// oneOfTwoAgentsDies has two hub agents share the work and ends one of them, without a word, in the middle of a rolling
// update and of a run. The other takes over what it has led and waited for, and no limit is broken on the way.
func oneOfTwoAgentsDies(victim func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, replicas ...*replica) *replica) func(*spec) {
	return func(s *spec) {
		s.stop(hubAgent)
		one := s.replica("one")
		two := s.replica("two")
		s.awaitLeader(one, two)
		s.awaitWorkers(one, two)

		s.namespaceWithConfigMap()
		s.place()
		s.awaitAvailable("0")
		staged := newSpec(s.T)
		staged.externalPlacement()
		staged.strategy(staging(), canary())
		bindings := s.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, s.mine())
		works := s.record(s.hub, &placementv1beta1.Work{}, s.mine())
		begun := staged.record(s.hub, &placementv1beta1.ClusterResourceBinding{}, staged.mine())

		// Both come to a stand on a member that does not answer.
		s.stop("member-2/agent")
		run := staged.startRun("run", "0")
		staged.awaitStarted(run, "member-2")
		s.changeTo(value2)
		s.awaitUnderWay("member-2", "1")

		dead := victim(s, run, one, two)
		require.NoError(s, dead.process.Process.Kill())
		alive := one
		if dead == one {
			alive = two
		}
		s.awaitLeader(alive)
		s.start("member-2/agent")

		staged.awaitSucceeded(run)
		staged.awaitValue(value1, allMembers...)
		staged.requireWrittenOnce(begun)
		s.awaitValue(value2, allMembers...)
		placement := s.awaitAvailable("1")
		seen := merge(bindings.upTo(s, newestOf(s.bindings())), works.upTo(s, newestWork(s)))
		requireWindow(s, initialClusters(bindings, works), seen, 1)
		requirePromise(s, placement, seen, bindings, works)
	}
}

// awaitUnderWay waits until a cluster is asked to run a snapshot of the spec's placement.
func (s *spec) awaitUnderWay(name, index string) {
	s.Helper()
	s.eventually(name+" is asked to run snapshot "+index, func() error {
		for _, b := range s.bindings() {
			if b.Spec.TargetCluster == name && b.Spec.ResourceSnapshotName == s.name+"-"+index+"-snapshot" {
				return nil
			}
		}
		return errors.New("its turn has not come")
	})
}

func theOneThatLeads(s *spec, _ *placementv1beta1.ClusterStagedUpdateRun, replicas ...*replica) *replica {
	return s.awaitLeader(replicas...)
}

func theOneThatWaits(s *spec, run *placementv1beta1.ClusterStagedUpdateRun, replicas ...*replica) *replica {
	return s.whoWaits(wf.StageID(workflowOf(run), "staging"), replicas...)
}

//go:build integration

package integration

import (
	"encoding/json"
	"os/exec"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// kubectlFleet runs the plugin as users do, through kubectl, and returns what it prints and its exit code.
func (s *spec) kubectlFleet(args ...string) (out string, code int) {
	s.Helper()
	out, err := s.command(s.Context(), "kubectl", append([]string{"fleet"}, args...)...)
	if exit, is := err.(*exec.ExitError); is { //nolint:errorlint // it comes from exec.Cmd as it is
		return out, exit.ExitCode()
	}
	require.NoError(s, err, "kubectl fleet %s", strings.Join(args, " "))
	return out, 0
}

// commandLineShowsARollout plans a run, follows it to its end, and looks back at it.
func commandLineShowsARollout(s *spec) {
	s.externalPlacement()
	s.strategy(staging(soak(soakTime)), canary(approval))
	everything := s.name + "-everywhere"
	s.strategyNamed(everything, everywhere())
	first := s.run("first", "0")
	first.Spec.StagedUpdateStrategyName = everything
	s.create(first)
	s.awaitSucceeded(first)
	s.changeTo(value2)
	taken := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{Name: placementv1beta1.ResourceSnapshotName(s.name, 1, 0)}}
	await(s, s.hub, taken, "to be taken", func(*placementv1beta1.ClusterResourceSnapshot) error { return nil })

	out, code := s.kubectlFleet("plan", "--placement", s.name, "--strategy", s.name)
	require.Zero(s, code, out)
	require.Contains(s, out, "Roll snapshot 1 (the latest) of placement/"+s.name+" out to 3 clusters in 2 stages")
	require.Contains(s, out, "1. staging: 1 cluster, 1 at a time\n   wave 1  member-2 (0 → 1)\n   after   soak of 3s\n")
	require.Contains(s, out, "   wave 1  member-3 (0 → 1)\n   wave 2  member-1 (0 → 1)\n   after   approval of <run>-canary\n")
	require.Contains(s, out, "    -  key: "+value1+"\n    +  key: "+value2+"\n")
	require.Equal(s, 1, strings.Count(out, "\nOn "), "all clusters change alike: %s", out)

	run := s.startRun("second", "")
	onTerminal := s.watchRunOnTerminal(run.Name)
	watched := make(chan string, 1)
	go func() {
		text, err := s.command(s.Context(), "kubectl", "fleet", "status", "run/"+run.Name, "--watch", "--timeout", "50s")
		if err != nil {
			text += err.Error()
		}
		watched <- text
	}()
	s.awaitRequest(run, "canary")
	out, _ = s.kubectlFleet("get", "runs", run.Name)
	require.Contains(s, out, "approval of "+run.Name+"-canary")
	require.Contains(s, out, "3/3")
	out, _ = s.kubectlFleet("status", run.Name)
	require.Contains(s, out, "approval after  Waiting")
	require.Contains(s, out, "kubectl fleet approve "+run.Name+" --stage canary")
	kubectlChannel.approve(s, run, "canary")
	select {
	case text := <-watched:
		require.Contains(s, text, "  run/"+run.Name+" › canary › member-1  Succeeded\n")
		require.Contains(s, text, "  run/"+run.Name+"  Succeeded  3/3  snapshot 1 of placement/"+s.name+"\n")
		require.NotContains(s, text, "exit status")
	case <-time.After(patience):
		require.Fail(s, "watching does not end with the run")
	}
	onTerminal()
	s.requireCommandLineHistory(run)
}

// requireCommandLineHistory looks back at a run that an administrator has approved.
func (s *spec) requireCommandLineHistory(run *placementv1beta1.ClusterStagedUpdateRun) {
	s.Helper()
	s.awaitAvailable("1")
	out, code := s.kubectlFleet("status", "crp/"+s.name, "--watch", "--timeout", "30s")
	require.Zero(s, code, "a placement that is done is the end: %s", out)
	out, _ = s.kubectlFleet("get", "placements", s.name, "--no-headers")
	require.Equal(s, []string{s.name, "PickAll", "3", "3/3", "3/3", "done"}, strings.Fields(out)[:6])
	out, code = s.kubectlFleet("diff", s.name)
	require.Zero(s, code, out)
	out, _ = s.kubectlFleet("history", s.name, "--only", "approval", "-o", "json")
	var entries []struct{ Name, By, Channel string }
	require.NoError(s, json.Unmarshal([]byte(out), &entries), out)
	require.Len(s, entries, 1)
	require.Equal(s, run.Name+"-canary", entries[0].Name)
	require.Equal(s, administrator, entries[0].By)
	require.Equal(s, "Kubectl", entries[0].Channel)
}

// commandLineSaysWhy asks why clusters are picked or not, and compares with what the hub has done.
func commandLineSaysWhy(s *spec) {
	s.namespaceWithConfigMap()
	s.place(pickN(1, "canary"))
	s.awaitAvailable("0")
	picked := s.bindings()[0].Spec.TargetCluster
	out, code := s.kubectlFleet("why", "--placement", s.name, "-o", "json")
	require.Zero(s, code, out)
	var answers []struct {
		Cluster, Reason, Recorded string
		Selected                  bool
		Rank                      int
		Notes                     []string
		Filters                   []struct{ Name, Against string }
	}
	require.NoError(s, json.Unmarshal([]byte(out), &answers), out)
	require.GreaterOrEqual(s, len(answers), members)
	for _, a := range answers {
		require.Equal(s, a.Cluster == picked, a.Selected, "%s", a.Cluster)
		require.Empty(s, a.Notes, "the hub has decided, and in the same way")
		require.Empty(s, a.Recorded, "%s: the hub gives the same reason", a.Cluster)
	}
	out, _ = s.kubectlFleet("why-not", "member-2", "--placement", s.name)
	require.Contains(s, out, "placement/"+s.name+" has not picked member-2.")
	require.Contains(s, out, "✗ ClusterAffinity        cluster does not match with any of the required cluster affinity terms")
	out, code = s.kubectlFleet("why", "member-9", "--placement", s.name)
	require.Equal(s, 1, code)
	require.Contains(s, out, `there is no member "member-9"`)
}

// commandLineTellsFailure watches a run that cannot begin.
func commandLineTellsFailure(s *spec) {
	s.externalPlacement()
	s.strategy(staging())
	out, code := s.kubectlFleet("plan", "--placement", s.name, "--strategy", s.name)
	require.Equal(s, 1, code, out)
	require.Contains(s, out, "2 picked clusters are in no stage: member-1, member-3")
	run := s.startRun("run", "0")
	out, code = s.kubectlFleet("status", "run/"+run.Name, "--watch", "--timeout", "40s")
	require.Equal(s, 1, code, out)
	require.Contains(s, out, "some clusters are not placed in any stage")
	await(s, s.hub, run, "to have failed", func(r *placementv1beta1.ClusterStagedUpdateRun) error {
		require.True(s, meta.IsStatusConditionFalse(r.Status.Conditions, placementv1beta1.ConditionTypeInitialized), "the plan was right")
		return nil
	})
}

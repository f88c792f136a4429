//go:build integration

package pods

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// from names what is upgraded from: there is no release yet.
var from = flag.String("from", "HEAD~1", "the commit whose images and charts TestPodsLong installs first, and upgrades within a run")

// earlierTag is the tag of the images of the earlier commit. Today's have the one that the charts name.
const earlierTag = "earlier"

// approved is a strategy whose stage waits before and after its cluster is changed.
const approved = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterStagedUpdateStrategy
metadata: {name: approved}
spec:
  stages:
  - name: canary
    labelSelector: {matchLabels: {environment: canary}}
    beforeStageTasks: [{type: Approval}]
    afterStageTasks: [{type: Approval}]
`

// upgraded installs the images and charts of an earlier commit, with the plugin of that commit, and begins a run. While it waits, both
// agents are upgraded to those of the tree: the hub's before a cluster is changed, so that for a while an earlier member agent works for it,
// and the member's before the run ends. The run goes on, and the next one does with agents of the tree alone.
func upgraded(t *testing.T) {
	source := checkOut(t, *from)
	require.NoError(t, devfleet("images", "--dir", shared.Fleet.Dir, "--source", source, "--tag", earlierTag))
	plugin := filepath.Join(source, "bin", "kubectl-fleet")
	require.NoError(t, goCommand(source, "build", "-o", plugin, "./cmd/kubectl-fleet"))
	earlier := " --chart " + filepath.Join(source, "deploy", "charts") + "/%s --set image.tag=" + earlierTag
	sh(t, plugin+" init --context hub"+fmt.Sprintf(earlier, "hub-agent")+" --set replicaCount=2 --set workloadNamespaces={"+metricsFrom+"}")
	sh(t, plugin+" join "+member+" --context hub --member-context "+member+" --hub-address "+hubForMembers()+fmt.Sprintf(earlier, "member-agent"))
	sh(t, "kubectl --context hub label membercluster "+member+" environment=canary --overwrite")
	beginRun(t, "web")()
	awaitImages(t, shared.Hub, earlierTag, true)
	awaitImages(t, shared.Members[member], earlierTag, true)

	apply(t, approved)
	done := beginRun(t, "approved")
	run := lastRun()
	began := awaitTask(t, run, before, placementv1beta1.ConditionTypeApprovalRequestCreated).UID
	sh(t, initialize+" --set image.tag=")
	awaitImages(t, shared.Hub, earlierTag, false)
	sh(t, "kubectl fleet approve run/"+run+" --context hub")
	awaitTask(t, run, after, placementv1beta1.ConditionTypeApprovalRequestCreated)
	awaitImages(t, shared.Members[member], earlierTag, true)
	sh(t, "kubectl --context "+member+" apply --server-side --force-conflicts -f deploy/charts/member-agent/crds")
	sh(t, "helm upgrade member-agent deploy/charts/member-agent -n "+system+" --kube-context "+member+
		" --reset-then-reuse-values --set image.tag= --wait --timeout 120s")
	awaitImages(t, shared.Members[member], earlierTag, false)
	sh(t, "kubectl fleet approve run/"+run+" --context hub")
	done()
	assert.Equal(t, began, awaitTask(t, run, after, placementv1beta1.ConditionTypeApprovalRequestApproved).UID, "the same run")
	beginRun(t, "web")()
	assertNoRestarts(t, shared.Hub)
	assertNoRestarts(t, shared.Members[member])
}

// checkOut returns a folder with the tree of a commit. It leaves the spec out where that is not there.
func checkOut(t *testing.T, commit string) string {
	t.Helper()
	if err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--verify", "--quiet", commit+"^{commit}").Run(); err != nil {
		t.Skipf("NOT RUN: an upgrade needs the commit %s, which is not here, as in a shallow clone: git fetch --unshallow, or name another with -from", commit)
	}
	folder := shared.Fleet.Path(earlierTag)
	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.MkdirAll(folder, 0o755))
	archive := exec.CommandContext(t.Context(), "bash", "-c", `set -o pipefail; git -C "$0" archive "$1" | tar -x -C "$2"`, root, commit, folder)
	out, err := archive.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("upgrades from %s", strings.TrimSpace(sh(t, "git log -1 --format='%h %cd %s' "+commit)))
	return folder
}

// awaitImages waits until all Pods of a cluster's agents run images with a tag, or none does.
func awaitImages(t *testing.T, c client.WithWatch, tag string, wanted bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, c, func(pods []*corev1.Pod) string {
		agents := 0
		for _, pod := range pods {
			if pod.Labels["app.kubernetes.io/component"] != "agent" && pod.Labels["app.kubernetes.io/name"] != "member-agent" {
				continue
			}
			for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				agents++
				if strings.HasSuffix(container.Image, ":"+tag) != wanted {
					return fmt.Sprintf("%s runs %s", pod.Name, container.Image)
				}
			}
		}
		if agents == 0 {
			return "there is no agent"
		}
		return ""
	}, client.InNamespace(system))
	require.NoError(t, err)
}

// side is before or after the only stage of a run.
type side func(*placementv1beta1.StageUpdatingStatus) []placementv1beta1.StageTaskStatus

func before(stage *placementv1beta1.StageUpdatingStatus) []placementv1beta1.StageTaskStatus {
	return stage.BeforeStageTaskStatus
}

func after(stage *placementv1beta1.StageUpdatingStatus) []placementv1beta1.StageTaskStatus {
	return stage.AfterStageTaskStatus
}

// awaitTask waits until a task of a run has a condition that is true, and returns the run.
func awaitTask(t *testing.T, name string, tasks side, condition string) *placementv1beta1.ClusterStagedUpdateRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	run, err := access.Await(ctx, shared.Hub, client.ObjectKey{Name: name}, func(run *placementv1beta1.ClusterStagedUpdateRun) string {
		if run == nil || len(run.Status.StagesStatus) == 0 {
			return "has no stages yet"
		}
		if conditionOf(run, tasks, condition) == nil {
			return fmt.Sprintf("is without %s: %+v", condition, tasks(&run.Status.StagesStatus[0]))
		}
		return ""
	})
	require.NoError(t, err)
	return run
}

// conditionOf returns a condition that is true of a task of the only stage of a run; nil if there is none.
func conditionOf(run *placementv1beta1.ClusterStagedUpdateRun, tasks side, kind string) *metav1.Condition {
	for _, task := range tasks(&run.Status.StagesStatus[0]) {
		if condition := meta.FindStatusCondition(task.Conditions, kind); condition != nil && condition.Status == metav1.ConditionTrue {
			return condition
		}
	}
	return nil
}

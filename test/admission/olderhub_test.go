//go:build integration

package admission

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// olderHub is a hub whose API server behaves as one of Kubernetes 1.35, which has no MutatingAdmissionPolicies by default.
type olderHub struct {
	*testing.T
	fleet *state.Fleet
	admin *session
}

func startOlderHub(t *testing.T) *olderHub {
	t.Helper()
	fleet, down, err := start(t.TempDir(), "--emulated-version=1.35")
	t.Cleanup(down)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	require.NoError(t, controlplane.SetUpHub(ctx, fleet, root))
	config, err := controlplane.RESTConfig(fleet, state.Hub)
	require.NoError(t, err)
	admin, err := newSession(config)
	require.NoError(t, err)
	return &olderHub{T: t, fleet: fleet, admin: admin}
}

// ask makes an approval request as an agent does for a stage after which a run waits.
func (h *olderHub) ask(run string) {
	h.Helper()
	request := &placementv1beta1.ClusterApprovalRequest{}
	request.Name = run + "-canary"
	request.Spec = placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: run, TargetStage: "canary"}
	require.NoError(h, h.admin.Create(h.Context(), request))
}

// shell runs a command as a user types it.
func (h *olderHub) shell(line string) (string, error) {
	h.Helper()
	command := exec.CommandContext(h.Context(), "bash", "-c", line)
	command.Dir = h.TempDir()
	command.Env = append(os.Environ(), "KUBECONFIG="+h.fleet.Kubeconfig(), "PATH="+filepath.Dir(h.fleet.Tools["kubectl"])+":"+os.Getenv("PATH"))
	var out bytes.Buffer
	command.Stdout = &out
	command.Stderr = &out
	err := command.Run()
	return out.String(), err
}

func (h *olderHub) types(line, answer string) {
	h.Helper()
	out, err := h.shell(line)
	require.NoError(h, err, out)
	assert.Contains(h, out, answer)
}

func (h *olderHub) request(run string) *placementv1beta1.ClusterApprovalRequest {
	h.Helper()
	found := &placementv1beta1.ClusterApprovalRequest{}
	require.NoError(h, h.admin.Get(h.Context(), client.ObjectKey{Name: run + "-canary"}, found))
	return found
}

// The ways to approve that KubeFleet's documentation prints.
const (
	printedPatch = `kubectl patch clusterapprovalrequests RUN-canary --type='merge' -p '{"status":{"conditions":[{"type":"Approved","status":"True","reason":"lgtm","message":"lgtm","lastTransitionTime":"'$(date -u +%Y-%m-%dT%H:%M:%SZ)'","observedGeneration":1}]}}' --subresource=status`
	printedFile  = `cat << EOF > approval.json
{"status": {"conditions": [{"lastTransitionTime": "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "message": "lgtm", "observedGeneration": 1, "reason": "lgtm", "status": "True", "type": "Approved"}]}}
EOF
kubectl patch clusterapprovalrequests RUN-canary --type='merge' --subresource=status --patch-file approval.json`
)

// documented are commands about a hub that KubeFleet's documentation prints, and what of their answers is the same on every hub. SAMPLES is
// the folder with its manifests.
var documented = []struct{ line, answer string }{
	{"kubectl create ns work", "namespace/work created"},
	{"kubectl label ns work app=work", "namespace/work labeled"},
	{"kubectl label ns work use=hack --overwrite", "namespace/work labeled"},
	{"kubectl get ns work --show-labels", "use=hack"},
	{"kubectl create configmap app -n work --from-literal=data=test", "configmap/app created"},
	{"kubectl get configmap -n work", "app"},
	{"kubectl apply -f SAMPLES/clusters/membercluster.yaml", "membercluster.cluster.kubernetes-fleet.io/member-1 created"},
	{"kubectl label membercluster member-1 env=prod", "membercluster.cluster.kubernetes-fleet.io/member-1 labeled"},
	{"kubectl get membercluster member-1", "member-1"},
	{"kubectl get memberclusters --show-labels", "env=prod"},
	{"kubectl get memberclusters -A -o wide", "member-1"},
	{`kubectl get membercluster member-1 -o jsonpath="{.status}"`, ""},
	{"kubectl delete membercluster member-1 --wait=false", `membercluster.cluster.kubernetes-fleet.io "member-1" deleted`},
	{"kubectl apply -f SAMPLES/staged-update/placement.yaml", "clusterresourceplacement.placement.kubernetes-fleet.io/example-placement created"},
	{"kubectl get crp", "example-placement"},
	{"kubectl get clusterresourceplacement example-placement", "example-placement"},
	{"kubectl get clusterresourceplacement.v1beta1.placement.kubernetes-fleet.io example-placement -o jsonpath='{.status.placementStatuses}'", ""},
	{"kubectl describe crp example-placement", "example-placement"},
	{"kubectl describe clusterresourceplacement example-placement", "example-placement"},
	{"kubectl apply -f SAMPLES/staged-update/strategy.yaml", "clusterstagedupdatestrategy.placement.kubernetes-fleet.io/example-strategy created"},
	{"kubectl apply -f SAMPLES/staged-update/run.yaml", "clusterstagedupdaterun.placement.kubernetes-fleet.io/example-run created"},
	{"kubectl get csur example-run", "example-run"},
	{"kubectl get crsur example-run -o yaml", "stagedRolloutStrategyName: example-strategy"},
	{"kubectl describe csur example-run", "example-run"},
	{"kubectl get clusterresourcesnapshots --show-labels", "No resources found"},
	{"kubectl get clusterresourcesnapshot -l kubernetes-fleet.io/is-latest-snapshot=true,kubernetes-fleet.io/parent-CRP=example-placement", "No resources found"},
	{"kubectl get ClusterResourceSnapshot --selector=kubernetes-fleet.io/resource-index=1", "No resources found"},
	{"kubectl get clusterschedulingpolicysnapshot -l kubernetes-fleet.io/is-latest-snapshot=true,kubernetes-fleet.io/parent-CRP=example-placement", "No resources found"},
	{"kubectl get clusterresourcebinding -l kubernetes-fleet.io/parent-CRP=example-placement", "No resources found"},
	{"kubectl get rb -l kubernetes-fleet.io/parent-CRP=example-placement", "No resources found"},
	{"kubectl get work -n fleet-member-member-1 -l kubernetes-fleet.io/parent-CRP=example-placement", "No resources found"},
	{"kubectl apply -f SAMPLES/eviction/eviction.yaml", "clusterresourceplacementeviction.placement.kubernetes-fleet.io/test-eviction created"},
	{"kubectl get crpe test-eviction", "test-eviction"},
	{"kubectl delete configmap app -n work", `configmap "app" deleted`},
	{"kubectl delete crp example-placement --wait=false", `clusterresourceplacement.placement.kubernetes-fleet.io "example-placement" deleted`},
}

// TestTheCommandsThatAreDocumentedRunOnAnOlderHub runs those that are not about approvals.
func TestTheCommandsThatAreDocumentedRunOnAnOlderHub(t *testing.T) {
	h := startOlderHub(t)
	samples, err := filepath.Abs(filepath.Join(root, "deploy", "samples", "how-tos"))
	require.NoError(t, err)
	for _, command := range documented {
		h.types(strings.ReplaceAll(command.line, "SAMPLES", samples), command.answer)
	}
}

func TestAHubThatCannotNoteWhoApprovesTakesTheWaysThatAreDocumented(t *testing.T) {
	h := startOlderHub(t)
	_, err := h.shell("kubectl get mutatingadmissionpolicies")
	require.Error(t, err, "the API server is an older one")

	for run, command := range map[string]string{"example-run": printedPatch, "guestbook-updaterun": printedFile} {
		h.ask(run)
		h.types("kubectl get clusterapprovalrequest", run+"-canary")
		h.types(strings.ReplaceAll(command, "RUN", run), run+"-canary patched")
		h.types("kubectl get clusterapprovalrequests "+run+"-canary --no-headers", "True")
		request := h.request(run)
		assert.True(t, meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved))
		assert.Nil(t, request.Status.Approval, "nobody is named")
	}

	h.ask("named")
	_, err = h.shell(`kubectl patch careq named-canary --type=merge --subresource=status -p '{"status":{"conditions":[` +
		`{"type":"Approved","status":"True","reason":"lgtm","message":"lgtm","lastTransitionTime":"2026-01-01T00:00:00Z"}],` +
		`"approval":{"username":"alice","at":"2026-01-01T00:00:00Z","channel":"Kubectl","verified":true}}}'`)
	require.Error(t, err, "in the name of another")
	assert.False(t, meta.IsStatusConditionTrue(h.request("named").Status.Conditions, placementv1beta1.ConditionTypeApproved))

	h.deny()
	h.ask("denied")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		out, err := h.shell(strings.ReplaceAll(printedPatch, "RUN", "denied") + " --dry-run=server")
		require.Error(c, err)
		assert.Contains(c, out, "an approval has to say who gives it, and this API server cannot note that by itself")
	}, time.Minute, 100*time.Millisecond)

	h.initialize()
	run := parse(t, statelessRun)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := h.admin.try(t.Context(), run, metav1.DryRunAll)
		assert.ErrorContains(c, err, "spec.state is left out: on this hub such a run is to wait, and this API server cannot fill that in")
	}, time.Minute, 100*time.Millisecond)
}

// initialize has runs without a state wait.
func (h *olderHub) initialize() {
	h.Helper()
	grantWith(h.T, h.fleet, `defaultState: ""`, "defaultState: Initialize")
}

// deny installs the policies with approvals.unverified Deny.
func (h *olderHub) deny() {
	h.Helper()
	grantWith(h.T, h.fleet, "unverified: Allow", "unverified: Deny")
}

// grantWith installs the policies of the hub agent's chart with a line of its values replaced.
func grantWith(t *testing.T, fleet *state.Fleet, line, changed string) {
	t.Helper()
	source := filepath.Join(root, "deploy", "charts", "hub-agent")
	chart := filepath.Join(t.TempDir(), "hub-agent")
	require.NoError(t, os.CopyFS(chart, os.DirFS(source)))
	values, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	require.NoError(t, err)
	replaced := strings.Replace(string(values), line, changed, 1)
	require.NotEqual(t, string(values), replaced)
	require.NoError(t, os.WriteFile(filepath.Join(chart, "values.yaml"), []byte(replaced), 0o600))
	c, err := controlplane.Client(fleet, state.Hub)
	require.NoError(t, err)
	require.NoError(t, controlplane.Grant(t.Context(), c, chart, "fleet-hub-agent"))
}

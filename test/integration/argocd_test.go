//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// argocd is the folder with the manifests of KubeFleet's tutorial on Argo CD, and with the statuses that it prints.
const argocd = "deploy/samples/tutorials/argocd"

// environments are those of the tutorial's clusters, in the order of its stages.
var environments = map[string]string{"member-1": "staging", "member-2": "canary", "member-3": "production"}

// applicationsGoOutInStages is KubeFleet's tutorial on Argo CD, with the definitions of its kinds alone: an Application
// is placed on the clusters of a team, overridden for the environment of each, rolled out in stages, and then a new
// version of it.
func applicationsGoOutInStages(s *spec) {
	s.name = "guestbook" // with the names as printed
	nobodys := s.argoFleet()
	s.applyArgo(state.Hub, "application.yaml", "placement.yaml")
	await(s, s.hub, s.argoPlacement(), "to be as printed", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return s.asPrinted(p, "placement-status.yaml")
	})
	s.applyArgo(state.Hub, "resource-override.yaml")
	s.create(s.argoStrategy())
	s.requireApplications("", allMembers...)
	s.applyArgo(state.Hub, "run.yaml")
	run := s.runNamed("guestbook-updaterun")

	s.awaitPrinted(run, "run-staging-status.yaml")
	s.requireApplications("main", "member-1")
	s.requireApplications("", "member-2", "member-3")
	s.playArgo("member-1")
	s.awaitPrinted(run, "run-canary-status.yaml")
	s.requireApplications("main", "member-1", "member-2")
	s.requireApplications("", "member-3")
	s.requireArgoRequest("")
	s.approveAndSucceed(run, "canary")
	s.awaitPrinted(run, "run-finished-status.yaml")
	s.requireArgoRequest("True")
	s.requireApplications("main", allMembers...)
	s.releaseArgo()
	s.delete(s.hub, s.argoPlacement())
	awaitGone(s, s.hub, s.argoPlacement())
	s.awaitCleared(allMembers...)
	s.letGo(nobodys)
}

// argoSoak is the time after the first stage; the tutorial waits a minute.
const argoSoak = 5 * time.Second

// argoStrategy is the tutorial's, but for the time.
func (s *spec) argoStrategy() *placementv1beta1.ClusterStagedUpdateStrategy {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(root, argocd, "strategy.yaml"))
	require.NoError(s, err)
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{}
	require.NoError(s, yaml.UnmarshalStrict(content, strategy))
	strategy.Spec.Stages[0].AfterStageTasks[0].WaitTime.Duration = argoSoak
	return strategy
}

// releaseArgo releases a new version of the Application.
func (s *spec) releaseArgo() {
	s.Helper()
	s.applyArgo(state.Hub, "application-new-version.yaml")
	s.awaitSnapshotOf("guestbook-crp", 1)
	// What the clusters have is available still. The tutorial, which is older, prints nothing of that until the run.
	s.requireColumnsOf("crp/guestbook-crp", "guestbook-crp", "1", "True", "1", "True", "1")
	out, err := s.command(s.Context(), "kubectl", "get", "clusterresourcesnapshots", "--show-labels")
	require.NoError(s, err, out)
	for index, latest := range map[string]string{"0": "false", "1": "true"} {
		require.Regexp(s, `(?m)^guestbook-crp-`+index+`-snapshot +1 +\w+ +kubernetes-fleet.io/is-latest-snapshot=`+latest+
			`,kubernetes-fleet.io/parent-CRP=guestbook-crp,kubernetes-fleet.io/resource-index=`+index, out)
	}
	s.requireApplications("main", allMembers...)

	s.applyArgo(state.Hub, "run-new-version.yaml")
	run := s.runNamed("guestbook-updaterun-2")
	s.awaitRequest(run, "canary")
	s.requireApplications("v0.0.1", "member-1", "member-2")
	s.requireApplications("main", "member-3")
	s.approveAndSucceed(run, "canary")
	s.requireApplications("v0.0.1", allMembers...)
	s.requireColumnsOf("crp/guestbook-crp", "guestbook-crp", "1", "True", "1", "True", "1")
	out, err = s.command(s.Context(), "kubectl", "--context", "member-1", "get", "app", "-n", "guestbook", "--no-headers")
	require.NoError(s, err, out)
	require.Equal(s, []string{"guestbook-app", "Synced", "Healthy"}, strings.Fields(out)[:3], "what Argo CD has said stays")
}

// argoFleet makes the fleet that of the tutorial: three clusters of team A, an environment each, and one of nobody's.
func (s *spec) argoFleet() *clusterv1beta1.MemberCluster {
	s.Helper()
	s.Cleanup(s.leaveArgo)
	definitions := s.argoDefinitions()
	for _, c := range append([]string{state.Hub}, allMembers...) {
		s.kubectl("--context", c, "apply", "--server-side", "-f", filepath.Join(definitions, "application-crd.yaml"), "-f", filepath.Join(definitions, "appproject-crd.yaml"))
	}
	for _, m := range allMembers {
		s.eventually("namespace argocd to be there", func() error { // one of an earlier run may be on its way out
			err := s.member(m).Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd"}})
			return client.IgnoreAlreadyExists(err)
		})
		s.applyArgo(m, "app-project.yaml")
		s.kubectl("label", "membercluster", m, "team=A", "environment="+environments[m], "--overwrite")
	}
	return s.joinAs(func(c *clusterv1beta1.MemberCluster) {
		c.Labels = map[string]string{"environment": "production"}
		c.Spec.Taints = nil
	})
}

// argoDefinitions is the folder with the definitions of Argo CD's kinds, as the module in test/argocd has them.
func (s *spec) argoDefinitions() string {
	s.Helper()
	download := exec.CommandContext(s.Context(), "go", "mod", "download", "-json", "github.com/argoproj/argo-cd/v3")
	download.Dir = filepath.Join(root, "test", "argocd")
	out, err := download.Output()
	require.NoError(s, err, "%s", out)
	var module struct{ Dir string }
	require.NoError(s, json.Unmarshal(out, &module))
	return filepath.Join(module.Dir, "manifests", "crds")
}

// leaveArgo makes the fleet what it was.
func (s *spec) leaveArgo() {
	ctx, cancel := context.WithTimeout(context.Background(), printTimeout)
	defer cancel()
	commands := []string{
		"delete membercluster guestbook-ghost --wait=false --ignore-not-found",
		"delete clusterstagedupdatestrategy team-a-strategy --ignore-not-found", "label membercluster --all team-",
	}
	for m, environment := range map[string]string{"member-1": "canary", "member-2": "staging", "member-3": "canary"} {
		commands = append(commands, "label membercluster "+m+" --overwrite environment="+environment,
			"--context "+m+" delete namespace argocd --wait=false --ignore-not-found")
	}
	for _, c := range append([]string{state.Hub}, allMembers...) {
		commands = append(commands, "--context "+c+" delete crd applications.argoproj.io appprojects.argoproj.io --wait=false --ignore-not-found")
	}
	for _, command := range commands {
		if out, err := s.command(ctx, "kubectl", strings.Fields(command)...); err != nil {
			s.Logf("cleaning up: kubectl %s: %v: %s", command, err, out)
		}
	}
}

// kubectl runs kubectl, which has to succeed.
func (s *spec) kubectl(args ...string) string {
	s.Helper()
	out, err := s.command(s.Context(), "kubectl", args...)
	require.NoError(s, err, "kubectl %v: %s", args, out)
	return out
}

// applyArgo applies manifests of the tutorial on a cluster. An API server takes the first objects of a new kind late.
func (s *spec) applyArgo(context string, files ...string) {
	s.Helper()
	for _, file := range files {
		s.eventually(file+" to be applied", func() error {
			out, err := s.command(s.Context(), "kubectl", "--context", context, "apply", "-f", filepath.Join(root, argocd, file))
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
}

func (s *spec) argoPlacement() *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{}
	p.Name = "guestbook-crp"
	return p
}

// requireApplications asserts at which revision members have the Application, each with the folder of its environment;
// with no revision they have neither it nor its namespace.
func (s *spec) requireApplications(revision string, members ...string) {
	s.Helper()
	if revision == "" {
		s.requireNothingOn(members...)
		return
	}
	for _, m := range members {
		source, _, err := unstructured.NestedStringMap(s.application(m).Object, "spec", "source")
		require.NoError(s, err)
		require.Equal(s, map[string]string{
			"repoURL": "https://github.com/kubefleet-dev/website.git", "targetRevision": revision,
			"path": "content/en/docs/tutorials/ArgoCD/manifests/guestbook/" + environments[m],
		}, source, m)
	}
}

// application reads the Application on a member.
func (s *spec) application(member string) *unstructured.Unstructured {
	s.Helper()
	application := &unstructured.Unstructured{}
	application.SetAPIVersion("argoproj.io/v1alpha1")
	application.SetKind("Application")
	require.NoError(s, s.member(member).Get(s.Context(), client.ObjectKey{Namespace: "guestbook", Name: "guestbook-app"}, application), member)
	return application
}

// playArgo says of the Application on a member what Argo CD would. It writes the status with the object: the kind has no
// subresource for it.
func (s *spec) playArgo(member string) {
	s.Helper()
	application := s.application(member)
	before := application.DeepCopy()
	application.Object["status"] = map[string]any{
		"sync": map[string]any{"status": "Synced", "comparedTo": map[string]any{
			"source":      map[string]any{"repoURL": "https://github.com/kubefleet-dev/website.git"},
			"destination": map[string]any{"server": "https://kubernetes.default.svc"},
		}},
		"health":     map[string]any{"status": "Healthy"},
		"conditions": []any{map[string]any{"type": "OrphanedResourceWarning", "message": "Application has 1 orphaned resources"}},
	}
	require.NoError(s, s.member(member).Patch(s.Context(), application, client.MergeFrom(before)))
}

// requireArgoRequest asserts the columns of the approval request, as printed before and after the approval.
func (s *spec) requireArgoRequest(approved string) {
	s.Helper()
	s.requireColumnsOf("clusterapprovalrequest/guestbook-updaterun-canary", append([]string{"guestbook-updaterun-canary", "guestbook-updaterun", "canary"},
		strings.Fields(approved+" "+approved)...)...)
}

// requireColumnsOf asserts what kubectl prints of an object first; its age and what is printed behind it are not compared.
func (s *spec) requireColumnsOf(object string, columns ...string) {
	s.Helper()
	s.eventually(object+" to be printed as it should", func() error {
		out, err := s.command(s.Context(), "kubectl", "get", object, "--no-headers")
		if got := strings.Fields(out); err != nil || !slices.Equal(columns, got[:min(len(got), len(columns))]) {
			return fmt.Errorf("it prints %q", out)
		}
		return nil
	})
}

// awaitPrinted waits until the status of a run is as the tutorial prints it.
func (s *spec) awaitPrinted(run *placementv1beta1.ClusterStagedUpdateRun, file string) {
	s.Helper()
	await(s, s.hub, run.DeepCopy(), "to be as in "+file, func(r *placementv1beta1.ClusterStagedUpdateRun) error { return s.asPrinted(r, file) })
}

// asPrinted says in what the status of an object is not the one in a file.
func (s *spec) asPrinted(object client.Object, file string) error {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(root, argocd, file))
	require.NoError(s, err)
	for number := range len(allMembers) {
		content = bytes.ReplaceAll(content, fmt.Appendf(nil, "member%d", number+1), fmt.Appendf(nil, "member-%d", number+1))
	}
	var printed, ours struct {
		Status map[string]any `json:"status"`
	}
	require.NoError(s, yaml.Unmarshal(content, &printed))
	content, err = json.Marshal(object)
	require.NoError(s, err)
	require.NoError(s, json.Unmarshal(content, &ours))
	if diff := cmp.Diff(inOrder(printed.Status), besidePrinted(ours.Status, printed.Status)); diff != "" {
		return fmt.Errorf("(-printed +ours)\n%s", diff)
	}
	return nil
}

// besidePrinted is the part of ours that is to be as printed. Ours may have more fields, but not conditions and times
// where none are printed; it may have words where none are, and the cause before what is printed, which stands in parentheses then;
// and of times only that they are there counts.
func besidePrinted(ours, printed any) any {
	switch o := ours.(type) {
	case map[string]any:
		p, _ := printed.(map[string]any)
		out := map[string]any{}
		for key, inner := range o {
			value, there := p[key]
			switch {
			case there && (key == "message" && value == "" || slices.Contains([]string{"lastTransitionTime", "startTime", "endTime"}, key)):
				out[key] = value
			case there || slices.Contains([]string{"conditions", "startTime", "endTime"}, key):
				out[key] = besidePrinted(inner, value)
			}
		}
		return out
	case []any:
		p, _ := inOrder(printed).([]any)
		out := slices.Clone(inOrder(o).([]any))
		for i := range out {
			var beside any
			if i < len(p) {
				beside = p[i]
			}
			out[i] = besidePrinted(out[i], beside)
		}
		return out
	case string:
		if p, _ := printed.(string); p != "" && strings.HasSuffix(o, " ("+p+")") {
			return p
		}
	}
	return ours
}

// inOrder puts conditions into the order of their types, everywhere within a value.
func inOrder(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			out[key] = inOrder(inner)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = inOrder(inner)
		}
		slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		return out
	}
	return value
}

// typeOf is the type of a condition; empty for what is none.
func typeOf(value any) string {
	fields, _ := value.(map[string]any)
	name, _ := fields["type"].(string)
	return name
}

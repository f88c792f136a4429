//go:build integration

package pods

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
)

// toldWithin is how long the hub may take to have the cause that kubelet, a controller or the scheduler knows: less than five seconds on
// cores that do nothing else, which is for the log and not for a test.
const toldWithin = 15 * time.Second

// broken is a workload that cannot become available.
type broken struct {
	name string
	// pod is the spec of its Pods, and further what its own spec has beside.
	pod, further string
	// namespace is that of all if empty.
	namespace string
	// reason and says are what the hub has to tell, by a condition of this type, Failing if empty.
	reason, says string
	condition    string
	// waits and ended are reasons in the status of a container, event one of an event, by which the member's cluster knows it.
	waits, ended, event string
}

const container = `{name: main, image: "devfleet.local/workload:1", `

// allBroken are twelve ways to fail, one of them twice: the other prints 100 MB, and what terminals would take for commands. That a container crashes again and again is known once kubelet waits before its next start: one that
// is started again at once is ready for a moment, and its Deployment available. The kubelet removes the log of an init container before the
// next start of it, so its last words may be missing.
var allBroken = []broken{
	{name: "image", pod: `containers: [{name: main, image: "registry.invalid/none:1"}]`, waits: "ErrImagePull",
		reason: placementv1beta1.ReasonImageNotPulled, says: "registry.invalid/none:1"},
	{name: "crash", pod: `containers: [` + container + `args: [crash, --code, "3", --say, no database]}]`, waits: "CrashLoopBackOff",
		reason: placementv1beta1.ReasonCrashLoop, says: "no database"},
	{name: "shouts", pod: `containers: [` + container + `args: [crash, --megabytes, "100", --say, "\e]0;owned\a\e[31mno end"]}]`, waits: "CrashLoopBackOff",
		reason: placementv1beta1.ReasonCrashLoop, says: `\x1b]0;owned\a\x1b[31mno end`},
	{name: "memory", pod: `containers: [` + container + `args: [eat], resources: {limits: {memory: 48Mi}}}]`, waits: "CrashLoopBackOff",
		reason: placementv1beta1.ReasonOutOfMemory, says: "48Mi"},
	{name: "large", pod: `containers: [` + container + `resources: {requests: {cpu: "1000"}}}]`, event: "FailedScheduling",
		reason: placementv1beta1.ReasonUnschedulable, says: "Insufficient cpu"},
	{name: "probe", pod: `containers: [` + container + `readinessProbe: {httpGet: {path: /broken, port: 8080}, periodSeconds: 1}}]`, event: "Unhealthy",
		reason: placementv1beta1.ReasonProbeFails, says: "Readiness probe failed"},
	{name: "mount", pod: `volumes: [{name: v, secret: {secretName: missing}}], containers: [` + container + `volumeMounts: [{name: v, mountPath: /v}]}]`,
		event: "FailedMount", reason: placementv1beta1.ReasonMountFails, says: `"missing" not found`},
	{name: "config", pod: `containers: [` + container + `envFrom: [{configMapRef: {name: missing}}]}]`, waits: "CreateContainerConfigError",
		reason: placementv1beta1.ReasonCannotStart, says: `"missing" not found`},
	{name: "command", pod: `containers: [` + container + `command: [/nothing]}]`, event: "Failed",
		reason: placementv1beta1.ReasonCannotStart, says: "/nothing"},
	{name: "init", pod: `initContainers: [{name: prepare, image: "devfleet.local/workload:1", args: [crash, --say, no schema]}], containers: [` + container + `}]`,
		ended: "Error", reason: placementv1beta1.ReasonCrashLoop, says: "container prepare"},
	{name: "refused", pod: `hostNetwork: true, containers: [` + container + `}]`, event: "FailedCreate",
		reason: placementv1beta1.ReasonPodsRefused, says: "hostNetwork"},
	{name: "quota", namespace: "few", pod: `containers: [` + container + `}]`, event: "FailedCreate",
		reason: placementv1beta1.ReasonQuotaExceeded, says: "exceeded quota"},
	{name: "gate", pod: `readinessGates: [{conditionType: example.com/never}], containers: [` + container + `}]`, further: "progressDeadlineSeconds: 5, ",
		condition: placementv1beta1.ConditionTypeStalled, reason: placementv1beta1.ReasonStalled, says: "timed out progressing"},
}

func (b broken) namespaceName() string {
	if b.namespace != "" {
		return b.namespace
	}
	return "broken"
}

func (b broken) manifest() string {
	return fmt.Sprintf(`---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s, namespace: %[2]s}, spec: {%[3]s
  selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {%[4]s}}}}
`, b.name, b.namespaceName(), b.further, b.pod)
}

const brokenPlaced = `
apiVersion: v1
kind: Namespace
metadata: {name: broken, labels: {pod-security.kubernetes.io/enforce: baseline}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: few}}
`

const brokenPlacement = `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: broken}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: broken}, {group: "", version: v1, kind: Namespace, name: few}]
  policy: {placementType: PickAll}
`

// seen notes when something was seen first.
type seen struct {
	mutex sync.Mutex
	at    map[string]time.Time
	last  map[string]string
}

func newSeen() *seen { return &seen{at: map[string]time.Time{}, last: map[string]string{}} }

func (s *seen) note(name, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.at[name].IsZero() {
		s.at[name] = time.Now()
		s.last[name] = text
	}
}

func (s *seen) missing() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var names []string
	for _, b := range allBroken {
		if s.at[b.name].IsZero() {
			names = append(names, b.name)
		}
	}
	return strings.Join(names, ", ")
}

// causesAreTold places twelve workloads that are broken in twelve ways, and measures how long the hub takes to say what the member knows.
func causesAreTold(t *testing.T) {
	sh(t, `kubectl --context `+member+` create ns few && kubectl --context `+member+` -n few create quota none --hard=pods=0 &&
		kubectl --context `+member+` -n few wait quota/none --for=jsonpath='{.status.hard.pods}'=0 --timeout=30s`)
	known, told, shown := newSeen(), newSeen(), newSeen()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var watches sync.WaitGroup
	wait := func(what string, watch func() error) {
		watches.Go(func() { assert.NoError(t, watch(), what) })
	}
	wait("Pods of the member", func() error {
		_, err := access.AwaitAll(ctx, shared.Members[member], func(pods []*corev1.Pod) string { return known.notePods(pods) })
		return err
	})
	wait("events of the member", func() error {
		_, err := access.AwaitAll(ctx, shared.Members[member], func(events []*corev1.Event) string { return known.noteEvents(events) })
		return err
	})
	wait("Deployments of the member", func() error {
		_, err := access.AwaitAll(ctx, shared.Members[member], func(all []*appsv1.Deployment) string { return known.noteDeployments(all) })
		return err
	})
	wait("Works of the hub", func() error {
		_, err := access.AwaitAll(ctx, shared.Hub, func(works []*placementv1beta1.Work) string { return told.noteWorks(works) },
			client.InNamespace(clusterv1beta1.MemberNamespace(member)))
		return err
	})
	wait("placement of the hub", func() error {
		_, err := access.Await(ctx, shared.Hub, client.ObjectKey{Name: "broken"}, shown.notePlacement)
		return err
	})
	manifests := brokenPlaced
	for _, b := range allBroken {
		manifests += b.manifest()
	}
	apply(t, manifests+brokenPlacement)
	watches.Wait()
	for _, b := range allBroken {
		t.Run(b.name, func(t *testing.T) {
			require.NotZero(t, known.at[b.name], "the member does not know it")
			require.NotZero(t, told.at[b.name], "the hub does not say it")
			require.NotZero(t, shown.at[b.name], "the placement does not say it")
			assert.Contains(t, told.last[b.name], b.says)
			assert.Equal(t, -1, strings.IndexFunc(told.last[b.name], unicode.IsControl), "no commands for terminals")
			took := told.at[b.name].Sub(known.at[b.name])
			t.Logf("on the hub after %.1f s: %s", took.Seconds(), told.last[b.name])
			assert.LessOrEqual(t, took, toldWithin)
			took = shown.at[b.name].Sub(known.at[b.name])
			t.Logf("on the placement after %.1f s", took.Seconds())
			assert.LessOrEqual(t, took, toldWithin)
		})
	}
	said := sh(t, "kubectl fleet status placement/broken --context hub || true")
	for _, b := range allBroken {
		assert.Contains(t, said, b.name)
	}
	t.Log(said)
	sh(t, "kubectl --context "+member+" -n few delete quota none") // else the namespace stays: others have objects in it
	sh(t, "kubectl --context hub delete crp/broken ns/broken ns/few --timeout=60s")
}

func (s *seen) notePods(pods []*corev1.Pod) string {
	for _, pod := range pods {
		i := slices.IndexFunc(allBroken, func(b broken) bool { return b.name == pod.Labels["app"] && b.namespaceName() == pod.Namespace })
		if i < 0 {
			continue
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
				if waits := state.Waiting; waits != nil && waits.Reason == allBroken[i].waits {
					s.note(allBroken[i].name, waits.Message)
				}
				if ended := state.Terminated; ended != nil && ended.Reason == allBroken[i].ended {
					s.note(allBroken[i].name, ended.Message)
				}
			}
		}
	}
	return s.missing()
}

func (s *seen) noteEvents(events []*corev1.Event) string {
	for _, event := range events {
		for _, b := range allBroken {
			if b.event != "" && event.Reason == b.event && event.Namespace == b.namespaceName() &&
				strings.HasPrefix(event.InvolvedObject.Name, b.name+"-") && strings.Contains(event.Message, b.says) {
				s.note(b.name, event.Message)
			}
		}
	}
	return s.missing()
}

func (s *seen) noteDeployments(all []*appsv1.Deployment) string {
	for _, d := range all {
		for _, condition := range d.Status.Conditions {
			if d.Namespace == "broken" && d.Name == "gate" && condition.Reason == "ProgressDeadlineExceeded" {
				s.note("gate", condition.Message)
			}
		}
	}
	return s.missing()
}

func (s *seen) noteWorks(works []*placementv1beta1.Work) string {
	for _, work := range works {
		for _, manifest := range work.Status.ManifestConditions {
			for _, b := range allBroken {
				if manifest.Identifier.Name != b.name || manifest.Identifier.Namespace != b.namespaceName() {
					continue
				}
				kind := placementv1beta1.ConditionTypeFailing
				if b.condition != "" {
					kind = b.condition
				}
				for _, condition := range manifest.Conditions {
					if condition.Type == kind && condition.Reason == b.reason && strings.Contains(condition.Message, b.says) {
						s.note(b.name, condition.Message)
					}
				}
			}
		}
	}
	return s.missing()
}

func (s *seen) notePlacement(placement *placementv1beta1.ClusterResourcePlacement) string {
	if placement == nil {
		return "there is no placement"
	}
	for _, cluster := range placement.Status.PerClusterPlacementStatuses {
		for _, failed := range cluster.FailedPlacements {
			for _, b := range allBroken {
				if failed.Name == b.name && failed.Namespace == b.namespaceName() && strings.Contains(failed.Condition.Message, b.says) {
					s.note(b.name, failed.Condition.Message)
				}
			}
		}
	}
	return s.missing()
}

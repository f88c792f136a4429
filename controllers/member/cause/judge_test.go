package cause

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// liveFrom returns an object as a cluster has it.
func liveFrom(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()
	live := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(manifest), &live.Object))
	return live
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: of-web}
spec: {replicas: 3, selector: {matchLabels: {app: web}}}
`

// podOf returns a pod of the Deployment.
func podOf(t *testing.T, name, status string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(status), pod))
	pod.Namespace = "shop"
	pod.Name = name
	pod.UID = types.UID("of-" + name)
	pod.Labels = map[string]string{"app": "web", "pod-template-hash": "5d"}
	isController := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d", UID: "of-set", Controller: &isController}}
	return pod
}

const (
	runs    = `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true}]}}`
	crashes = `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 4,
  state: {waiting: {reason: CrashLoopBackOff, message: back-off 40s}}, lastState: {terminated: {exitCode: 1, reason: Error, message: "no\ndatabase"}}}]}}`
	restarts = `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 5,
  state: {running: {startedAt: "2026-07-01T11:59:55Z"}}, lastState: {terminated: {exitCode: 1, reason: Error, message: "no\ndatabase"}}}]}}`
	pulls = `{status: {phase: Pending, containerStatuses: [{name: web, image: "r.example/web:2",
  state: {waiting: {reason: ErrImagePull, message: "r.example/web:2: not found"}}}]}}`
	killed = `{spec: {containers: [{name: web, resources: {limits: {memory: 64Mi}}}]}, status: {phase: Running, containerStatuses: [{name: web, restartCount: 1,
  state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`
	unstartable = `{status: {phase: Running, containerStatuses: [{name: web, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}},
  lastState: {terminated: {exitCode: 128, reason: StartError, message: "exec: \"/serve\": no such file"}}}]}}`
	unconfigured = `{status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: CreateContainerConfigError, message: "configmap \"settings\" not found"}}}]}}`
	waits        = `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: 3 Insufficient cpu."}]}}`
	creates      = `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "True"}], containerStatuses: [{name: web, state: {waiting: {reason: ContainerCreating}}}]}}`
	unready      = `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, state: {running: {}}}]}}`
	evicted      = `{status: {phase: Failed, reason: Evicted, message: "The node was low on resource: memory.",
  containerStatuses: [{name: web, state: {terminated: {exitCode: 137, reason: Error}}}]}}`
	restartedLong = `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 1,
  state: {running: {startedAt: "2026-06-01T00:00:00Z"}}, lastState: {terminated: {exitCode: 255, reason: Unknown}}}]}}`
	endedWell = `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: web, restartCount: 1,
  state: {running: {startedAt: "2026-07-01T11:59:59Z"}}, lastState: {terminated: {exitCode: 0, reason: Completed}}}]}}`
	initFails = `{status: {phase: Pending, initContainerStatuses: [{name: migrate, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}},
  lastState: {terminated: {exitCode: 3, reason: Error}}}], containerStatuses: [{name: web, state: {waiting: {reason: PodInitializing}}}]}}`
)

// TestWhyADeploymentIsNotAvailable has each cause that pods and events tell, by the fixed order where there are several.
func TestWhyADeploymentIsNotAvailable(t *testing.T) {
	mount := warning{about: "of-b", reason: "FailedMount", message: `MountVolume.SetUp failed: secret "cert" not found`}
	probe := warning{about: "of-b", reason: "Unhealthy", message: "Readiness probe failed: HTTP probe failed with statuscode: 503"}
	for name, c := range map[string]struct {
		pods     []string
		warnings []warning
		reason   string
		message  string
	}{
		"all run":                       {pods: []string{runs, runs}},
		"none yet":                      {},
		"an image is missing":           {[]string{runs, pulls, pulls}, nil, "ImageNotPulled", "2 of 3 pods: the image r.example/web:2 cannot be pulled: ErrImagePull: r.example/web:2: not found"},
		"a container exits":             {[]string{runs, crashes, crashes}, nil, "CrashLoop", "2 of 3 pods: CrashLoopBackOff exit 1 of container web: no database"},
		"it runs again in between":      {[]string{runs, restarts, crashes}, nil, "CrashLoop", "2 of 3 pods: CrashLoopBackOff exit 1 of container web: no database"},
		"memory ends before it":         {[]string{killed, crashes}, nil, "OutOfMemory", "1 of 2 pods: container web was killed as it took more memory than it may (64Mi)"},
		"an image comes before a crash": {[]string{crashes, pulls}, nil, "ImageNotPulled", "1 of 2 pods: the image r.example/web:2 cannot be pulled: ErrImagePull: r.example/web:2: not found"},
		"a ConfigMap is missing":        {[]string{unconfigured}, nil, "CannotStart", `1 of 1 pods: container web cannot start: CreateContainerConfigError: configmap "settings" not found`},
		"a command is missing":          {[]string{unstartable}, nil, "CannotStart", `1 of 1 pods: container web cannot start: StartError: exec: "/serve": no such file`},
		"no node has room":              {[]string{waits, runs}, nil, "Unschedulable", "1 of 2 pods: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		"a volume is missing":           {[]string{runs, creates}, []warning{mount}, "MountFails", `1 of 2 pods: FailedMount: MountVolume.SetUp failed: secret "cert" not found`},
		"a mount that worked later":     {[]string{runs, unready}, []warning{mount}, "", ""},
		"a probe fails":                 {[]string{runs, unready}, []warning{probe}, "ProbeFails", "1 of 2 pods: Readiness probe failed: HTTP probe failed with statuscode: 503"},
		"it is starting":                {[]string{runs, creates, unready}, nil, "", ""},
		"a restart of long ago":         {[]string{runs, restartedLong}, []warning{probe}, "ProbeFails", "1 of 2 pods: Readiness probe failed: HTTP probe failed with statuscode: 503"},
		"one that ended well":           {[]string{endedWell}, nil, "", ""},
		"one was evicted, one fails":    {[]string{evicted, unready}, []warning{probe}, "ProbeFails", "1 of 1 pods: Readiness probe failed: HTTP probe failed with statuscode: 503"},
		"a node was full":               {[]string{runs, evicted}, nil, "Evicted", "1 of 2 pods: Evicted: The node was low on resource: memory."},
		"before it, another exits":      {[]string{initFails}, nil, "CrashLoop", "1 of 1 pods: CrashLoopBackOff exit 3 of container migrate"},
	} {
		t.Run(name, func(t *testing.T) {
			of, looks := SubjectOf(liveFrom(t, deployment))
			require.True(t, looks)
			w := world{now: noon, warnings: c.warnings, tellsOutput: true}
			for i, status := range c.pods {
				w.pods = append(w.pods, podOf(t, string(rune('a'+i)), status))
			}
			found, _ := judge(of, w)
			assert.Equal(t, Cause{Reason: c.reason, Message: c.message}, found)
		})
	}
}

// TestPodsOfOthersDoNotCount has pods that the selector of a Deployment selects, and that are not its own.
func TestPodsOfOthersDoNotCount(t *testing.T) {
	of, _ := SubjectOf(liveFrom(t, deployment))
	other := podOf(t, "a", crashes)
	other.OwnerReferences[0].Name = "worker-5d"
	leaving := podOf(t, "b", crashes)
	leaving.DeletionTimestamp = &metav1.Time{}
	leaving.DeletionTimestamp.Time = leaving.DeletionTimestamp.AddDate(2026, 1, 1)
	bare := podOf(t, "c", crashes)
	bare.OwnerReferences = nil
	found, _ := judge(of, world{pods: []*corev1.Pod{other, leaving, bare}})
	assert.Empty(t, found)
}

// TestWhatAnObjectSaysOfItself has causes for which no pod is looked at.
func TestWhatAnObjectSaysOfItself(t *testing.T) {
	for name, c := range map[string]struct {
		live     string
		warnings []warning
		reason   string
		message  string
	}{
		"a quota refuses the pods of a Deployment": {
			deployment + `status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "web-5d-x" is forbidden: exceeded quota: small'}]}`, nil,
			"QuotaExceeded", `pods "web-5d-x" is forbidden: exceeded quota: small`,
		},
		"pod security refuses those of a StatefulSet": {
			`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: shop, uid: of-db}, spec: {selector: {matchLabels: {app: db}}}}`,
			[]warning{{about: "of-db", reason: "FailedCreate", message: `pods "db-0" is forbidden: violates PodSecurity "restricted:latest"`}},
			"PodsRefused", `pods "db-0" is forbidden: violates PodSecurity "restricted:latest"`,
		},
		"no load balancer": {`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: of-web}}`, nil,
			"NoAddress", "no load balancer has given the Service an address"},
		"a load balancer that fails": {`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop, uid: of-web}}`,
			[]warning{{about: "of-web", reason: "SyncLoadBalancerFailed", message: "quota of addresses"}},
			"NoAddress", "no load balancer has given the Service an address: quota of addresses"},
		"a storage class that is missing": {
			`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, uid: of-data}, spec: {storageClassName: fast}}`,
			[]warning{{about: "of-data", reason: "ProvisioningFailed", message: `storageclass.storage.k8s.io "fast" not found`}},
			"NoVolume", `no volume is bound to the claim of the storage class fast: storageclass.storage.k8s.io "fast" not found`,
		},
		"a condition of a custom resource": {
			`{apiVersion: cert.example/v1, kind: Certificate, metadata: {name: tls, namespace: shop, uid: of-tls}, status: {conditions: [{type: Ready, status: "False", reason: NoIssuer, message: issuer main is not there}]}}`, nil,
			"NotReady", "Ready is False: NoIssuer: issuer main is not there",
		},
		"a definition whose names are taken": {
			`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b, uid: of-a}, status: {conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: '"as" is already in use'}]}}`, nil,
			"NotReady", `NamesAccepted is False: PluralConflict: "as" is already in use`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, _ := SubjectOf(liveFrom(t, c.live))
			found, _ := judge(of, world{warnings: c.warnings})
			assert.Equal(t, Cause{Reason: c.reason, Message: c.message}, found)
		})
	}
}

// TestLastWords has what a container wrote before it exited: cut, on one line, without commands for terminals, and never of a pod that
// reads Secrets or where nobody wants it told.
func TestLastWords(t *testing.T) {
	of, _ := SubjectOf(liveFrom(t, deployment))
	tell := func(pod *corev1.Pod, w world) string {
		w.pods = []*corev1.Pod{pod}
		w.now = noon
		found, _ := judge(of, w)
		require.Equal(t, placementv1beta1.ReasonCrashLoop, found.Reason)
		return found.Message
	}
	wordsOfWeb := wordsKey{owner: "of-set", revision: "5d", container: "web"}
	const begin = "1 of 1 pods: CrashLoopBackOff exit 1 of container web"
	quiet := strings.Replace(crashes, `, message: "no\ndatabase"`, "", 1)
	assert.Equal(t, begin+`: red \x1b[31m`, tell(podOf(t, "a", quiet), world{tellsOutput: true, lastWords: map[wordsKey]string{wordsOfWeb: "red \x1b[31m\n"}}))
	assert.Equal(t, begin, tell(podOf(t, "a", crashes), world{}))
	others := map[wordsKey]string{{owner: "of-set", revision: "5d", container: "migrate"}: "words of another container"}
	assert.Equal(t, begin, tell(podOf(t, "a", quiet), world{tellsOutput: true, lastWords: others}))

	long := tell(podOf(t, "a", quiet), world{tellsOutput: true, lastWords: map[wordsKey]string{wordsOfWeb: strings.Repeat("x", 1000) + " the end"}})
	assert.Len(t, long, len(begin)+len(": ")+maxWords)
	assert.True(t, strings.HasSuffix(long, "x the end"))

	for name, spec := range map[string]string{
		"an entry":       `{containers: [{name: web, env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]}]}`,
		"all entries":    `{containers: [{name: web, envFrom: [{secretRef: {name: db}}]}]}`,
		"a volume":       `{volumes: [{name: v, secret: {secretName: db}}]}`,
		"a projection":   `{volumes: [{name: v, projected: {sources: [{secret: {name: db}}]}}]}`,
		"a vault by CSI": `{volumes: [{name: v, csi: {driver: secrets-store.csi.k8s.io}}]}`,
		"an init step":   `{initContainers: [{name: i, envFrom: [{secretRef: {name: db}}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(t, "a", crashes)
			require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &pod.Spec))
			assert.Equal(t, begin+": what it wrote is not told, as it reads Secrets", tell(pod, world{tellsOutput: true}))
		})
	}

	for name, spec := range map[string]string{
		"a container": `{containers: [{name: web, envFrom: [{secretRef: {name: db}}], readinessProbe: {exec: {command: [check]}}}]}`,
		"a sidecar":   `{initContainers: [{name: proxy, envFrom: [{secretRef: {name: db}}], readinessProbe: {exec: {command: [check]}}}]}`,
	} {
		probed := podOf(t, "a", unready)
		require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &probed.Spec))
		found, _ := judge(of, world{pods: []*corev1.Pod{probed}, tellsOutput: true,
			warnings: []warning{{about: "of-a", reason: "Unhealthy", message: "Readiness probe failed: password hunter2 refused"}}})
		assert.Equal(t, Cause{Reason: "ProbeFails", Message: "1 of 1 pods: Readiness probe failed"}, found, name)
	}

	hooked := podOf(t, "a", `{status: {phase: Pending, containerStatuses: [{name: web, state: {waiting: {reason: PostStartHookError, message: hunter2 refused}}}]}}`)
	told := func(tells bool) string {
		found, _ := judge(of, world{pods: []*corev1.Pod{hooked}, tellsOutput: tells})
		return found.Message
	}
	const hook = "1 of 1 pods: container web cannot start: PostStartHookError"
	assert.Equal(t, hook+": hunter2 refused", told(true))
	assert.Equal(t, hook, told(false))
	require.NoError(t, yaml.UnmarshalStrict([]byte(`{containers: [{name: web, envFrom: [{secretRef: {name: db}}]}]}`), &hooked.Spec))
	assert.Equal(t, hook, told(true))
}

// TestAPodThatCouldNotBeMadeCountsUntilOneIs: the event lives for an hour.
func TestAPodThatCouldNotBeMadeCountsUntilOneIs(t *testing.T) {
	of, _ := SubjectOf(liveFrom(t, deployment))
	refused := []warning{{about: "of-web", reason: "FailedCreate", message: "no account", at: noon}}
	found, _ := judge(of, world{now: noon, warnings: refused})
	assert.Equal(t, Cause{Reason: "PodsRefused", Message: "no account"}, found)
	pod := podOf(t, "a", creates)
	pod.CreationTimestamp = metav1.NewTime(noon.Add(time.Second))
	found, _ = judge(of, world{now: noon, warnings: refused, pods: []*corev1.Pod{pod}})
	assert.Empty(t, found)
}

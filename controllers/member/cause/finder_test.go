package cause

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	testclock "k8s.io/utils/clock/testing"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// finderRig is a Finder and what it has told.
type finderRig struct {
	*Finder
	member *fake.Clientset
	clock  *testclock.FakeClock
	told   chan string
	logged *lines
}

// lines are those of a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(_, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func newFinderRig(t *testing.T, objects ...runtime.Object) *finderRig {
	t.Helper()
	r := &finderRig{
		member: fake.NewClientset(objects...), clock: testclock.NewFakeClock(noon),
		told: make(chan string, 100), logged: &lines{},
	}
	r.Finder = NewFinder(Options{Member: r.member, Clock: r.clock, Log: logr.New(funcr.New(r.logged.add, funcr.Options{}).GetSink()), TellsOutput: true})
	r.Changed = func(work string) { r.told <- work }
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); assert.NoError(t, r.Start(ctx)) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

// step is how far the clock goes while a test waits.
const step = pace / 10

// await waits until a cause of a Work is told and returns that of the Deployment.
func (r *finderRig) await(t *testing.T, work string) Cause {
	t.Helper()
	r.awaitTold(t, work)
	found, looked := r.CauseOf("of-web")
	assert.True(t, looked)
	return found
}

// awaitTold waits until a cause of a Work is told.
func (r *finderRig) awaitTold(t *testing.T, work string) {
	t.Helper()
	require.Eventually(t, func() bool {
		select {
		case told := <-r.told:
			assert.Equal(t, work, told)
			return true
		default:
			r.clock.Step(step)
			return false
		}
	}, time.Minute, time.Millisecond, "nothing is told")
}

// reads returns what was read of the member.
func (r *finderRig) reads() []string {
	var all []string
	for _, action := range r.member.Actions() {
		if verb := action.GetVerb(); verb == "get" || verb == "list" || verb == "watch" {
			what := verb + " " + action.GetResource().Resource
			if sub := action.GetSubresource(); sub != "" {
				what += "/" + sub
			}
			all = append(all, what)
		}
	}
	return all
}

func subjectOfWeb(t *testing.T) Subject {
	t.Helper()
	of, _ := SubjectOf(liveFrom(t, deployment))
	return of
}

// TestAnObjectThatFailsCostsFiveRequestsAtMost: the pods once and their changes, the warnings where the pods say nothing, one log.
func TestAnObjectThatFailsCostsFiveRequestsAtMost(t *testing.T) {
	pod := podOf(t, "a", creates)
	r := newFinderRig(t, pod)
	assert.Empty(t, r.reads(), "nobody fails")
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	_, err := r.member.CoreV1().Events("shop").Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{UID: pod.UID}, Reason: "FailedMount", Message: "no disk",
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, Cause{Reason: "MountFails", Message: "1 of 1 pods: FailedMount: no disk"}, r.await(t, "w"))

	crashing := podOf(t, "a", `{status: {phase: Running, containerStatuses: [{name: web, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}},
  lastState: {terminated: {exitCode: 2, reason: Error}}}]}}`)
	_, err = r.member.CoreV1().Pods("shop").UpdateStatus(t.Context(), crashing, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.Equal(t, Cause{Reason: "CrashLoop", Message: "1 of 1 pods: CrashLoopBackOff exit 2 of container web: fake logs"}, r.await(t, "w"))
	assert.LessOrEqual(t, len(r.reads()), 5, "%v", r.reads())

	r.SetInterest("w", nil)
	found, looked := r.CauseOf("of-web")
	assert.Empty(t, found)
	assert.False(t, looked)
	r.mu.Lock()
	defer r.mu.Unlock()
	assert.Empty(t, r.looks)
	assert.Empty(t, r.namespaces, "nobody watches the warnings any more")
}

// TestWarningsThatAreWatchedForAnotherObjectCountAtOnce: no event need come once more.
func TestWarningsThatAreWatchedForAnotherObjectCountAtOnce(t *testing.T) {
	pod := podOf(t, "a", creates)
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "e"}, Type: corev1.EventTypeWarning,
		InvolvedObject: corev1.ObjectReference{UID: pod.UID}, Reason: "FailedMount", Message: "no disk",
	}
	r := newFinderRig(t, pod, event)
	other := subjectOfWeb(t)
	other.UID = types.UID("other")
	r.SetInterest("v", []Subject{other})
	for {
		r.awaitTold(t, "v")
		if found, _ := r.CauseOf("other"); found.Reason != "" {
			break
		}
	}
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	assert.Equal(t, Cause{Reason: "MountFails", Message: "1 of 1 pods: FailedMount: no disk"}, r.await(t, "w"))
}

// TestTheEndOfLongLinesIsRead: a kubelet counts what it returns from where the last lines begin.
func TestTheEndOfLongLinesIsRead(t *testing.T) {
	r := newFinderRig(t, podOf(t, "a", strings.Replace(crashes, `, message: "no\ndatabase"`, "", 1)))
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	assert.Contains(t, r.await(t, "w").Message, "fake logs")
	const longestLine = 16 << 10
	for _, action := range r.member.Actions() {
		if generic, is := action.(clienttesting.GenericAction); is && action.GetSubresource() == "log" {
			asked, is := generic.GetValue().(*corev1.PodLogOptions)
			require.True(t, is)
			assert.GreaterOrEqual(t, *asked.LimitBytes, *asked.TailLines*longestLine)
			return
		}
	}
	assert.Fail(t, "no log was read")
}

// TestAThousandPodsThatCrashCostNoMoreThanOne: one list, one watch, one log for all that are alike.
func TestAThousandPodsThatCrashCostNoMoreThanOne(t *testing.T) {
	const many = 1000
	quiet := strings.Replace(crashes, `, message: "no\ndatabase"`, "", 1)
	pods := make([]runtime.Object, many)
	for i := range pods {
		pods[i] = podOf(t, fmt.Sprintf("p%03d", i), quiet)
	}
	r := newFinderRig(t, pods...)
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	assert.Equal(t, "1000 of 1000 pods: CrashLoopBackOff exit 1 of container web: fake logs", r.await(t, "w").Message)
	assert.LessOrEqual(t, len(r.reads()), 5, "%v", r.reads())
}

// TestACauseStaysWhileAContainerRunsAgainInBetween: what only seems to be gone, and other words, are told once in a while.
func TestACauseStaysWhileAContainerRunsAgainInBetween(t *testing.T) {
	pod := podOf(t, "a", crashes)
	r := newFinderRig(t, pod)
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	first := r.await(t, "w")
	assert.Equal(t, placementv1beta1.ReasonCrashLoop, first.Reason)

	healthy := podOf(t, "a", runs)
	_, err := r.member.CoreV1().Pods("shop").UpdateStatus(t.Context(), healthy, metav1.UpdateOptions{})
	require.NoError(t, err)
	began := r.clock.Now()
	assert.Empty(t, r.await(t, "w"))
	assert.GreaterOrEqual(t, r.clock.Since(began), Renewal-pace, "it stays for a minute after it was seen last")
}

// TestAnAgentThatMayNotReadPodsSaysSoOnce: the cause is unknown, and the log has one line.
func TestAnAgentThatMayNotReadPodsSaysSoOnce(t *testing.T) {
	r := newFinderRig(t)
	refuse := func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", nil)
	}
	r.member.PrependReactor("list", "pods", refuse)
	other := subjectOfWeb(t)
	other.UID = types.UID("other")
	r.SetInterest("w", []Subject{subjectOfWeb(t)})
	began := r.clock.Now()
	assert.Equal(t, Cause{Reason: "CauseUnknown", Message: "the member agent may not read pods in the namespace shop"}, r.await(t, "w"))
	assert.GreaterOrEqual(t, r.clock.Since(began), refusalPatience, "an API server that was away does not know rights at once")
	r.SetInterest("v", []Subject{other})
	r.await(t, "v")
	r.logged.mu.Lock()
	defer r.logged.mu.Unlock()
	assert.Len(t, r.logged.all, 1)
}

// TestMoreThanAHundredFailingObjectsAreNotAllLookedAt keeps an outage of everything from taking the API server with it.
func TestMoreThanAHundredFailingObjectsAreNotAllLookedAt(t *testing.T) {
	f := NewFinder(Options{Log: logr.Discard(), Clock: testclock.NewFakeClock(noon)})
	var told []string
	f.Changed = func(work string) { told = append(told, work) }
	var all []Subject
	for i := range mostLooks + 5 {
		all = append(all, Subject{UID: types.UID(rune('a' + i)), Pods: labels.Everything()})
	}
	f.SetInterest("w", all)
	assert.Len(t, f.looks, mostLooks)
	found, _ := f.CauseOf(all[mostLooks].UID)
	assert.Equal(t, "not looked for, as 100 other objects on the cluster are not available either", found.Message)
	f.SetInterest("address", []Subject{{UID: "door", Kind: serviceKind}})
	assert.Len(t, f.looks, mostLooks+1, "what has no pods takes no room")
	f.SetInterest("v", all[mostLooks:mostLooks+1])
	f.SetInterest("u", all[mostLooks+1:mostLooks+2])
	for _, left := range []int{mostLooks - 1, mostLooks - 2} {
		told = nil
		f.SetInterest("w", all[:left])
		assert.ElementsMatch(t, []string{"u", "v"}, told, "there is room for one, and both are told until they ask")
	}
	f.SetInterest("v", all[mostLooks:mostLooks+1])
	told = nil
	f.SetInterest("w", nil)
	assert.Equal(t, []string{"u"}, told)
}

func TestWordsOfTheKubeletAreNotThoseOfAContainer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no database\n": "no database\n",
		"":              "",
		`failed to try resolving symlinks in path "/log/0.log": lstat /log/0.log: no such file or directory`: "",
		"unable to retrieve container logs for containerd://0123456789abcdef":                                "",
		`failed to open log file "/log/0.log"`:                                                               "",
		"migrating\nfailed to open log file audit.log\n":                                                     "migrating\nfailed to open log file audit.log\n",
	} {
		assert.Equal(t, want, containersOwn(text), text)
	}
}

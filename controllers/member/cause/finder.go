package cause

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// Patience is how long an object may be on its way before the agent asks why it is not available: most are available by then, and
	// cost no request.
	Patience = 3 * time.Second
	// mostLooks is how many objects are looked at at once, so that an outage of everything does not take the API server with it.
	mostLooks = 100
	// Renewal is how long a cause stays as it is while only its words change, and after it was seen last: containers that exit again and
	// again run in between.
	Renewal = time.Minute
	// pace is how often an object is judged at most: a thousand pods may change at a time.
	pace = time.Second
	// warningsWait is how long the warnings of a namespace are waited for before a cause is told without them.
	warningsWait = 5 * time.Second
	// refusalPatience is how long the API server may refuse to list pods: one that was away does not know rights at once.
	refusalPatience = 30 * time.Second
	// refusalRenewal is after how long the agent asks again whether it may.
	refusalRenewal = 5 * time.Minute
	// logTimeout is how long what a container wrote is waited for: a kubelet may not answer.
	logTimeout = 10 * time.Second
	// lastLines is how many lines of what a container wrote are read, and maxLog how many bytes: what so many lines have at most, as
	// container runtimes cut them after 16 KiB. A kubelet that is given less returns where these lines begin, and not how they end.
	lastLines = 5
	maxLog    = lastLines * 16 << 10
)

// Options are what a Finder needs.
type Options struct {
	// Member reads pods, events and logs of the member.
	Member kubernetes.Interface
	Clock  clock.WithTicker
	Log    logr.Logger
	// TellsOutput is whether what containers and their probes write is told on the hub.
	TellsOutput bool
}

// Finder finds out why objects are not available. It watches the pods of each, and the warnings of a namespace as long as an object in
// it fails for a reason that pods do not tell.
type Finder struct {
	Options
	// Changed is called with each Work that has an object whose cause has changed. It must not block. It is set before Start.
	Changed func(work string)

	mu         sync.Mutex
	ctx        context.Context // nil until started
	looks      map[types.UID]*look
	namespaces map[string]*warnings
	// denied is whether the log says already that the agent may not look.
	denied sync.Once
	// turnedAway are Works with objects for which there was no room when they were declared last.
	turnedAway map[string]bool
}

// NewFinder returns a Finder that looks at nothing yet.
func NewFinder(o Options) *Finder {
	return &Finder{Options: o, looks: map[types.UID]*look{}, namespaces: map[string]*warnings{}, turnedAway: map[string]bool{}}
}

// look is the look at one object.
type look struct {
	finder *Finder
	stop   context.CancelFunc // nil until started
	// changed has an entry when what is known has changed.
	changed chan struct{}
	// pods are those of the object, nil if it has none.
	pods cache.SharedIndexInformer
	// refused is closed once the agent turns out to have no right to read pods.
	refused chan struct{}

	// The rest is guarded by the lock of the finder. Works are those that ask for it.
	works   map[string]bool
	subject Subject
	told    Cause
	// isJudged is whether told was found out, be it that nothing is known.
	isJudged bool
	// toldAt is when that was told, seenAt when it was found last.
	toldAt, seenAt time.Time
	// refusedSince is since when the agent is refused to read pods, deniedAt when that counted; zero if it is not.
	refusedSince, deniedAt time.Time
	lastWords              map[wordsKey]string
	// readAt is when words were read last, whether there were any or not.
	readAt time.Time
	// warnedSince is since when the warnings of its namespace are watched for it; zero if they are not.
	warnedSince time.Time
}

// Start looks until ctx ends. It implements manager.Runnable.
func (f *Finder) Start(ctx context.Context) error {
	f.mu.Lock()
	f.ctx = ctx
	for _, l := range f.looks {
		f.startLocked(l)
	}
	f.mu.Unlock()
	<-ctx.Done()
	return nil
}

// SetInterest declares all objects of a Work that are not available; it replaces what was declared before. What an object says of
// itself by now counts at once. Without a Finder nothing is looked at.
func (f *Finder) SetInterest(work string, subjects []Subject) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := make(map[types.UID]bool, len(subjects))
	for _, of := range subjects {
		wanted[of.UID] = true
	}
	delete(f.turnedAway, work)
	before := f.countLooks()
	for uid, l := range f.looks {
		if l.works[work] && !wanted[uid] {
			f.dropLocked(work, l)
		}
	}
	for _, of := range subjects {
		f.lookLocked(work, of)
	}
	if f.countLooks() < before {
		for turned := range f.turnedAway { // those for which there is room now ask again
			f.Changed(turned)
		}
	}
}

// lookLocked has an object looked at for a Work, if it is not yet and there is room. Where the agent was refused, it asks again after a
// while.
func (f *Finder) lookLocked(work string, of Subject) {
	l, ok := f.looks[of.UID]
	if ok && !l.deniedAt.IsZero() && f.Clock.Since(l.deniedAt) >= refusalRenewal {
		f.endLocked(l)
		again := f.newLook(of)
		again.works = l.works
		again.told = l.told
		again.isJudged = l.isJudged
		f.looks[of.UID] = again
		f.startLocked(again)
		l = again
	}
	switch {
	case ok && l.subject.Own != of.Own:
		l.subject.Own = of.Own
		l.wake()
	case !ok && of.takesRoom() && f.countLooks() >= mostLooks:
		f.turnedAway[work] = true
		return
	case !ok:
		l = f.newLook(of)
		f.looks[of.UID] = l
		f.startLocked(l)
	}
	l.works[work] = true
}

func (f *Finder) newLook(of Subject) *look {
	return &look{
		finder: f, changed: make(chan struct{}, 1), refused: make(chan struct{}), subject: of, works: map[string]bool{},
		lastWords: map[wordsKey]string{},
	}
}

// takesRoom reports whether pods are watched for an object. A Service without an address, which may stay so, takes none.
func (s Subject) takesRoom() bool { return s.Pods != nil || s.Kind == podKind }

func (f *Finder) countLooks() int {
	count := 0
	for _, l := range f.looks {
		if l.subject.takesRoom() {
			count++
		}
	}
	return count
}

// startLocked begins a look, if the Finder has been started.
func (f *Finder) startLocked(l *look) {
	if f.ctx == nil {
		return
	}
	ctx, stop := context.WithCancel(f.ctx)
	l.stop = stop
	l.pods = l.watchPods()
	go l.run(ctx)
}

// dropLocked ends the look at an object if no other Work asks for it.
func (f *Finder) dropLocked(work string, l *look) {
	delete(l.works, work)
	if len(l.works) > 0 {
		return
	}
	delete(f.looks, l.subject.UID)
	f.endLocked(l)
}

// endLocked ends the watches of a look.
func (f *Finder) endLocked(l *look) {
	if l.stop != nil {
		l.stop()
	}
	if !l.warnedSince.IsZero() {
		f.unwatchWarningsLocked(l.subject.Namespace)
	}
}

// CauseOf returns why an object is not available, and whether that was looked for by now.
func (f *Finder) CauseOf(of types.UID) (found Cause, looked bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l, ok := f.looks[of]; ok {
		return l.told, l.isJudged
	}
	if f.countLooks() >= mostLooks {
		return newCause(placementv1beta1.ReasonCauseUnknown,
			fmt.Sprintf("not looked for, as %d other objects on the cluster are not available either", mostLooks)), true
	}
	return Cause{}, false
}

func (l *look) wake() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// run judges the object whenever what is known of it has changed, until the look ends.
func (l *look) run(ctx context.Context) {
	if l.pods != nil {
		podsCtx, stop := context.WithCancel(ctx)
		defer stop()
		go l.pods.RunWithContext(podsCtx)
		go func() {
			select {
			case <-l.refused:
				stop()
			case <-podsCtx.Done():
			}
		}()
	}
	l.wake()
	if l.pods != nil {
		go func() { // a list without pods is no event
			if cache.WaitFor(ctx, "", l.pods.HasSyncedChecker()) {
				l.wake()
			}
		}()
	}
	var again <-chan time.Time
	var judged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		case <-again:
		}
		wait := pace - l.finder.Clock.Since(judged)
		if judged.IsZero() || wait <= 0 {
			judged = l.finder.Clock.Now()
			wait = l.judge(ctx)
		}
		again = nil
		if wait > 0 {
			again = l.finder.Clock.After(wait)
		}
	}
}

// judge tells the cause if it has changed. It returns when to judge again; zero if only a change can change it.
func (l *look) judge(ctx context.Context) time.Duration {
	f := l.finder
	pods, synced := l.listPods()
	f.mu.Lock()
	of := l.subject
	isDenied := !l.deniedAt.IsZero()
	known := world{now: f.Clock.Now(), pods: pods, lastWords: maps.Clone(l.lastWords), tellsOutput: f.TellsOutput}
	watched := f.namespaces[of.Namespace]
	isWarned := !l.warnedSince.IsZero()
	f.mu.Unlock()
	if isDenied {
		return l.tell(newCause(placementv1beta1.ReasonCauseUnknown, "the member agent may not read pods in the namespace "+of.Namespace))
	}
	if !synced {
		return 0
	}
	if isWarned {
		known.warnings = watched.about(of, pods)
	}
	cause, worst := judge(of, known)
	if cause.Reason == "" || cause == of.Own && !hasPods[of.Kind] {
		if wait := l.awaitWarnings(ctx); wait > 0 {
			return wait // they may explain what is only said so far
		}
		if !isWarned && ctx.Err() == nil {
			return l.judge(ctx) // with those that are there already, as others have asked for them
		}
	}
	if worst != nil && l.readLastWords(ctx, worst) {
		return l.judge(ctx)
	}
	return l.tell(cause)
}

// awaitWarnings has the warnings of the namespace watched for an object, and returns how long to wait for them at most; zero once they
// have been listed, or do not come.
func (l *look) awaitWarnings(ctx context.Context) time.Duration {
	f := l.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return 0
	}
	now := f.Clock.Now()
	if l.warnedSince.IsZero() {
		l.warnedSince = now
		f.watchWarningsLocked(l.subject.Namespace)
	}
	if f.namespaces[l.subject.Namespace].events.HasSynced() {
		return 0
	}
	return max(0, warningsWait-now.Sub(l.warnedSince))
}

// listPods returns the pods of the object, and whether they are known yet.
func (l *look) listPods() (pods []*corev1.Pod, known bool) {
	if l.pods == nil {
		return nil, true
	}
	for _, object := range l.pods.GetStore().List() {
		if pod, ok := object.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods, l.pods.HasSynced()
}

// tell publishes a cause: another reason that explains more at once, everything else once in a while. It returns when to judge again.
func (l *look) tell(cause Cause) time.Duration {
	f := l.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock.Now()
	if cause.Reason == l.told.Reason {
		l.seenAt = now
	}
	if cause == l.told && l.isJudged {
		return 0
	}
	since := l.seenAt // of what seems to be over
	if cause.Reason == l.told.Reason {
		since = l.toldAt
	}
	explainsMore := !l.isJudged || l.told.Reason == "" || cause.Reason != "" && rank(cause.Reason) < rank(l.told.Reason) ||
		l.told == l.subject.Own && cause.Reason == l.told.Reason // an event has come that explains it
	if wait := Renewal - now.Sub(since); !explainsMore && wait > 0 {
		return wait
	}
	l.told = cause
	l.isJudged = true
	l.toldAt = now
	l.seenAt = now
	f.Log.V(1).Info("The cause why an object is not available has changed", "object", l.subject.Namespace+"/"+l.subject.Name,
		"reason", cause.Reason)
	for work := range l.works {
		f.Changed(work)
	}
	return 0
}

// readLastWords reads what a container that exits wrote last, of one pod for all that are alike, and returns whether there is any. The
// kubelet tells it in the status of pods that ask for that. What cannot be read is asked for again after a while.
func (l *look) readLastWords(ctx context.Context, of *finding) bool {
	f := l.finder
	if of.container == "" || !f.TellsOutput || readsSecrets(of.pod) || endedWords(of.pod, of.container) != "" {
		return false
	}
	key := wordsKeyOf(of.pod, of.container)
	f.mu.Lock()
	now := f.Clock.Now()
	if _, read := l.lastWords[key]; read || !l.readAt.IsZero() && now.Sub(l.readAt) < Renewal {
		f.mu.Unlock()
		return false
	}
	l.readAt = now
	f.mu.Unlock()
	words := f.readLog(ctx, of.pod, of.container)
	if words == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(l.lastWords) // those of revisions and containers that fail no more
	l.lastWords[key] = words
	return true
}

// endedWords returns what the status of a pod reports as the last words of a container.
func endedWords(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			for _, state := range []corev1.ContainerState{list[i].State, list[i].LastTerminationState} {
				if list[i].Name == container && state.Terminated != nil && state.Terminated.Message != "" {
					return state.Terminated.Message
				}
			}
		}
	}
	return ""
}

// readLog returns the end of what a container wrote before it exited; nothing if that cannot be read.
func (f *Finder) readLog(ctx context.Context, pod *corev1.Pod, container string) string {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	lines := int64(lastLines)
	limit := int64(maxLog)
	data, err := f.Member.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: hasRestarted(pod, container), TailLines: &lines, LimitBytes: &limit,
	}).DoRaw(ctx)
	if err != nil {
		f.Log.V(1).Info("What a container wrote could not be read", "object", pod.Namespace+"/"+pod.Name, "cause", err.Error())
		return ""
	}
	words := containersOwn(string(data))
	if words == "" && len(data) > 0 {
		f.Log.V(1).Info("What a container wrote is not there", "object", pod.Namespace+"/"+pod.Name, "cause", string(data))
	}
	return words
}

// excuses are how the texts begin with which a kubelet answers instead of a log that it has removed or cannot find, as if the container
// had written them.
var excuses = []string{"failed to try resolving symlinks in path ", "failed to open log file ", "unable to retrieve container logs for "}

// containersOwn returns a log; nothing if the kubelet has put its own words in its place.
func containersOwn(text string) string {
	if slices.ContainsFunc(excuses, func(excuse string) bool { return strings.HasPrefix(text, excuse) }) {
		return ""
	}
	return text
}

// hasRestarted reports whether a container runs again, so that what it wrote before is that of its run before.
func hasRestarted(pod *corev1.Pod, container string) bool {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			if list[i].Name == container {
				return list[i].State.Terminated == nil
			}
		}
	}
	return false
}

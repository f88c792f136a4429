package cause

import (
	"context"
	"fmt"
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
	// renewal is how long a cause stays as it is while only its words change, or while it seems to be gone: containers that exit again
	// and again run in between.
	renewal = time.Minute
	// maxLog is how many bytes of what a container wrote are read.
	maxLog = 4096
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
}

// NewFinder returns a Finder that looks at nothing yet.
func NewFinder(o Options) *Finder {
	return &Finder{Options: o, looks: map[types.UID]*look{}, namespaces: map[string]*warnings{}}
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
	works     map[string]bool
	subject   Subject
	told      Cause
	toldAt    time.Time
	isDenied  bool
	lastWords map[types.UID]string
	// isWarned is whether the warnings of its namespace are watched for it.
	isWarned bool
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
	for uid, l := range f.looks {
		if l.works[work] && !wanted[uid] {
			f.dropLocked(work, l)
		}
	}
	for _, of := range subjects {
		f.lookLocked(work, of)
	}
}

// lookLocked has an object looked at for a Work, if it is not yet and there is room.
func (f *Finder) lookLocked(work string, of Subject) {
	l, ok := f.looks[of.UID]
	switch {
	case ok && l.subject.Own != of.Own:
		l.subject.Own = of.Own
		l.wake()
	case !ok && len(f.looks) >= mostLooks:
		return
	case !ok:
		l = &look{
			finder: f, changed: make(chan struct{}, 1), refused: make(chan struct{}), subject: of, works: map[string]bool{},
			lastWords: map[types.UID]string{},
		}
		f.looks[of.UID] = l
		f.startLocked(l)
	}
	l.works[work] = true
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
	if l.stop != nil {
		l.stop()
	}
	if l.isWarned {
		f.unwatchWarningsLocked(l.subject.Namespace)
	}
}

// CauseOf returns why an object is not available, as far as that is known by now.
func (f *Finder) CauseOf(of types.UID) Cause {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l, ok := f.looks[of]; ok {
		return l.told
	}
	if len(f.looks) >= mostLooks {
		return newCause(placementv1beta1.ReasonCauseUnknown,
			fmt.Sprintf("not looked for, as %d other objects on the cluster are not available either", mostLooks))
	}
	return Cause{}
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.changed:
		case <-again:
		}
		again = nil
		if wait := l.judge(ctx); wait > 0 {
			again = l.finder.Clock.After(wait)
		}
	}
}

// judge tells the cause if it has changed. It returns when to judge again; zero if only a change can change it.
func (l *look) judge(ctx context.Context) time.Duration {
	f := l.finder
	pods, synced := l.listPods()
	f.mu.Lock()
	if !synced && !l.isDenied {
		f.mu.Unlock()
		return 0
	}
	known := world{pods: pods, lastWords: l.lastWords, tellsOutput: f.TellsOutput}
	if l.isWarned {
		known.warnings = f.warningsLocked(l.subject.Namespace)
	}
	cause, worst := judge(l.subject, known)
	if l.isDenied {
		cause = newCause(placementv1beta1.ReasonCauseUnknown, "the member agent may not read pods in the namespace "+l.subject.Namespace)
	}
	wantsWarnings := cause.Reason == "" || cause == l.subject.Own && !hasPods[l.subject.Kind]
	isEarly := wantsWarnings && ctx.Err() == nil && !l.knowsWarningsLocked()
	f.mu.Unlock()
	if isEarly {
		return 0 // they may explain what is only said so far
	}
	if worst != nil && l.readLastWords(ctx, worst) {
		return l.judge(ctx)
	}
	return l.tell(cause)
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

// tell publishes a cause: another reason that explains more at once, everything else once in a while.
func (l *look) tell(cause Cause) time.Duration {
	f := l.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	if cause == l.told {
		return 0
	}
	now := f.Clock.Now()
	explainsMore := l.told.Reason == "" || cause.Reason != "" && rank(cause.Reason) < rank(l.told.Reason) ||
		l.told == l.subject.Own && cause.Reason == l.told.Reason // an event has come that explains it
	if wait := renewal - now.Sub(l.toldAt); !explainsMore && wait > 0 {
		return wait
	}
	l.told = cause
	l.toldAt = now
	if len(l.works) > 0 {
		f.Log.V(1).Info("The cause why an object is not available has changed", "object", l.subject.Namespace+"/"+l.subject.Name, "reason", cause.Reason)
	}
	for work := range l.works {
		f.Changed(work)
	}
	return 0
}

// readLastWords reads what a container that exits wrote last, once for a pod, and returns whether it has. The kubelet tells it in the
// status of pods that ask for that.
func (l *look) readLastWords(ctx context.Context, of *finding) bool {
	f := l.finder
	if of.container == "" || !f.TellsOutput || readsSecrets(of.pod) || endedWords(of.pod, of.container) != "" {
		return false
	}
	f.mu.Lock()
	read := len(l.lastWords) > 0 // one pod speaks for all
	f.mu.Unlock()
	if read {
		return false
	}
	words := f.readLog(ctx, of.pod, of.container)
	f.mu.Lock()
	defer f.mu.Unlock()
	l.lastWords[of.pod.UID] = words
	return words != ""
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
	lines := int64(5)
	limit := int64(maxLog)
	data, err := f.Member.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, Previous: hasRestarted(pod, container), TailLines: &lines, LimitBytes: &limit,
	}).DoRaw(ctx)
	if err != nil {
		f.Log.V(1).Info("What a container wrote could not be read", "object", pod.Namespace+"/"+pod.Name, "cause", err.Error())
		return ""
	}
	return string(data)
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

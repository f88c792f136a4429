package cause

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetflow/fleetflow/controllers/informer"
)

// warnings are the events of a namespace that warn, watched while an object in it needs them.
type warnings struct {
	events cache.SharedIndexInformer
	stop   context.CancelFunc
	// users is how many objects need them.
	users int
}

// watchPods returns the watch of the pods of an object; nil for an object that has none. The first list that is refused ends the look:
// the agent has not the right to read pods.
func (l *look) watchPods() cache.SharedIndexInformer {
	of := l.subject
	var narrow metav1.ListOptions
	switch {
	case of.Pods != nil:
		narrow.LabelSelector = of.Pods.String()
	case of.Kind == podKind:
		narrow.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String()
	default:
		return nil
	}
	pods := narrowed[*corev1.PodList]{Resource: l.finder.Member.CoreV1().Pods(of.Namespace), to: narrow, answered: l.noteRefusal}
	return newWatch(l.finder.Member, pods, &corev1.Pod{}, stripPod, func(any) { l.wake() })
}

// noteRefusal ends the watch of the pods of an object if the agent may not read them for longer than an API server needs to know the
// rights of agents. The log says so once.
func (l *look) noteRefusal(err error) {
	f := l.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Clock.Now()
	switch {
	case err == nil:
		l.refusedSince = time.Time{}
		return
	case !apierrors.IsForbidden(err) || !l.deniedAt.IsZero():
		return
	case l.refusedSince.IsZero():
		l.refusedSince = now
	}
	if now.Sub(l.refusedSince) < refusalPatience {
		return
	}
	f.denied.Do(func() {
		f.Log.Info("The agent may not read pods: why objects are not available stays unknown", "object", l.subject.Namespace+"/"+l.subject.Name,
			"cause", err.Error())
	})
	l.deniedAt = now
	close(l.refused)
	l.wake()
}

// watchWarningsLocked watches the warnings of a namespace for one object more.
func (f *Finder) watchWarningsLocked(namespace string) {
	if known, ok := f.namespaces[namespace]; ok {
		known.users++
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &warnings{stop: stop, users: 1}
	events := narrowed[*corev1.EventList]{
		Resource: f.Member.CoreV1().Events(namespace), answered: func(error) {},
		to: metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("type", corev1.EventTypeWarning).String()},
	}
	w.events = newWatch(f.Member, events, &corev1.Event{}, stripEvent, func(event any) { f.wakeConcerned(namespace, event) })
	utilruntime.Must(w.events.AddIndexers(cache.Indexers{byObject: objectOf}))
	f.namespaces[namespace] = w
	go w.events.RunWithContext(ctx)
	go func() { // a list without events is no event
		if cache.WaitFor(ctx, "", w.events.HasSyncedChecker()) {
			f.wakeAll(namespace)
		}
	}()
}

// unwatchWarningsLocked has one object less need the warnings of a namespace.
func (f *Finder) unwatchWarningsLocked(namespace string) {
	w, ok := f.namespaces[namespace]
	if !ok {
		return
	}
	if w.users--; w.users == 0 {
		w.stop()
		delete(f.namespaces, namespace)
	}
}

// byObject is the index of events by the UID of what they are about.
const byObject = "object"

func objectOf(object any) ([]string, error) {
	event, ok := object.(*corev1.Event)
	if !ok {
		return nil, nil
	}
	return []string{string(event.InvolvedObject.UID)}, nil
}

// about returns the warnings about an object and its pods, the oldest first.
func (w *warnings) about(of Subject, pods []*corev1.Pod) []warning {
	if w == nil {
		return nil
	}
	concerned := []types.UID{of.UID}
	for _, pod := range pods {
		concerned = append(concerned, pod.UID)
	}
	var said []warning
	for _, uid := range concerned {
		events, err := w.events.GetIndexer().ByIndex(byObject, string(uid))
		if err != nil {
			continue // there is no such index: there is
		}
		for _, object := range events {
			if event, ok := object.(*corev1.Event); ok {
				said = append(said, warning{about: uid, reason: event.Reason, message: event.Message, at: lastSeen(event)})
			}
		}
	}
	slices.SortStableFunc(said, func(a, b warning) int { return a.at.Compare(b.at) })
	return said
}

// lastSeen returns when an event happened last; writers of the newer API fill other fields.
func lastSeen(event *corev1.Event) time.Time {
	switch {
	case event.Series != nil:
		return event.Series.LastObservedTime.Time
	case !event.LastTimestamp.IsZero():
		return event.LastTimestamp.Time
	case !event.EventTime.IsZero():
		return event.EventTime.Time
	}
	return event.CreationTimestamp.Time
}

// wakeConcerned has those objects judged that an event is about, itself or a pod of theirs.
func (f *Finder) wakeConcerned(namespace string, object any) {
	event, ok := object.(*corev1.Event)
	if !ok {
		return
	}
	about := event.InvolvedObject
	f.mu.Lock()
	defer f.mu.Unlock()
	for uid, l := range f.looks {
		if l.warnedSince.IsZero() || l.subject.Namespace != namespace {
			continue
		}
		if uid == about.UID || l.pods != nil && about.Name != "" && l.hasPod(namespace+"/"+about.Name) {
			l.wake()
		}
	}
}

func (l *look) hasPod(key string) bool {
	_, has, err := l.pods.GetStore().GetByKey(key)
	return err == nil && has
}

// wakeAll has all objects judged that need the warnings of a namespace.
func (f *Finder) wakeAll(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.looks {
		if !l.warnedSince.IsZero() && l.subject.Namespace == namespace {
			l.wake()
		}
	}
}

// narrowed is a client of a resource that asks for a part of it.
type narrowed[L runtime.Object] struct {
	informer.Resource[L]
	to metav1.ListOptions
	// answered is called with the error of each request, or nil.
	answered func(error)
}

// List lists that part.
func (n narrowed[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	list, err := n.Resource.List(ctx, n.narrow(o))
	n.answered(err)
	return list, err
}

// Watch watches that part.
func (n narrowed[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	changes, err := n.Resource.Watch(ctx, n.narrow(o))
	n.answered(err)
	return changes, err
}

func (n narrowed[L]) narrow(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector = n.to.LabelSelector
	o.FieldSelector = n.to.FieldSelector
	return o
}

// newWatch returns an informer that calls changed after each change.
func newWatch[L runtime.Object](client any, of narrowed[L], example runtime.Object, strip cache.TransformFunc, changed func(object any),
) cache.SharedIndexInformer {
	watched := informer.Of(client, of, example, cache.Indexers{})
	// Neither fails on an informer that has not been started.
	utilruntime.Must(watched.SetTransform(strip))
	_, err := watched.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, object any) { changed(object) }, DeleteFunc: changed,
	})
	utilruntime.Must(err)
	return watched
}

// stripPod keeps of a pod what its cause is judged by: thousands of pods may fail.
func stripPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	slim := &corev1.Pod{Status: pod.Status}
	slim.ObjectMeta = metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, Labels: pod.Labels,
		OwnerReferences: pod.OwnerReferences, DeletionTimestamp: pod.DeletionTimestamp, CreationTimestamp: pod.CreationTimestamp,
	}
	slim.Spec.Volumes = pod.Spec.Volumes
	slim.Spec.Containers = stripContainers(pod.Spec.Containers)
	slim.Spec.InitContainers = stripContainers(pod.Spec.InitContainers)
	return slim, nil
}

func stripContainers(all []corev1.Container) []corev1.Container {
	slim := make([]corev1.Container, 0, len(all))
	for i := range all {
		c := &all[i]
		slim = append(slim, corev1.Container{
			Name: c.Name, EnvFrom: c.EnvFrom, Env: c.Env, Resources: c.Resources,
			ReadinessProbe: c.ReadinessProbe, LivenessProbe: c.LivenessProbe, StartupProbe: c.StartupProbe,
		})
	}
	return slim
}

func stripEvent(object any) (any, error) {
	event, ok := object.(*corev1.Event)
	if !ok {
		return object, nil
	}
	slim := &corev1.Event{
		InvolvedObject: corev1.ObjectReference{UID: event.InvolvedObject.UID, Name: event.InvolvedObject.Name}, Reason: event.Reason, Message: event.Message,
		LastTimestamp: event.LastTimestamp, EventTime: event.EventTime, Series: event.Series,
	}
	slim.ObjectMeta = metav1.ObjectMeta{
		Namespace: event.Namespace, Name: event.Name, UID: event.UID, ResourceVersion: event.ResourceVersion,
		CreationTimestamp: event.CreationTimestamp,
	}
	return slim, nil
}

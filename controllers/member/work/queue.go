package work

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// How urgent it is to look at a Work. One that is new on the hub, or was changed there, is of
// urgency 0 and goes before all that follow. A Work is in the queue once at most, with the
// highest urgency it was brought up with, so that the queue is never longer than there are Works.
const (
	// urgencyEvent is for Works of which an object has changed on the member.
	urgencyEvent = -10
	// urgencyRecheck is for Works that are looked at again without anything having happened.
	urgencyRecheck = -50
)

// dueWorks is the way into the controller's queue for all that does not come from the hub.
type dueWorks struct {
	namespace string

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	waiting map[string]int // urgency of what was added before there was a queue, by name
}

// attach connects to the controller's queue.
func (d *dueWorks) attach(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = queue
	for name, urgency := range d.waiting {
		d.addLocked(name, urgency)
	}
	d.waiting = nil
	return nil
}

// add brings up a Work.
func (d *dueWorks) add(name string, urgency int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue != nil {
		d.addLocked(name, urgency)
		return
	}
	if d.waiting == nil {
		d.waiting = map[string]int{}
	}
	if before, ok := d.waiting[name]; !ok || before < urgency {
		d.waiting[name] = urgency
	}
}

func (d *dueWorks) addLocked(name string, urgency int) {
	request := requestFor(d.namespace, name)
	if queue, ok := d.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(urgency)}, request)
		return
	}
	d.queue.Add(request)
}

func requestFor(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// noticed brings up a Work because of an event on an object.
func (r *Reconciler) noticed(work string, o object) {
	r.memories.stir(work, o)
	r.due.add(work, urgencyEvent)
}

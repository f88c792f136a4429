package work

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The priorities of Works in the queue. A Work that is new on the hub, or changed there, has
// priority 0, which is higher than these. A Work is in the queue once at most, with the highest
// priority it was enqueued with, so the queue is never longer than the list of Works.
const (
	// priorityEvent is for Works of which an object has changed on the member.
	priorityEvent = -10
	// priorityRecheck is for Works that are checked again without any event.
	priorityRecheck = -50
)

// enqueuer adds Works to the controller's queue for reasons other than events on the hub.
type enqueuer struct {
	namespace string

	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	waiting map[string]int // priority of Works that were enqueued before there was a queue, by name
}

// attachQueue connects to the controller's queue.
func (d *enqueuer) attachQueue(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queue = queue
	for name, priority := range d.waiting {
		d.enqueueLocked(name, priority)
	}
	d.waiting = nil
	return nil
}

func (d *enqueuer) enqueueWork(name string, priority int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.queue != nil {
		d.enqueueLocked(name, priority)
		return
	}
	if d.waiting == nil {
		d.waiting = map[string]int{}
	}
	if before, ok := d.waiting[name]; !ok || before < priority {
		d.waiting[name] = priority
	}
}

func (d *enqueuer) enqueueLocked(name string, priority int) {
	request := requestForWork(d.namespace, name)
	if queue, ok := d.queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, request)
		return
	}
	d.queue.Add(request)
}

func requestForWork(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// enqueueAfterEvent enqueues a Work after an event on one of its objects.
func (r *Reconciler) enqueueAfterEvent(work string, o objectRef) {
	r.memories.recordChange(work, o)
	r.enqueuer.enqueueWork(work, priorityEvent)
}

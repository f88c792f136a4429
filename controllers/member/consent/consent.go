// Package consent reads what the owner of a member asks of the fleet: to begin nothing on the cluster for a while. The owner says so in
// a ConfigMap of the cluster. The agent passes it on, and the hub decides for how long it counts.
package consent

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Keys of the ConfigMap.
const (
	UntilKey   = "until"
	MessageKey = "message"
)

// Watch knows what the owner asks. Until the ConfigMap has been read, and while the agent may not read it, that is nothing.
type Watch struct {
	// Changed is called when the owner asks for something else. It must not block.
	Changed func()

	cluster         kubernetes.Interface
	namespace, name string

	mu      sync.Mutex
	asked   *clusterv1beta1.BusyRequest
	isKnown func() bool
}

// NewWatch returns a Watch of a ConfigMap.
func NewWatch(cluster kubernetes.Interface, namespace, name string) *Watch {
	return &Watch{Changed: func() {}, cluster: cluster, namespace: namespace, name: name}
}

// Start watches the ConfigMap until the context ends.
func (w *Watch) Start(ctx context.Context) error {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()
	configMaps := w.cluster.CoreV1().ConfigMaps(w.namespace)
	_, informer := toolscache.NewInformerWithOptions(toolscache.InformerOptions{
		ObjectType: &corev1.ConfigMap{},
		ListerWatcher: toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				o.FieldSelector = only
				return configMaps.List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				o.FieldSelector = only
				return configMaps.Watch(ctx, o)
			},
		}, w.cluster),
		Handler: toolscache.ResourceEventHandlerFuncs{
			AddFunc:    w.note,
			UpdateFunc: func(_, now any) { w.note(now) },
			DeleteFunc: func(any) { w.note(nil) },
		},
	})
	w.mu.Lock()
	w.isKnown = informer.HasSynced
	w.mu.Unlock()
	go func() {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			w.Changed()
		}
	}()
	informer.RunWithContext(ctx)
	return nil
}

// Request returns what the owner asks; nil if the fleet may begin what it has to. It is not known before the cluster has said so.
func (w *Watch) Request() (asked *clusterv1beta1.BusyRequest, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked.DeepCopy(), w.isKnown != nil && w.isKnown()
}

func (w *Watch) note(object any) {
	configMap, _ := object.(*corev1.ConfigMap)
	w.mu.Lock()
	w.asked = Read(configMap)
	w.mu.Unlock()
	w.Changed()
}

// Read returns what a ConfigMap asks for; nil if there is none. What cannot be understood asks for nothing, and its message tells why.
func Read(configMap *corev1.ConfigMap) *clusterv1beta1.BusyRequest {
	if configMap == nil || configMap.DeletionTimestamp != nil {
		return nil
	}
	text, has := configMap.Data[UntilKey]
	where := configMap.Namespace + "/" + configMap.Name
	if !has {
		return wrong("ConfigMap %s of the cluster has no entry until, with a time such as 2026-12-01T06:00:00Z", where)
	}
	until, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return wrong("until of ConfigMap %s of the cluster is %q and no time such as 2026-12-01T06:00:00Z", where, text)
	}
	end := metav1.NewTime(until.UTC())
	return &clusterv1beta1.BusyRequest{
		Until: &end, Message: clusterv1beta1.CutText(configMap.Data[MessageKey], clusterv1beta1.MaxBusyMessage),
	}
}

func wrong(format string, args ...any) *clusterv1beta1.BusyRequest {
	return &clusterv1beta1.BusyRequest{Message: clusterv1beta1.CutText(fmt.Sprintf(format, args...), clusterv1beta1.MaxBusyMessage)}
}

package kubefleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
)

// fieldManager is of the writes of which no field remains: those of the recorded managers take its place.
const fieldManager = "kubefleet-recording"

// Load creates recorded objects, with status and managed fields. API servers give each object a UID of their own, so every
// UID in the objects is replaced by the one that its object has got. Generations begin at 1, and what a status says of them
// is changed accordingly. Creation times are those of now.
func Load(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	l, err := newLoader(config)
	if err != nil {
		return err
	}
	return l.load(ctx, objects)
}

// Restore creates recorded objects as a backup restores them: what they say of UIDs is as recorded, and so of objects that are
// gone.
func Restore(ctx context.Context, config *rest.Config, objects []*unstructured.Unstructured) error {
	l, err := newLoader(config)
	if err != nil {
		return err
	}
	l.keepsUIDs = true
	return l.load(ctx, objects)
}

func (l *loader) load(ctx context.Context, objects []*unstructured.Unstructured) error {
	created, err := l.createAll(ctx, objects)
	if err != nil {
		return err
	}
	for _, pair := range created {
		if err := l.writeStatus(ctx, pair.recorded, pair.stored); err != nil {
			return err
		}
		if err := l.writeManagers(ctx, pair.recorded, pair.stored); err != nil {
			return err
		}
	}
	return nil
}

// admissionLag is how long admission policies may take to know what was written before, and of which kinds there are definitions.
var admissionLag = wait.Backoff{Steps: 300, Duration: 100 * time.Millisecond}

// loader creates objects on one API server.
type loader struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// uids has the UID that an object has got for the recorded one.
	uids map[string]string
	// keepsUIDs says that they are not replaced.
	keepsUIDs bool
}

// loaded is a recorded object and what was stored of it.
type loaded struct{ recorded, stored *unstructured.Unstructured }

func newLoader(config *rest.Config) (*loader, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(kinds)
	if err != nil {
		return nil, fmt.Errorf("asking which kinds there are: %w", err)
	}
	return &loader{client: client, mapper: restmapper.NewDiscoveryRESTMapper(groups), uids: map[string]string{}}, nil
}

// createAll creates objects without their status, each after those whose UIDs it has.
func (l *loader) createAll(ctx context.Context, objects []*unstructured.Unstructured) ([]loaded, error) {
	var all []loaded
	waiting := slices.Clone(objects)
	slices.SortStableFunc(waiting, func(a, b *unstructured.Unstructured) int { return rankKind(a) - rankKind(b) })
	for len(waiting) > 0 {
		var later []*unstructured.Unstructured
		for _, object := range waiting {
			bare := withoutStatus(object)
			if l.needs(bare, waiting) {
				later = append(later, object)
				continue
			}
			stored, err := l.create(ctx, bare)
			if err != nil {
				return nil, err
			}
			l.uids[string(object.GetUID())] = string(stored.GetUID())
			all = append(all, loaded{object, stored})
			// Admission looks at it: a run that has ended lets another one of its placement begin.
			if object.GetKind() == "ClusterStagedUpdateRun" {
				if err := l.writeStatus(ctx, object, stored); err != nil {
					return nil, err
				}
			}
		}
		if len(later) == len(waiting) {
			return nil, fmt.Errorf("%s %s and %d more refer to one another", later[0].GetKind(), later[0].GetName(), len(later)-1)
		}
		waiting = later
	}
	return all, nil
}

// rankKind has namespaces created before what is in them.
func rankKind(object *unstructured.Unstructured) int {
	if object.GetKind() == "Namespace" {
		return 0
	}
	return 1
}

// needs reports whether an object has the UID of one that is yet to be created, or is in such a namespace.
func (l *loader) needs(object *unstructured.Unstructured, waiting []*unstructured.Unstructured) bool {
	text := encode(object)
	for _, other := range waiting {
		if _, created := l.uids[string(other.GetUID())]; !created && other.GetKind() == "Namespace" && other.GetName() == object.GetNamespace() {
			return true
		}
		uid := string(other.GetUID())
		if _, created := l.uids[uid]; !l.keepsUIDs && !created && uid != "" && strings.Contains(text, uid) {
			return true
		}
	}
	return false
}

func encode(object *unstructured.Unstructured) string {
	text, err := object.MarshalJSON()
	if err != nil {
		panic(err) // what was read from JSON can be written as JSON
	}
	return string(text)
}

// withoutStatus returns an object as a client creates it.
func withoutStatus(object *unstructured.Unstructured) *unstructured.Unstructured {
	bare := object.DeepCopy()
	delete(bare.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		unstructured.RemoveNestedField(bare.Object, "metadata", field)
	}
	return bare
}

// withNewUIDs returns an object with the UIDs that the others have got.
func (l *loader) withNewUIDs(object *unstructured.Unstructured) *unstructured.Unstructured {
	if l.keepsUIDs {
		return object.DeepCopy()
	}
	var pairs []string
	for _, old := range slices.Sorted(maps.Keys(l.uids)) {
		if old != "" {
			pairs = append(pairs, old, l.uids[old])
		}
	}
	replaced := &unstructured.Unstructured{}
	if err := replaced.UnmarshalJSON([]byte(strings.NewReplacer(pairs...).Replace(encode(object)))); err != nil {
		panic(err) // UIDs for UIDs
	}
	return replaced
}

func (l *loader) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := l.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("looking for the resource of %s: %w", kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return l.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return l.client.Resource(mapping.Resource), nil
}

func (l *loader) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := l.ensureNamespace(ctx, object.GetNamespace()); err != nil {
		return nil, err
	}
	resource, err := l.resource(object)
	if err != nil {
		return nil, err
	}
	var stored *unstructured.Unstructured
	isRefused := func(err error) bool { // policies say any of these
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsServiceUnavailable(err)
	}
	err = retry.OnError(admissionLag, isRefused, func() error {
		stored, err = resource.Create(ctx, l.withNewUIDs(object), metav1.CreateOptions{FieldManager: fieldManager})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("creating %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return stored, nil
}

// ensureNamespace creates a namespace that was not recorded.
func (l *loader) ensureNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	namespace.SetName(name)
	_, err := l.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, namespace,
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// writeStatus gives a stored object the recorded status.
func (l *loader) writeStatus(ctx context.Context, object, stored *unstructured.Unstructured) error {
	status, found, _ := unstructured.NestedMap(l.withNewUIDs(object).Object, "status")
	if !found || len(status) == 0 || object.GetKind() == "Namespace" {
		return nil
	}
	shiftGenerations(status, object.GetGeneration()-stored.GetGeneration())
	wanted := stored.DeepCopy()
	wanted.Object["status"] = status
	resource, err := l.resource(object)
	if err != nil {
		return err
	}
	written, err := resource.UpdateStatus(ctx, wanted, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("writing the status of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	stored.Object = written.Object
	return nil
}

// shiftGenerations takes from every observed generation how much lower the generation is than the recorded one.
func shiftGenerations(value any, by int64) {
	switch value := value.(type) {
	case map[string]any:
		if observed, ok := value["observedGeneration"].(int64); ok && observed > by {
			value["observedGeneration"] = observed - by
		}
		for _, field := range value {
			shiftGenerations(field, by)
		}
	case []any:
		for _, item := range value {
			shiftGenerations(item, by)
		}
	}
}

// writeManagers gives a stored object the recorded managed fields, if there are any.
func (l *loader) writeManagers(ctx context.Context, object, stored *unstructured.Unstructured) error {
	managers := l.withNewUIDs(object).GetManagedFields()
	if len(managers) == 0 {
		return nil
	}
	wanted := stored.DeepCopy()
	wanted.SetManagedFields(managers)
	resource, err := l.resource(object)
	if err != nil {
		return err
	}
	if _, err := resource.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("writing the managed fields of %s %s/%s: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

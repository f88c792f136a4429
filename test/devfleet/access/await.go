package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// retryEvery is how soon a failed request is repeated: an API server may be starting.
const retryEvery = 200 * time.Millisecond

// Object is a pointer to a kind that the clients know.
type Object[T any] interface {
	*T
	client.Object
}

// UnmetError says that a wait ended before its objects were as wanted.
type UnmetError struct {
	// What names what was waited for, such as "Deployment shop/web".
	What string
	// Finding is what was wrong when last looked.
	Finding string
	// Waited is for how long.
	Waited time.Duration
	// Cause is why the wait ended: a deadline, or an interruption.
	Cause error
}

// Error tells the finding.
func (e *UnmetError) Error() string {
	return fmt.Sprintf("%s: %s (waited %.1f s)", e.What, e.Finding, e.Waited.Seconds())
}

// Unwrap returns why the wait ended.
func (e *UnmetError) Unwrap() error { return e.Cause }

// Await watches one object until missing returns "" for it; any other answer says what is still missing and becomes
// part of the error when the context ends first. The object is nil while there is none.
func Await[T any, P Object[T]](ctx context.Context, c client.WithWatch, key client.ObjectKey, missing func(P) string) (P, error) {
	var latest P
	what, err := nameOf(c, P(new(T)), key.String())
	if err != nil {
		return nil, err
	}
	err = await(ctx, c, what, func(objects []P) string {
		latest = nil
		if i := slices.IndexFunc(objects, func(o P) bool { return client.ObjectKeyFromObject(o) == key }); i >= 0 {
			latest = objects[i]
		}
		return missing(latest)
	}, &client.ListOptions{Namespace: key.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", key.Name)})
	return latest, err
}

// AwaitAll watches all objects of a kind that the options select, until missing returns "" for them, ordered by
// namespace and name.
func AwaitAll[T any, P Object[T]](ctx context.Context, c client.WithWatch, missing func([]P) string,
	options ...client.ListOption) ([]P, error) {
	var latest []P
	what, err := nameOf(c, P(new(T)), "")
	if err != nil {
		return nil, err
	}
	err = await(ctx, c, what, func(objects []P) string {
		latest = objects
		return missing(objects)
	}, options...)
	return latest, err
}

// AwaitGone watches until there is no object of the name.
func AwaitGone[T any, P Object[T]](ctx context.Context, c client.WithWatch, key client.ObjectKey) error {
	_, err := Await(ctx, c, key, func(object P) string {
		switch {
		case object == nil:
			return ""
		case object.GetDeletionTimestamp().IsZero():
			return "still there, and not being deleted"
		}
		return "being deleted, held by finalizers " + strings.Join(object.GetFinalizers(), ", ")
	})
	return err
}

// Watch calls see with an object now and after each of its changes, nil while there is none, until see returns true or
// an error, or the context ends.
func Watch[T any, P Object[T]](ctx context.Context, c client.WithWatch, key client.ObjectKey, see func(P) (bool, error)) error {
	var failure error
	_, err := Await(ctx, c, key, func(object P) string {
		done, err := see(object)
		failure = err
		if done || err != nil {
			return ""
		}
		return "not as wanted yet"
	})
	if failure != nil {
		return failure
	}
	return err
}

// await lists and watches; whatever breaks the watch makes it list again.
func await[T any, P Object[T]](ctx context.Context, c client.WithWatch, what string, missing func([]P) string,
	options ...client.ListOption) error {
	started := time.Now()
	w := &watching[P]{objects: map[client.ObjectKey]P{}, missing: missing, finding: "not looked at"}
	for {
		met, err := follow[T](ctx, c, w, options...)
		if met {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			if permanent(err) {
				return fmt.Errorf("watching %s: %w", what, err)
			}
			w.finding = err.Error()
			select {
			case <-ctx.Done():
			case <-time.After(retryEvery):
			}
		}
		if ctx.Err() != nil {
			return &UnmetError{What: what, Finding: w.finding, Waited: time.Since(started), Cause: context.Cause(ctx)}
		}
	}
}

// watching is what is known of the objects being waited for.
type watching[P client.Object] struct {
	objects map[client.ObjectKey]P
	missing func([]P) string
	finding string
}

// met asks whether the objects are as wanted now.
func (w *watching[P]) met() bool {
	objects := make([]P, 0, len(w.objects))
	for _, object := range w.objects {
		objects = append(objects, object)
	}
	slices.SortFunc(objects, func(a, b P) int {
		return strings.Compare(client.ObjectKeyFromObject(a).String(), client.ObjectKeyFromObject(b).String())
	})
	w.finding = w.missing(objects)
	return w.finding == ""
}

// follow lists once and then follows the changes until the condition is met or the watch ends.
func follow[T any, P Object[T]](ctx context.Context, c client.WithWatch, w *watching[P], options ...client.ListOption) (bool, error) {
	list, err := listOf(c, P(new(T)))
	if err != nil {
		return false, err
	}
	if err := c.List(ctx, list, options...); err != nil {
		return false, err
	}
	clear(w.objects)
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if object, ok := item.(P); ok {
			w.objects[client.ObjectKeyFromObject(object)] = object
		}
		return nil
	})
	if err != nil || w.met() {
		return err == nil, err
	}
	from := &client.ListOptions{}
	from.ApplyOptions(options)
	from.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}
	changes, err := c.Watch(ctx, list, from)
	if err != nil {
		return false, err
	}
	defer changes.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, nil
		case change, open := <-changes.ResultChan():
			if !open {
				return false, nil
			}
			if err := w.take(change); err != nil || w.met() {
				return err == nil, err
			}
		}
	}
}

// take remembers what a change brings.
func (w *watching[P]) take(change watch.Event) error {
	if change.Type == watch.Error {
		return apierrors.FromObject(change.Object)
	}
	object, ok := change.Object.(P)
	switch {
	case !ok:
	case change.Type == watch.Deleted:
		delete(w.objects, client.ObjectKeyFromObject(object))
	default:
		w.objects[client.ObjectKeyFromObject(object)] = object
	}
	return nil
}

// permanent reports whether repeating a request would not help.
func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) || meta.IsNoMatchError(err)
}

func listOf(c client.Client, object client.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return nil, fmt.Errorf("finding the kind: %w", err)
	}
	made, err := c.Scheme().New(schema.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind + "List"})
	if err != nil {
		return nil, fmt.Errorf("finding the list of a kind: %w", err)
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return nil, errors.New("not a list: " + gvk.Kind + "List")
	}
	return list, nil
}

// nameOf returns how people name an object: "Deployment shop/web".
func nameOf(c client.Client, object client.Object, key string) (string, error) {
	gvk, err := apiutil.GVKForObject(object, c.Scheme())
	if err != nil {
		return "", fmt.Errorf("finding the kind: %w", err)
	}
	if key == "" {
		return gvk.Kind + " objects", nil
	}
	return gvk.Kind + " " + strings.TrimPrefix(key, "/"), nil
}

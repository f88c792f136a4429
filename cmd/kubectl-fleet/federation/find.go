package federation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/manifest"
)

// Finder finds objects on the hub, and kinds by the words users have for them.
type Finder struct {
	Client    client.WithWatch
	Mapper    meta.RESTMapper
	Namespace string
}

// KindOf finds what a word such as ns, clusterroles or gateways.v1.example.com means.
func (f *Finder) KindOf(word string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if gvk, err := f.Mapper.KindFor(*full); err == nil {
			return f.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := f.Mapper.KindFor(short.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub has no type %q: kubectl api-resources lists what there is", word)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for type %q: %w", word, err)
	}
	return f.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// Named finds the objects of arguments such as "ns web" or "clusterrole/reader".
func (f *Finder) Named(ctx context.Context, args []string) ([]Object, error) {
	if !strings.Contains(args[0], "/") {
		if len(args) < 2 {
			return nil, cli.Usagef("kubectl fleet federate needs a name after the type, as in: kubectl fleet federate %s web", args[0])
		}
		word := args[0]
		args = slices.Clone(args[1:])
		for i, name := range args {
			if strings.Contains(name, "/") {
				return nil, fmt.Errorf("%q is a type and a name, after type %q: name all objects in one way", name, word)
			}
			args[i] = word + "/" + name
		}
	}
	var found []Object
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		if word == "" || name == "" {
			return nil, fmt.Errorf("%q names no object: use TYPE/NAME, such as namespace/web", arg)
		}
		object, err := f.findOne(ctx, word, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, object) {
			found = append(found, object)
		}
	}
	return found, nil
}

// findOne finds an object, which has to be there.
func (f *Finder) findOne(ctx context.Context, word, name string) (Object, error) {
	mapping, err := f.KindOf(word)
	if err != nil {
		return Object{}, err
	}
	object := Object{GroupVersionKind: mapping.GroupVersionKind, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.Namespace = f.Namespace
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := f.Client.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, there); err != nil {
		return object, fmt.Errorf("reading %s: %w", object, err)
	}
	if object.Namespace != "" && !snapshot.Candidate(object.GroupKind(), there) {
		return object, fmt.Errorf("%s is never placed: it is being deleted, or Kubernetes or the fleet makes it itself", object)
	}
	return object, nil
}

// InFile reads objects from a file; they need not be on the hub.
func (f *Finder) InFile(path string, stdin io.Reader) ([]Object, error) {
	manifests, err := manifest.Read(stdin, []string{path}, false)
	if err != nil {
		return nil, err
	}
	var found []Object
	for _, one := range manifests {
		object, err := f.readManifest(one.Object)
		if err != nil {
			return nil, fmt.Errorf("reading objects from %s: %w", path, err)
		}
		found = append(found, object)
	}
	return found, nil
}

// readManifest makes an object of a manifest.
func (f *Finder) readManifest(document *unstructured.Unstructured) (Object, error) {
	object := Object{GroupVersionKind: document.GroupVersionKind(), Name: document.GetName(), Namespace: document.GetNamespace()}
	if object.Kind == "" || object.Version == "" || object.Name == "" {
		return object, errors.New("an object lacks apiVersion, kind or metadata.name")
	}
	mapping, err := f.Mapper.RESTMapping(object.GroupKind(), object.Version)
	switch {
	case meta.IsNoMatchError(err): // what it says of its namespace has to do
		return object, nil
	case err != nil:
		return object, fmt.Errorf("looking for kind %s: %w", object.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		object.Namespace = ""
	case object.Namespace == "":
		object.Namespace = f.Namespace
	}
	return object, nil
}

// Holds reports whether something of a kind that would be placed is in a namespace.
func Holds(ctx context.Context, c client.WithWatch, namespace string, kind snapshot.Kind) (bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	switch err := c.List(ctx, list, client.InNamespace(namespace)); {
	case hub.Unserved(err): // it has gone since it was named
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for %s in namespace %s: %w", kind.Resource, namespace, err)
	}
	for i := range list.Items {
		if snapshot.Candidate(kind.GroupKind(), &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

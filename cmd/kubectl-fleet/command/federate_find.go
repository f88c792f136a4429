package command

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
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/federation"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// finder finds objects on the hub, and kinds by the words users have for them.
type finder struct {
	client    client.WithWatch
	mapper    meta.RESTMapper
	namespace string
}

func (o *federateOptions) finder() (*finder, error) {
	c, err := o.factory.Client()
	if err != nil {
		return nil, err
	}
	mapper, err := o.factory.Mapper()
	if err != nil {
		return nil, fmt.Errorf("asking the hub for the kinds it serves: %w", err)
	}
	namespace, _, err := o.factory.Namespace()
	return &finder{client: c, mapper: mapper, namespace: namespace}, err
}

// kind finds what a word such as ns, clusterroles or gateways.v1.example.com means.
func (f *finder) kind(word string) (*meta.RESTMapping, error) {
	full, short := schema.ParseResourceArg(strings.ToLower(word))
	if full != nil {
		if gvk, err := f.mapper.KindFor(*full); err == nil {
			return f.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	gvk, err := f.mapper.KindFor(short.WithVersion(""))
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("the hub has no type %q: kubectl api-resources lists what there is", word)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for type %q: %w", word, err)
	}
	return f.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// named finds the objects of arguments such as "ns web" or "clusterrole/reader".
func (f *finder) named(ctx context.Context, args []string) ([]federation.Object, error) {
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
	var found []federation.Object
	for _, arg := range args {
		word, name, _ := strings.Cut(arg, "/")
		if word == "" || name == "" {
			return nil, fmt.Errorf("%q names no object: use TYPE/NAME, such as namespace/web", arg)
		}
		object, err := f.one(ctx, word, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, object) {
			found = append(found, object)
		}
	}
	return found, nil
}

// one finds an object, which has to be there.
func (f *finder) one(ctx context.Context, word, name string) (federation.Object, error) {
	mapping, err := f.kind(word)
	if err != nil {
		return federation.Object{}, err
	}
	object := federation.Object{GroupVersionKind: mapping.GroupVersionKind, Name: name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		object.Namespace = f.namespace
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := f.client.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: name}, there); err != nil {
		return object, fmt.Errorf("reading %s: %w", object, err)
	}
	if object.Namespace != "" && !snapshot.Candidate(object.GroupKind(), there) {
		return object, fmt.Errorf("%s is never placed: it is being deleted, or Kubernetes or the fleet makes it itself", object)
	}
	return object, nil
}

// inFile reads objects from a file; they need not be on the hub.
func (f *finder) inFile(path string, stdin io.Reader) ([]federation.Object, error) {
	manifests, err := readManifests(stdin, []string{path}, false)
	if err != nil {
		return nil, err
	}
	var found []federation.Object
	for _, one := range manifests {
		object, err := f.read(one.object)
		if err != nil {
			return nil, fmt.Errorf("reading objects from %s: %w", path, err)
		}
		found = append(found, object)
	}
	return found, nil
}

// read makes an object of a manifest.
func (f *finder) read(document *unstructured.Unstructured) (federation.Object, error) {
	object := federation.Object{GroupVersionKind: document.GroupVersionKind(), Name: document.GetName(), Namespace: document.GetNamespace()}
	if object.Kind == "" || object.Version == "" || object.Name == "" {
		return object, errors.New("an object lacks apiVersion, kind or metadata.name")
	}
	mapping, err := f.mapper.RESTMapping(object.GroupKind(), object.Version)
	switch {
	case meta.IsNoMatchError(err): // what it says of its namespace has to do
		return object, nil
	case err != nil:
		return object, fmt.Errorf("looking for kind %s: %w", object.Kind, err)
	case mapping.Scope.Name() != meta.RESTScopeNameNamespace:
		object.Namespace = ""
	case object.Namespace == "":
		object.Namespace = f.namespace
	}
	return object, nil
}

// inside returns the kinds that are in a namespace, except for those that are skipped.
func (o *federateOptions) inside(ctx context.Context, c client.WithWatch, objects []federation.Object) ([]schema.GroupVersionKind, error) {
	if len(objects) != 1 || objects[0].GroupKind() != snapshot.NamespaceKind {
		return nil, cli.Usagef("--skip-api-resources is about what is in a namespace: name one namespace and nothing else")
	}
	groups, lists, err := o.factory.Discover()
	if err != nil {
		return nil, err
	}
	kinds, idle := federation.Skip(snapshot.NewCatalog(groups, lists, nil, snapshot.Filter{}).Contents(), o.skip)
	for _, entry := range idle {
		cli.Printf(o.streams.ErrOut, "Note: --skip-api-resources %s skips nothing: no kind or API group that could be placed is called so\n", entry)
	}
	found := []schema.GroupVersionKind{}
	for _, kind := range kinds {
		any, err := holds(ctx, c, objects[0].Name, kind)
		if err != nil {
			return nil, err
		}
		if any {
			found = append(found, kind.GroupVersionKind)
		}
	}
	return found, nil
}

// holds reports whether something of a kind that would be placed is in a namespace.
func holds(ctx context.Context, c client.WithWatch, namespace string, kind snapshot.Kind) (bool, error) {
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

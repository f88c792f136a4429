package work

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
)

// contentPage is how many objects a list returns at once.
const contentPage = 100

// contentLister lists what a cluster has in a Namespace, or of a kind that a CustomResourceDefinition defines.
type contentLister struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
}

// visit calls look with every object in a Namespace, or of a defined kind, until it returns false.
func (c *contentLister) visit(
	ctx context.Context, live *unstructured.Unstructured, look func(schema.GroupKind, *metav1.PartialObjectMetadata) (bool, error),
) error {
	if live.GroupVersionKind().GroupKind() == definitionKind {
		return c.visitDefined(ctx, live, look)
	}
	lists, err := discovery.ServerPreferredNamespacedResources(c.discovery)
	if err != nil {
		return fmt.Errorf("finding the kinds of the cluster: %w", err)
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return fmt.Errorf("reading the kinds of the cluster: %w", err)
		}
		for _, resource := range list.APIResources {
			kind := schema.GroupKind{Group: version.Group, Kind: resource.Kind}
			// What cannot be deleted is no object; Events and Leases are traces of what runs.
			if !slices.Contains(resource.Verbs, "list") || !slices.Contains(resource.Verbs, "delete") || kind.Kind == "Event" ||
				(kind == schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}) {
				continue
			}
			again, err := c.visitPages(ctx, c.metadata.Resource(version.WithResource(resource.Name)).Namespace(live.GetName()), kind, look)
			if errors.Is(err, errNotServed) {
				continue // it has gone since the kinds were asked for, or is one of an API that only says that it serves it
			}
			if !again || err != nil {
				return err
			}
		}
	}
	return nil
}

// visitDefined looks at the objects of a kind that is defined, in a version that is served. A definition that was never established,
// as another has its names, has none.
func (c *contentLister) visitDefined(
	ctx context.Context, live *unstructured.Unstructured, look func(schema.GroupKind, *metav1.PartialObjectMetadata) (bool, error),
) error {
	if !isEstablished(live) {
		return nil
	}
	group, _, _ := unstructured.NestedString(live.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(live.Object, "spec", "names", "plural")
	kind, _, _ := unstructured.NestedString(live.Object, "spec", "names", "kind")
	versions, _, _ := unstructured.NestedSlice(live.Object, "spec", "versions")
	for _, item := range versions {
		version, _ := item.(map[string]any)
		name, _ := version["name"].(string)
		if version["served"] != true || name == "" {
			continue
		}
		gvr := schema.GroupVersionResource{Group: group, Version: name, Resource: plural}
		_, err := c.visitPages(ctx, c.metadata.Resource(gvr), schema.GroupKind{Group: group, Kind: kind}, look)
		return err
	}
	return nil
}

// isEstablished reports whether a definition is served, or was.
func isEstablished(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(item any) bool {
		c, _ := item.(map[string]any)
		return c["type"] == "Established" && c["status"] == "True"
	})
}

// errNotServed says that the API server does not serve a kind, or does not yet: one of several API servers may have objects of it.
var errNotServed = errors.New("the API server does not serve it")

// visitPages looks at the objects of one list. It returns false if it is to end.
func (c *contentLister) visitPages(
	ctx context.Context, objects metadata.ResourceInterface, kind schema.GroupKind,
	look func(schema.GroupKind, *metav1.PartialObjectMetadata) (bool, error),
) (bool, error) {
	options := metav1.ListOptions{Limit: contentPage}
	for {
		page, err := objects.List(ctx, options)
		switch {
		case apierrors.IsNotFound(err):
			return false, fmt.Errorf("listing %s: %w", kind, errNotServed)
		case apierrors.IsMethodNotSupported(err):
			return true, nil
		case apierrors.IsResourceExpired(err) && options.Continue != "":
			options.Continue = "" // from the beginning: an object that is seen twice does no harm
			continue
		case err != nil:
			return false, fmt.Errorf("listing %s: %w", kind, err)
		}
		for i := range page.Items {
			if again, err := look(kind, &page.Items[i]); !again || err != nil {
				return false, err
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return true, nil
		}
	}
}

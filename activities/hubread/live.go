package hubread

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// Existing reads an object into the empty one that has its name, and returns it; nil if there is none. An error calls it what it
// is to people.
func Existing[T client.Object](ctx context.Context, live client.Reader, empty T, what string) (found T, err error) {
	key := client.ObjectKeyFromObject(empty)
	err = live.Get(ctx, key, empty)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return found, fmt.Errorf("reading %s %s: %w", what, strings.TrimPrefix(key.String(), "/"), err)
	}
	return empty, nil
}

// Placement reads a placement; nil if there is none of that name.
func Placement(ctx context.Context, live client.Reader, scope placementv1beta1.Scope,
	name string) (placementv1beta1.PlacementObject, error) {
	return Existing(ctx, live, scope.NewPlacement(name), "placement")
}

// CurrentPlacement reads the placement that a workflow works for. It is nil if the
// placement is gone, is being deleted, or was replaced by another one of its name:
// each of these ends the work for it.
func CurrentPlacement(ctx context.Context, live client.Reader, ref wf.Ref) (placementv1beta1.PlacementObject, error) {
	placement, err := Placement(ctx, live, placementv1beta1.Scope{Namespace: ref.Namespace}, ref.Name)
	if err != nil || placement == nil || string(placement.GetUID()) != ref.UID || rules.IsDeleting(placement) {
		return nil, err
	}
	return placement, nil
}

// NotOlderThan asks for a list as of a revision of the hub's store or later. The API
// server answers it from memory as soon as its memory is that new, while a list
// without a revision makes it ask the store for the latest write each time. An empty
// revision asks for the latest write.
func NotOlderThan(revision string) metav1.ListOptions {
	if revision == "" {
		return metav1.ListOptions{}
	}
	return metav1.ListOptions{ResourceVersion: revision, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
}

// SinceRevision is NotOlderThan for one list of a client: the client writes the other
// options of the list into it, so it must not be used for a second one.
func SinceRevision(revision string) *client.ListOptions {
	options := NotOlderThan(revision)
	return &client.ListOptions{Raw: &options}
}

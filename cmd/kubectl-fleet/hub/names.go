package hub

import (
	"context"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Names returns the names of all objects of a kind.
func (r Reader) Names(ctx context.Context, kind Kind) ([]string, error) {
	switch kind {
	case KindMember:
		return namesOf(ctx, r.Members, func(m clusterv1beta1.MemberCluster) string { return m.Name })
	case KindPlacement:
		return namesOf(ctx, r.Placements, func(p Placement) string { return p.Name })
	case KindRun:
		return namesOf(ctx, r.Runs, func(run Run) string { return run.Name })
	}
	return nil, nil
}

func namesOf[T any](ctx context.Context, read func(context.Context) ([]T, error), nameOf func(T) string) ([]string, error) {
	objects, err := read(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range objects {
		names = append(names, nameOf(object))
	}
	return names, nil
}

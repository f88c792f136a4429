package hub

import (
	"context"
)

// Names returns the names of all objects of a kind.
func (r Reader) Names(ctx context.Context, kind Kind) ([]string, error) {
	var names []string
	switch kind {
	case KindMember:
		members, err := r.Members(ctx)
		if err != nil {
			return nil, err
		}
		for i := range members {
			names = append(names, members[i].Name)
		}
	case KindPlacement:
		placements, err := r.Placements(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range placements {
			names = append(names, p.Name)
		}
	case KindRun:
		runs, err := r.Runs(ctx)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			names = append(names, run.Name)
		}
	}
	return names, nil
}

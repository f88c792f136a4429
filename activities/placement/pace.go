package placement

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	actcontract "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Pace says how soon a snapshot may follow on another one. The zero value takes up
// every change at once.
type Pace struct {
	// MinimumInterval is the least time between two snapshots.
	MinimumInterval time.Duration
	// Collection is how long changes are collected, from the first one on, before a
	// snapshot is made of them.
	Collection time.Duration
}

// due is when other content than that of the latest snapshot is to become a snapshot;
// zero if it may now. When the content was first seen to be another is kept on the
// latest snapshot, so that no restart begins to count anew.
func (s *Selector) due(ctx context.Context, latest *snapshotGroup, hash string, pace Pace) (time.Time, error) {
	if latest == nil || pace == (Pace{}) || !latest.complete() {
		return time.Time{}, nil
	}
	if latest.hash() == hash {
		return time.Time{}, s.note(ctx, latest.master, "")
	}
	now := s.Clock.Now()
	seen, err := time.Parse(time.RFC3339, latest.master.Annotations[placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation])
	if err != nil || seen.After(now) {
		seen = now
		if err := s.note(ctx, latest.master, now.UTC().Format(time.RFC3339Nano)); err != nil {
			return time.Time{}, err
		}
	}
	due := seen.Add(pace.Collection)
	if earliest := latest.master.CreationTimestamp.Add(pace.MinimumInterval); earliest.After(due) {
		due = earliest
	}
	if !due.After(now) {
		return time.Time{}, nil
	}
	return due.UTC(), nil
}

// note keeps on the latest snapshot when its content ceased to be what is selected; an
// empty text stands for: it still is.
func (s *Selector) note(ctx context.Context, master *metav1.PartialObjectMetadata, when string) error {
	key := placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation
	if master.Annotations[key] == when {
		return nil
	}
	patched := master.DeepCopy()
	patched.SetGroupVersionKind(placementv1beta1.GroupVersion.WithKind("ClusterResourceSnapshot"))
	base := patched.DeepCopy()
	patched.Annotations[key] = when
	if when == "" {
		delete(patched.Annotations, key)
	}
	if err := s.Client.Patch(ctx, patched, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating snapshot %s: %w", master.Name, err)
	}
	return nil
}

// wait concludes that the latest snapshot stays until a time, though something else is
// selected by now. Without inputs the verdict is that of no selection: whoever comes to
// watch the placement, after a restart for example, has it selected again.
func (s *Selector) wait(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series, due time.Time) (actcontract.SelectResult, error) {
	latest := existing.latest()
	if err := errors.Join(s.label(ctx, latest.master, placementv1beta1.LabelValueTrue), s.unlabel(ctx, existing, latest.index)); err != nil {
		return actcontract.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.Generation, Snapshot: latest.master.Name, Index: latest.index, Hash: latest.hash(), Due: due,
	}
	err := s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.stored(ctx, placement, strconv.Itoa(latest.index))
	}, &verdict)
	if err != nil {
		return actcontract.SelectResult{}, err
	}
	return s.conclude(ctx, placement, verdict, false)
}

package selection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// perPart is the least time between two snapshots for every part but the first that
// they have: a rollout has to come between them, and etcd keeps each for a while.
const perPart = 400 * time.Millisecond

// Pace says how soon a snapshot may follow on another one. The zero value takes up
// every change at once, unless it is one of a very large selection.
type Pace struct {
	// MinimumInterval is the least time between two snapshots.
	MinimumInterval time.Duration
	// Collection is how long changes are collected, from the first one on, before a
	// snapshot is made of them.
	Collection time.Duration
}

// interval is the least time until another snapshot may follow on this one.
func (p Pace) interval(latest *snapshotGroup) time.Duration {
	return max(p.MinimumInterval, time.Duration(len(latest.parts))*perPart)
}

// due is when other content than that of the latest snapshot is to become a snapshot;
// zero if it may now. When the content was first seen to be another is kept on the
// latest snapshot, so that no restart begins to count anew.
func (s *Selector) due(ctx context.Context, latest *snapshotGroup, hash string, atOnce bool) (time.Time, error) {
	if atOnce || latest == nil || !latest.complete() {
		return time.Time{}, nil
	}
	if latest.hash() == hash {
		return time.Time{}, s.note(ctx, latest.master, "")
	}
	now := s.Clock.Now()
	due := latest.master.CreationTimestamp.Add(s.Pace.interval(latest))
	if s.Pace.Collection > 0 {
		seen, err := s.seen(ctx, latest.master, now)
		if err != nil {
			return time.Time{}, err
		}
		if collected := seen.Add(s.Pace.Collection); collected.After(due) {
			due = collected
		}
	}
	if !due.After(now) {
		return time.Time{}, nil
	}
	return due.UTC(), nil
}

// seen is when the content of the latest snapshot ceased to be what is selected, as it
// was noted, or now.
func (s *Selector) seen(ctx context.Context, master *metav1.PartialObjectMetadata, now time.Time) (time.Time, error) {
	noted := master.Annotations[placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation]
	seen, err := time.Parse(time.RFC3339, noted)
	if err == nil && !seen.After(now) {
		return seen, nil
	}
	return now, s.note(ctx, master, now.UTC().Format(time.RFC3339Nano))
}

// pending is when what is kept back already is due; zero if nothing is. Until then
// there is no need to look at what is selected.
func (s *Selector) pending(placement *placementv1beta1.ClusterResourcePlacement, existing *series) time.Time {
	latest := existing.latest()
	before, err := snapshot.DecodeVerdict(placement.Annotations[placementv1beta1.SelectionVerdictAnnotation])
	if err != nil || latest == nil || !latest.complete() || before.Generation != placement.Generation ||
		before.Snapshot != latest.master.Name || !before.Due.After(s.Clock.Now()) {
		return time.Time{}
	}
	return before.Due
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
func (s *Selector) wait(ctx context.Context, placement *placementv1beta1.ClusterResourcePlacement, existing *series, due time.Time) (act.SelectResult, error) {
	latest := existing.latest()
	if err := errors.Join(s.label(ctx, latest.master, placementv1beta1.LabelValueTrue), s.unlabel(ctx, existing, latest.index)); err != nil {
		return act.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.Generation, Snapshot: latest.master.Name, Index: latest.index, Hash: latest.hash(), Due: due,
	}
	if before, err := snapshot.DecodeVerdict(placement.Annotations[placementv1beta1.SelectionVerdictAnnotation]); err == nil {
		verdict.Note = before.Note
	}
	err := s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.stored(ctx, placement, strconv.Itoa(latest.index))
	}, &verdict)
	if err != nil {
		return act.SelectResult{}, err
	}
	return s.conclude(ctx, placement, verdict, false)
}

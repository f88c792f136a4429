package selection

import (
	"context"
	"errors"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/snapshot"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// intervalPerPart is the least time between two snapshots for each of their parts but
// the first: a rollout has to come between them, and etcd keeps each for a while.
const intervalPerPart = 400 * time.Millisecond

// Pace says how soon a snapshot may follow another one. With the zero value every change
// is taken up at once, except for a very large selection.
type Pace struct {
	// MinimumInterval is the least time between two snapshots.
	MinimumInterval time.Duration
	// Collection is how long changes are collected, from the first one on, before a
	// snapshot is made of them.
	Collection time.Duration
}

// intervalAfter is the least time until another snapshot may follow this one.
func (p Pace) intervalAfter(latest *snapshotGroup) time.Duration {
	return max(p.MinimumInterval, time.Duration(len(latest.parts))*intervalPerPart)
}

// dueOf is when selected content may become a snapshot; zero if it may now. When the
// content was first seen to differ is noted on the latest snapshot, so that a restart of
// the process does not begin to count anew.
func (s *Selector) dueOf(ctx context.Context, latest *snapshotGroup, hash string, atOnce bool) (time.Time, error) {
	if atOnce || latest == nil || !latest.isComplete() {
		return time.Time{}, nil
	}
	if latest.contentHash() == hash {
		return time.Time{}, noteChangeSeen(ctx, s.Client, latest.master, "")
	}
	now := s.Clock.Now()
	due := latest.master.CreationTimestamp.Add(s.Pace.intervalAfter(latest))
	if s.Pace.Collection > 0 {
		seen, err := s.changeSeenAt(ctx, latest.master, now)
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

// changeSeenAt is when the selected content was first seen to differ from that of the
// latest snapshot: as it was noted, or now, which it notes.
func (s *Selector) changeSeenAt(ctx context.Context, master *metav1.PartialObjectMetadata, now time.Time) (time.Time, error) {
	noted := master.Annotations[placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation]
	seen, err := time.Parse(time.RFC3339, noted)
	if err == nil && !seen.After(now) {
		return seen, nil
	}
	return now, noteChangeSeen(ctx, s.Client, master, now.UTC().Format(time.RFC3339Nano))
}

// recordedDue is the due time of the last verdict, as long as it is to come. Until then
// there is no need to read what is selected.
func (s *Selector) recordedDue(placement placementv1beta1.PlacementObject, existing *series) time.Time {
	latest, last := existing.latestGroup(), lastVerdict(placement)
	if latest == nil || !latest.isComplete() || last.Generation != placement.GetGeneration() ||
		last.Snapshot != latest.master.Name || !last.Due.After(s.Clock.Now()) {
		return time.Time{}
	}
	return last.Due
}

// keepLatest records that the latest snapshot stays until a time, though something else
// is selected by now. A verdict without inputs is that of no selection: a watcher that
// sees it, for example after a restart, has the placement selected again.
func (s *Selector) keepLatest(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series,
	due time.Time) (act.SelectResult, error) {
	latest, writer := existing.latestGroup(), s.snapshotWriter(placement)
	err := errors.Join(writer.labelLatest(ctx, latest.master, placementv1beta1.LabelValueTrue),
		writer.unlabelOthers(ctx, existing, latest.index))
	if err != nil {
		return act.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Snapshot: latest.master.Name, Index: latest.index, Hash: latest.contentHash(), Due: due,
		Note: lastVerdict(placement).Note,
	}
	err = s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.readSnapshotIdentifiers(ctx, placement, strconv.Itoa(latest.index))
	}, &verdict)
	if err != nil {
		return act.SelectResult{}, err
	}
	return s.recordVerdict(ctx, placement, verdict, false)
}

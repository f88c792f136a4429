package selection

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/snapshot"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
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
	// BytesPerSecond is how many bytes a second one placement may have written, in its
	// snapshots and in the Works that are made of them; 0 is no bound.
	BytesPerSecond int64
}

// BytesPerSecondFlag is the flag of the hub agent for it. Messages name it.
const BytesPerSecondFlag = "resource-snapshot-bytes-per-second"

// maxBytesInterval keeps the time that a bound in bytes asks for within reason.
const maxBytesInterval = 24 * time.Hour

// intervalAfter returns the least time until another snapshot may follow this one.
func (p Pace) intervalAfter(latest *snapshotGroup) time.Duration {
	return max(p.MinimumInterval, time.Duration(len(latest.parts))*intervalPerPart)
}

// intervalFor returns the least time between the latest snapshot and one of which this much is
// written. Both are stored, so a restart of the process changes nothing.
func (p Pace) intervalFor(written int64) time.Duration {
	if p.BytesPerSecond <= 0 {
		return 0
	}
	seconds := float64(written) / float64(p.BytesPerSecond)
	return min(maxBytesInterval, time.Duration(seconds*float64(time.Second)))
}

// delay is why selected content is not a snapshot yet; the zero value says that it may
// become one now.
type delay struct {
	// until when.
	until time.Time
	// excess says in words that the bound in bytes asks for more time than the rest of the
	// pace; empty if it does not.
	excess string
}

// delayOf returns how long selected content has to wait until it may become a snapshot. When
// the content was first seen to differ is noted on the latest snapshot, so that a restart
// of the process does not begin to count anew.
func (s *Selector) delayOf(ctx context.Context, placement placementv1beta1.PlacementObject, latest *snapshotGroup,
	content snapshot.Content, atOnce bool) (delay, error) {
	if atOnce || latest == nil || !latest.isComplete() {
		return delay{}, nil
	}
	if latest.contentHash() == content.Hash {
		return delay{}, noteChangeSeen(ctx, s.Client, latest.master, "")
	}
	now := s.Clock.Now()
	due := latest.master.CreationTimestamp.Add(s.Pace.intervalAfter(latest))
	if s.Pace.Collection > 0 {
		seen, err := changeSeenAt(ctx, s.Client, latest.master, now)
		if err != nil {
			return delay{}, err
		}
		if collected := seen.Add(s.Pace.Collection); collected.After(due) {
			due = collected
		}
	}
	wait := delay{until: due.UTC()}
	clusters := clustersWrittenTo(placement)
	written := content.Size() * int64(1+clusters)
	if bounded := latest.master.CreationTimestamp.Add(s.Pace.intervalFor(written)); bounded.After(due) {
		wait = delay{until: bounded.UTC(), excess: s.Pace.describeExcess(content.Size(), written, clusters)}
	}
	if !wait.until.After(now) {
		return delay{}, nil
	}
	return wait, nil
}

// clustersWrittenTo returns how many clusters get Works made of each snapshot of a placement. An
// update run, which a user starts, decides that for one with an external strategy.
func clustersWrittenTo(placement placementv1beta1.PlacementObject) int {
	if rules.IsExternal(placement) {
		return 0
	}
	clusters := 0
	for i := range placement.GetPlacementStatus().PerClusterPlacementStatuses {
		if placement.GetPlacementStatus().PerClusterPlacementStatuses[i].ClusterName != "" {
			clusters++
		}
	}
	return clusters
}

// describeExcess returns why the bound in bytes asks for time.
func (p Pace) describeExcess(size, written int64, clusters int) string {
	return fmt.Sprintf("a snapshot of %s and Works of it for %d cluster(s) are %s to write; the hub agent's flag --%s lets a placement have %s a second, "+
		"so they follow the latest snapshot after %s",
		snapshot.FormatBytes(size), clusters, snapshot.FormatBytes(written), BytesPerSecondFlag, snapshot.FormatBytes(p.BytesPerSecond),
		p.intervalFor(written).Round(time.Second))
}

// changeSeenAt returns when the selected content was first seen to differ from that of the
// latest snapshot: as it was noted, or now, which it notes.
func changeSeenAt(ctx context.Context, c client.Client, master *metav1.PartialObjectMetadata, now time.Time) (time.Time, error) {
	noted := master.Annotations[placementv1beta1.NextResourceSnapshotCandidateDetectionTimeAnnotation]
	seen, err := time.Parse(time.RFC3339, noted)
	if err == nil && !seen.After(now) {
		return seen, nil
	}
	return now, noteChangeSeen(ctx, c, master, now.UTC().Format(time.RFC3339Nano))
}

// recordedDelay is that of the last verdict, as long as it lasts. Until then there is no
// need to read what is selected.
func (s *Selector) recordedDelay(placement placementv1beta1.PlacementObject, existing *series) delay {
	latest := existing.latestGroup()
	last := lastVerdict(placement)
	if latest == nil || !latest.isComplete() || last.Generation != placement.GetGeneration() ||
		last.Snapshot != latest.master.Name || !last.Due.After(s.Clock.Now()) {
		return delay{}
	}
	return delay{until: last.Due, excess: last.Excess}
}

// keepLatest records that the latest snapshot stays until a time, though something else
// is selected by now. A verdict without inputs is that of no selection: a watcher that
// sees it, for example after a restart, has the placement selected again. What is said of the selection is carried over.
func (s *Selector) keepLatest(ctx context.Context, placement placementv1beta1.PlacementObject, existing *series,
	wait delay, said snapshot.Verdict) (wf.SelectResult, error) {
	latest := existing.latestGroup()
	writer := s.snapshotWriter(placement)
	err := errors.Join(writer.labelLatest(ctx, latest.master, placementv1beta1.LabelValueTrue),
		writer.unlabelOthers(ctx, existing, latest.index))
	if err != nil {
		return wf.SelectResult{}, err
	}
	verdict := snapshot.Verdict{
		Generation: placement.GetGeneration(), Snapshot: latest.master.Name, Index: latest.index,
		Due: wait.until, Excess: wait.excess, Note: said.Note, Held: said.Held, Demand: said.Demand,
		Inputs: said.Inputs, Selectors: said.Selectors, Lost: said.Lost,
		Dependencies: said.Dependencies, MissingDependencies: said.MissingDependencies,
		Objects: said.Objects, Rivals: said.Rivals, LeftOut: said.LeftOut, TooLarge: said.TooLarge,
	}
	err = s.pickOverrides(ctx, placement, func() ([]placementv1beta1.ResourceIdentifier, error) {
		return s.readSnapshotIdentifiers(ctx, placement, strconv.Itoa(latest.index))
	}, &verdict)
	if err != nil {
		return wf.SelectResult{}, err
	}
	return s.recordVerdict(ctx, placement, verdict, false)
}

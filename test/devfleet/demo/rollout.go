package demo

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// rollout is one run to play.
type rollout struct {
	n int
	// index is what the run asks for, empty for the latest; wantIndex is what it has to take.
	index     string
	wantIndex int
	// value is what the ConfigMap has to have on the members afterwards.
	value   string
	channel channel
	// whileSoaking and whileWaiting disturb the fleet at a point of the run.
	whileSoaking, whileWaiting func(context.Context) error
}

func (r rollout) name() string { return runName(r.n) }

func (r rollout) object() string { return "ClusterStagedUpdateRun " + r.name() }

// ledgers are the writes seen during a run: snapshots on the bindings, values on each member.
type ledgers struct {
	bindings *ledger
	members  map[string]*ledger
}

// rollOut plays a run from its creation to the checks of what it has done.
func (s *story) rollOut(ctx context.Context, r rollout) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := s.recordWrites(watching)
	if err != nil {
		return err
	}
	if err := s.Hub.Create(ctx, updateRun(r.name(), r.index)); err != nil {
		return fmt.Errorf("creating run %s: %w", r.name(), err)
	}
	asked := "the latest snapshot"
	if r.index != "" {
		asked = "snapshot " + r.index
	}
	s.screen.did("created %s: %s of %s by %s", r.object(), asked, placementName, strategyName)
	s.screen.output(s.workflowURL(wf.UpdateRunID("", r.name())))
	f := s.follow(watching, r.name())
	run, err := s.direct(ctx, f, r)
	if err != nil {
		return err
	}
	return s.checkRun(ctx, r, run, seen)
}

// direct takes a run through its gates.
func (s *story) direct(ctx context.Context, f *follower, r rollout) (*placementv1beta1.ClusterStagedUpdateRun, error) {
	if _, err := f.until(ctx, waitLimit, "updates staging and soaks", soaking); err != nil {
		return nil, err
	}
	if r.whileSoaking != nil {
		if err := r.whileSoaking(ctx); err != nil {
			return nil, err
		}
	}
	if _, err := f.until(ctx, s.soak+waitLimit, "updates canary and asks for an approval", asksApproval); err != nil {
		return nil, err
	}
	if r.whileWaiting != nil {
		if err := r.whileWaiting(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.approve(ctx, f, r); err != nil {
		return nil, err
	}
	return f.until(ctx, waitLimit, "succeeds once it is approved", succeeded)
}

// recordWrites begins to record what the run will write to bindings and members.
func (s *story) recordWrites(ctx context.Context) (ledgers, error) {
	seen := ledgers{members: map[string]*ledger{}}
	var err error
	seen.bindings, err = record(ctx, s.Hub, func(b *placementv1beta1.ClusterResourceBinding) (string, string) {
		return b.Spec.TargetCluster, b.Spec.ResourceSnapshotName
	}, ofPlacement)
	if err != nil {
		return seen, err
	}
	only := &client.ListOptions{Namespace: namespaceName, FieldSelector: fields.OneTermEqualSelector("metadata.name", configMapName)}
	for _, member := range s.Fleet.MemberNames() {
		seen.members[member], err = record(ctx, s.Members[member], func(cm *corev1.ConfigMap) (string, string) {
			return member, cm.Data[configKey]
		}, only)
		if err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// checkRun checks what a run that succeeded says, and what it did.
func (s *story) checkRun(ctx context.Context, r rollout, run *placementv1beta1.ClusterStagedUpdateRun, seen ledgers) error {
	finding := ""
	if got := run.Status.ResourceSnapshotIndexUsed; got != strconv.Itoa(r.wantIndex) {
		finding = "it took snapshot " + got
	}
	if err := s.holds(ctx, r.object(), fmt.Sprintf("the run took snapshot %d", r.wantIndex), finding); err != nil {
		return err
	}
	if err := s.checkWrites(ctx, r, run, seen); err != nil {
		return err
	}
	if err := s.membersHave(ctx, r); err != nil {
		return err
	}
	_, err := becomes(ctx, s, s.Hub, placementKey, "the placement is AVAILABLE", notAvailable)
	return err
}

// checkWrites compares what was written with what the stages allow.
func (s *story) checkWrites(ctx context.Context, r rollout, run *placementv1beta1.ClusterStagedUpdateRun, seen ledgers) error {
	limited, cancel := context.WithTimeout(ctx, waitLimit)
	defer cancel()
	order := updateOrder(s.Fleet.Members)
	snapshot := placementv1beta1.ResourceSnapshotName(placementName, r.wantIndex, 0)
	entries := seen.bindings.atLeast(limited, len(order))
	statement := "each cluster was written to once, in the order " + strings.Join(order, ", ")
	if err := s.holds(ctx, r.object(), statement, misplaced(entries, order, snapshot)); err != nil {
		return err
	}
	for _, member := range order {
		if finding := misplaced(seen.members[member].atLeast(limited, 1), []string{member}, r.value); finding != "" {
			return s.failure(ctx, r.object(), fmt.Sprintf("%s changed once, to %s=%s", member, configKey, r.value), finding, nil)
		}
	}
	statement = fmt.Sprintf("canary was not touched before staging had soaked for %s", s.soak)
	return s.holds(ctx, r.object(), statement, soakedTooShort(run, entries, s.soak))
}

// soakedTooShort says by how much a soak was cut short: the time between the instant the run has stored and the first
// write to a later stage. It is pure.
func soakedTooShort(run *placementv1beta1.ClusterStagedUpdateRun, entries []entry, soak time.Duration) string {
	var since time.Time
	var later []string
	for i := range run.Status.StagesStatus {
		stage := &run.Status.StagesStatus[i]
		if stage.StageName == stagingStage {
			since = updaterun.WaitsSince(stage, updaterun.StageConfig(run, i), stagetask.After)
			continue
		}
		later = append(later, updaterun.ClusterNames(stage)...)
	}
	first := firstWrite(entries, later)
	switch {
	case since.IsZero():
		return "the run has not stored when the soak began"
	case first.Sub(since) < soak:
		return fmt.Sprintf("it soaked for %s: from %s to %s", seconds(first.Sub(since)), since.Local().Format(clockFormat),
			first.Format(clockFormat))
	}
	return ""
}

// notAvailable returns what is missing until the placement is available everywhere. It is pure.
func notAvailable(crp *placementv1beta1.ClusterResourcePlacement) string {
	return notTrue(crp, availableType)
}

// notTrue returns what is missing until a condition is true of the placement as it is now.
func notTrue(crp *placementv1beta1.ClusterResourcePlacement, kind string) string {
	if crp == nil {
		return "missing"
	}
	c := meta.FindStatusCondition(crp.Status.Conditions, kind)
	switch {
	case c == nil:
		return "no condition " + kind
	case c.Status != "True" || c.ObservedGeneration != crp.Generation:
		return fmt.Sprintf("%s is %s for generation %d: %s: %s", c.Type, c.Status, c.ObservedGeneration, c.Reason, c.Message)
	}
	return ""
}

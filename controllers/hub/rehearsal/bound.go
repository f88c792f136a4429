package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// How many rehearsals may be under way at once, and how many that have ended are kept: each question has all that would be placed, and
// each is asked of every cluster. Those that a run waits for count, and are neither refused nor deleted for their number.
const (
	maxOfPlacement  = 5
	maxOnHub        = 50
	keptOfPlacement = 20
	keptOfNamespace = 200
)

// refuseIfMany ends a rehearsal that has not begun if too many others are under way. It returns after what time to look again if the
// rehearsal does not begin now.
func (r *Reconciler) refuseIfMany(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject, p *progress) (time.Duration, error) {
	if p.status.StartTime != nil {
		return 0, nil
	}
	why, err := r.whyNoRoom(ctx, rehearsal)
	if err != nil || why == "" {
		return 0, err
	}
	if r.clock.Now().Before(rehearsal.GetCreationTimestamp().Add(settleEnds)) {
		return settle, nil
	}
	return keepQuestions, r.refuse(ctx, rehearsal, p, why)
}

// whyNoRoom returns why a rehearsal cannot begin, because too many that are older are under way; nothing if it can. That one has ended
// may take a moment to be known.
func (r *Reconciler) whyNoRoom(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject) (why string, err error) {
	all, err := r.listRehearsals(ctx, &fleetflowv1alpha1.ClusterRehearsalList{}, &fleetflowv1alpha1.RehearsalList{})
	if err != nil {
		return "", err
	}
	ofPlacement := 0
	onHub := 0
	for _, other := range all {
		if fleetflowv1alpha1.IsRehearsalOver(other) || !other.GetDeletionTimestamp().IsZero() || !isOlder(other, rehearsal) {
			continue
		}
		onHub++
		if isOfSamePlacement(other, rehearsal) {
			ofPlacement++
		}
	}
	switch {
	case ofPlacement >= maxOfPlacement:
		why = fmt.Sprintf("%d other rehearsals of %s are under way, and no more may be", ofPlacement, rehearsal.GetRehearsalSpec().PlacementName)
	case onHub >= maxOnHub:
		why = fmt.Sprintf("%d other rehearsals are under way on this hub, and no more may be", onHub)
	default:
		return "", nil
	}
	needed, err := r.isNeeded(ctx, rehearsal)
	if err != nil || needed {
		return "", err
	}
	return why + ": create it once one of them has ended", nil
}

// prune deletes rehearsals that have ended before another one, if more of them are there than are kept.
func (r *Reconciler) prune(ctx context.Context, ended fleetflowv1alpha1.RehearsalObject) error {
	var list client.ObjectList = &fleetflowv1alpha1.RehearsalList{}
	if ended.GetNamespace() == "" {
		list = &fleetflowv1alpha1.ClusterRehearsalList{}
	}
	others, err := r.listRehearsals(ctx, list)
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(other fleetflowv1alpha1.RehearsalObject) bool {
		return other.GetUID() == ended.GetUID() || other.GetNamespace() != ended.GetNamespace() ||
			!fleetflowv1alpha1.IsRehearsalOver(other) || !other.GetDeletionTimestamp().IsZero()
	})
	slices.SortFunc(others, func(a, b fleetflowv1alpha1.RehearsalObject) int {
		return cmp.Or(endOf(b).Compare(endOf(a)), cmp.Compare(a.GetName(), b.GetName()))
	})
	ofPlacement := 1
	inNamespace := 1
	for _, other := range others {
		if isOfSamePlacement(other, ended) {
			ofPlacement++
		}
		inNamespace++
		if inNamespace <= keptOfNamespace && (!isOfSamePlacement(other, ended) || ofPlacement <= keptOfPlacement) {
			continue
		}
		if err := r.deleteUnlessNeeded(ctx, other); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) deleteUnlessNeeded(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject) error {
	needed, err := r.isNeeded(ctx, rehearsal)
	if err != nil || needed {
		return err
	}
	err = r.client.Delete(ctx, rehearsal.DeepCopyObject().(client.Object), client.Preconditions{UID: new(rehearsal.GetUID())})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting rehearsal %s, one of too many: %w", rehearsal.GetName(), err)
	}
	return nil
}

// isNeeded reports whether the rehearsal is what a stage of a run waits for or has passed by, or the next one that it will ask: the status
// of the run says so, which no user writes.
func (r *Reconciler) isNeeded(ctx context.Context, rehearsal fleetflowv1alpha1.RehearsalObject) (bool, error) {
	name := rehearsal.GetRehearsalSpec().UpdateRunName
	if name == "" {
		return false, nil
	}
	scope := placementv1beta1.ScopeOf(rehearsal)
	run := scope.NewUpdateRun(name)
	if err := r.live.Get(ctx, scope.Key(name), run); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("reading the run of rehearsal %s: %w", rehearsal.GetName(), err)
	}
	if !metav1.IsControlledBy(rehearsal, run) || rules.IsRunOver(run) || rules.IsDeleting(run) {
		return false, nil
	}
	stages := run.GetUpdateRunStatus().StagesStatus
	for i := range stages {
		if !updaterun.StageOver(&stages[i]) && asks(&stages[i], name, rehearsal.GetName()) {
			return true, nil
		}
	}
	return false, nil
}

// asks reports whether a rehearsal has the name of the one that a stage has asked, or of the next.
func asks(stage *placementv1beta1.StageUpdatingStatus, run, name string) bool {
	for i := range stage.BeforeStageTaskStatus {
		asked := stage.BeforeStageTaskStatus[i].Rehearsal
		if asked != nil && (name == asked.Name || name == fleetflowv1alpha1.RehearsalName(run, stage.StageName, fmt.Sprint(asked.Attempt+1))) {
			return true
		}
	}
	return false
}

// listRehearsals lists rehearsals, as the cache knows them. They must not be changed.
func (r *Reconciler) listRehearsals(ctx context.Context, lists ...client.ObjectList) ([]fleetflowv1alpha1.RehearsalObject, error) {
	var all []fleetflowv1alpha1.RehearsalObject
	for _, list := range lists {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing rehearsals: %w", err)
		}
		switch list := list.(type) {
		case *fleetflowv1alpha1.ClusterRehearsalList:
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
		case *fleetflowv1alpha1.RehearsalList:
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all, nil
}

func isOfSamePlacement(a, b fleetflowv1alpha1.RehearsalObject) bool {
	return a.GetNamespace() == b.GetNamespace() && a.GetRehearsalSpec().PlacementName == b.GetRehearsalSpec().PlacementName
}

// isOlder reports whether a rehearsal was created before another, of those of the same second by name.
func isOlder(a, b fleetflowv1alpha1.RehearsalObject) bool {
	return cmp.Or(a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time), cmp.Compare(a.GetNamespace(), b.GetNamespace()),
		cmp.Compare(a.GetName(), b.GetName())) < 0
}

func endOf(rehearsal fleetflowv1alpha1.RehearsalObject) time.Time {
	if end := rehearsal.GetRehearsalStatus().CompletionTime; end != nil {
		return end.Time
	}
	return rehearsal.GetCreationTimestamp().Time
}

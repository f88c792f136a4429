package worksync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/envelope"
	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// attempts bounds how often a write is tried again after another writer was
// faster; each try begins with a live read.
const attempts = 5

// HeldError says that a Work of the wanted name still belongs to something
// else, or is on its way out. It goes away by itself; try again when it has.
type HeldError struct {
	// Work that is in the way, as namespace/name.
	Work string
	// Why it cannot be written.
	Why string
}

// Error returns which Work is in the way and why.
func (e *HeldError) Error() string { return fmt.Sprintf("work %s %s", e.Work, e.Why) }

// Syncer writes the Works of bindings.
type Syncer struct {
	client    client.Client
	live      client.Reader
	clock     clock.PassiveClock
	snapshots *snapshotLoader
	overrides *overrider
}

// EnvelopeRules tells what the hub lets envelopes hold, as of now.
type EnvelopeRules func(context.Context) (envelope.Rules, error)

// NewSyncer makes a Syncer that reads Works from the client's cache and reads
// snapshots, and whatever the cache may not know yet, from live.
func NewSyncer(cached client.Client, live client.Reader, clk clock.PassiveClock, envelopes EnvelopeRules) *Syncer {
	return &Syncer{client: cached, live: live, clock: clk, snapshots: newSnapshotLoader(cached, live, envelopes),
		overrides: newOverrider(cached, live)}
}

// Sync brings the Works of a binding to its revision. It writes nothing if they
// are there already, or if a later generation of the binding has written them.
// Works the binding no longer needs are removed by a later call, after the member
// has applied the others: their objects may have moved there. A binding that names
// no snapshot or is being deleted needs nothing. A *workmodel.InvalidError says that
// envelopes in the snapshot cannot be unpacked; all other Works are as they should be.
// A *workmodel.OverrideError says that a rule of an override cannot be carried out on the
// cluster: the objects that it names stay as they were, or nothing was written if it names none.
func (s *Syncer) Sync(ctx context.Context, binding placementv1beta1.BindingObject) error {
	if binding.GetBindingSpec().ResourceSnapshotName == "" || !binding.GetDeletionTimestamp().IsZero() {
		return nil
	}
	existing, err := s.Of(ctx, binding)
	if err != nil {
		return err
	}
	state := workmodel.StateOf(binding, existing)
	if isSettled(state) && !workmodel.IsAnyUnsigned(binding, existing) {
		return s.removeLeftovers(ctx, binding, existing)
	}
	content, err := s.contentFor(ctx, binding)
	if err != nil {
		return err
	}
	wanted, err := s.generate(ctx, binding, content, false)
	if err != nil {
		return err
	}
	if content.HeldBack() != nil && !allUpToDate(wanted, existing) {
		if wanted, err = s.generate(ctx, binding, content, true); err != nil {
			return err
		}
	}
	keepEnvelopeNames(binding, wanted, existing)
	if err := s.writeAll(ctx, binding, wanted, existing); err != nil {
		return err
	}
	if state.HeldBack {
		err = s.removeLeftovers(ctx, binding, existing)
	}
	return errors.Join(content.HeldBack(), content.Invalid(), err)
}

// isSettled reports whether the Works are there and are not to be looked at again for what could not be overridden.
func isSettled(state workmodel.ClusterState) bool { return state.Synced && !state.HeldBack }

// allUpToDate reports whether no Work has to be written.
func allUpToDate(wanted, existing []placementv1beta1.Work) bool {
	return !slices.ContainsFunc(wanted, func(want placementv1beta1.Work) bool {
		return !slices.ContainsFunc(existing, func(have placementv1beta1.Work) bool {
			return have.Name == want.Name && stateOfWork(&want, &have) == upToDate
		})
	})
}

// addFromPlacement lets Works say how, and what, of the status the placement wants reported as of now, its rank, and how
// objects are removed. If the
// placement changes its mind, or the cache does not know it yet, the hub's controller for
// reports makes up for it.
func (s *Syncer) addFromPlacement(ctx context.Context, binding placementv1beta1.BindingObject, wanted []placementv1beta1.Work) error {
	scope := placementv1beta1.ScopeOf(binding)
	name := binding.GetLabels()[placementv1beta1.ParentPlacementLabel]
	placement := scope.NewPlacement(name)
	if err := s.client.Get(ctx, scope.Key(name), placement, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading placement %s%s: %w", scope, name, err)
	}
	for i := range wanted {
		wanted[i].Spec.ReportBackStrategy = workmodel.ReportBack(placement)
		wanted[i].Spec.ReportState = rules.StatePathsOf(placement)
		workmodel.AnnotateRank(&wanted[i], placement)
		workmodel.AnnotatePruning(&wanted[i], placement)
	}
	return nil
}

// Of lists the Works that were made for a binding, as the cache knows them:
// without their manifests. Those of an earlier binding of its name are among
// them; workmodel.Owns tells them apart.
func (s *Syncer) Of(ctx context.Context, binding placementv1beta1.BindingObject) ([]placementv1beta1.Work, error) {
	var list placementv1beta1.WorkList
	if err := s.client.List(ctx, &list, append(ofBinding(binding), hubread.NearBinding(binding.GetName()))...); err != nil {
		return nil, fmt.Errorf("listing the works of binding %s: %w", binding.GetName(), err)
	}
	return list.Items, nil
}

func ofBinding(binding placementv1beta1.BindingObject) []client.ListOption {
	labels := client.MatchingLabels{placementv1beta1.ParentBindingLabel: binding.GetName()}
	if namespace := binding.GetNamespace(); namespace != "" {
		labels[placementv1beta1.ParentNamespaceLabel] = namespace
	}
	return []client.ListOption{client.InNamespace(placementv1beta1.MemberNamespace(binding.GetBindingSpec().TargetCluster)), labels}
}

// writeAll writes the Works that are new before it changes any that is there: what
// moves to another Work is then never in none.
func (s *Syncer) writeAll(ctx context.Context, binding placementv1beta1.BindingObject, wanted, existing []placementv1beta1.Work) error {
	have := make(map[string]*placementv1beta1.Work, len(existing))
	for i := range existing {
		have[existing[i].Name] = &existing[i]
	}
	var first, then []*placementv1beta1.Work
	for i := range wanted {
		if holdsNothing(&wanted[i], have[wanted[i].Name]) {
			first = append(first, &wanted[i])
		} else {
			then = append(then, &wanted[i])
		}
	}
	if err := s.writeEach(ctx, binding, first, have); err != nil {
		return err
	}
	return s.writeEach(ctx, binding, then, have)
}

// holdsNothing reports whether a Work has yet to be made the binding's.
func holdsNothing(want, have *placementv1beta1.Work) bool {
	if have == nil {
		return true
	}
	is := stateOfWork(want, have)
	return is == leaving || is == foreign
}

// writeEach writes Works, several at a time.
func (s *Syncer) writeEach(ctx context.Context, binding placementv1beta1.BindingObject, wanted []*placementv1beta1.Work,
	have map[string]*placementv1beta1.Work) error {
	var group errgroup.Group
	group.SetLimit(parallelParts)
	failures := make([]error, len(wanted))
	for i, want := range wanted {
		group.Go(func() error {
			failures[i] = s.writeWork(ctx, binding, want, have[want.Name])
			return nil
		})
	}
	_ = group.Wait() // every failure is kept in its place
	return errors.Join(failures...)
}

// writeWork creates or replaces one Work. have is what the cache knows of it; once
// that turns out to be out of date, it is read live.
func (s *Syncer) writeWork(ctx context.Context, binding placementv1beta1.BindingObject, want, have *placementv1beta1.Work) error {
	carryTrace(ctx, want)
	var lost error
	for range attempts {
		want.Annotations[workmodel.RevisionTimeAnnotation] = s.clock.Now().UTC().Format(timeFormat)
		again, err := s.tryWrite(ctx, binding, want, have)
		if !again {
			return wrapWriteError(want, err)
		}
		lost = err
		before := have
		if have, err = s.readLiveWork(ctx, want); err != nil {
			return err
		}
		if lost != nil && before != nil && have != nil && before.ResourceVersion == have.ResourceVersion {
			break // no other write came first: an admission policy that refuses the write answers as a lost race does
		}
	}
	if lost == nil {
		lost = errFaster
	}
	return wrapWriteError(want, lost)
}

// errFaster says that a Work was written by others again and again.
var errFaster = fmt.Errorf("other writers were faster %d times", attempts)

// wrapWriteError says of an error which Work could not be written; nil stays nil.
func wrapWriteError(work *placementv1beta1.Work, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("writing work %s/%s: %w", work.Namespace, work.Name, err)
}

// tryWrite makes one attempt and says whether to look again live.
func (s *Syncer) tryWrite(ctx context.Context, binding placementv1beta1.BindingObject, want,
	have *placementv1beta1.Work) (again bool, err error) {
	if have == nil {
		err := s.client.Create(ctx, want.DeepCopy())
		return apierrors.IsAlreadyExists(err), ignoreExists(err)
	}
	switch stateOfWork(want, have) {
	case upToDate, newer:
		return false, nil
	case leaving:
		return false, &HeldError{Work: want.Namespace + "/" + want.Name, Why: "is being deleted"}
	case unsigned:
		return s.signWork(ctx, want, have)
	case foreign:
		return s.takeOver(ctx, binding, want)
	case outdated:
		workmodel.CarryVersion(want, have)
	}
	patch, err := replacementPatch(want, have)
	if err != nil {
		return false, err
	}
	err = s.client.Patch(ctx, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace, Name: want.Name}}, patch)
	return lostRace(err), err
}

// workState of an existing Work of the wanted name.
type workState int

const (
	upToDate workState = iota // it is what is wanted
	outdated                  // it is the binding's, of another revision
	newer                     // it was written for a later generation of the binding
	leaving                   // it is being deleted
	foreign                   // it was written for another binding
	unsigned                  // another author has written it for the binding
)

func stateOfWork(want, have *placementv1beta1.Work) workState {
	switch {
	case !have.DeletionTimestamp.IsZero():
		return leaving
	case !rules.IsSigned(have) && sameParent(want, have):
		return unsigned
	case have.Annotations[placementv1beta1.BindingUIDAnnotation] != want.Annotations[placementv1beta1.BindingUIDAnnotation]:
		return foreign
	case sameContent(want, have):
		return upToDate
	case generationOf(have) > generationOf(want):
		return newer
	}
	return outdated
}

// sameParent reports whether two Works name the same binding by their labels.
func sameParent(a, b *placementv1beta1.Work) bool {
	return a.Labels[placementv1beta1.ParentBindingLabel] == b.Labels[placementv1beta1.ParentBindingLabel] &&
		a.Labels[placementv1beta1.ParentNamespaceLabel] == b.Labels[placementv1beta1.ParentNamespaceLabel]
}

// sameContent compares by what the Work says it was made of: the cache does not
// have its manifests.
func sameContent(want, have *placementv1beta1.Work) bool {
	for _, key := range []string{
		placementv1beta1.RevisionAnnotation,
		placementv1beta1.WorkCountAnnotation,
		placementv1beta1.ParentResourceSnapshotNameAnnotation,
		workmodel.HeldBackAnnotation,
		workmodel.AssignmentsAnnotation,
	} {
		if want.Annotations[key] != have.Annotations[key] {
			return false
		}
	}
	for key, value := range want.Labels {
		if have.Labels[key] != value {
			return false
		}
	}
	return true
}

func generationOf(work *placementv1beta1.Work) int64 {
	generation, err := strconv.ParseInt(work.Annotations[placementv1beta1.BindingGenerationAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return generation
}

func (s *Syncer) readLiveWork(ctx context.Context, want *placementv1beta1.Work) (*placementv1beta1.Work, error) {
	return hubread.Existing(ctx, s.live, &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: want.Namespace,
		Name: want.Name}}, "work")
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// lostRace reports whether a patch failed because what it tested is no longer so.
// The API server answers a failed JSON patch test with 422.
func lostRace(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err)
}

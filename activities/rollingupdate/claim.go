package rollingupdate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/bindingwrite"
	act "github.com/fleetflow/fleetflow/activities/contract"
	"github.com/fleetflow/fleetflow/activities/fence"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

// claim is what a rollout is about to do, stored on the placement before it is done. The
// history has it as well; but a history can be lost while an attempt that it started is
// still at work. Whoever comes next reads the claim and counts what that attempt may yet
// write as written, until a write of its own makes sure that it cannot.
type claim struct {
	// Epoch grows by one with every claim.
	Epoch    int64  `json:"epoch"`
	Revision string `json:"revision,omitempty"`
	// Clusters are those of the batch, each with the beginning of the uid of its binding.
	Clusters map[string]string `json:"clusters,omitempty"`
	// Evictions that are to be executed, by name.
	Evictions map[string]begun `json:"evictions,omitempty"`
}

// begun is an eviction that is to be executed.
type begun struct {
	UID string `json:"uid"`
	// Binding is the uid of the binding to delete.
	Binding string          `json:"binding"`
	Verdict rollout.Verdict `json:"verdict"`
}

// uidLength is how much of a uid is kept: enough to tell two bindings of one name.
const uidLength = 8

// claimOn reads the claim on a placement. One that cannot be read is none.
func claimOn(placement *placementv1beta1.ClusterResourcePlacement) claim {
	var c claim
	if json.Unmarshal([]byte(placement.Annotations[placementv1beta1.RolloutClaimAnnotation]), &c) != nil {
		return claim{}
	}
	return c
}

// pends says whether what was claimed for a binding may still be written. A claim is good
// for one write to each binding, which leaves the claim's epoch on it.
func (c claim) pends(b *placementv1beta1.ClusterResourceBinding) bool {
	uid, ok := c.Clusters[b.Spec.TargetCluster]
	return ok && uid == shortUID(string(b.UID)) && b.DeletionTimestamp.IsZero() &&
		b.Annotations[placementv1beta1.RolloutEpochAnnotation] != c.epoch()
}

func (c claim) epoch() string { return strconv.FormatInt(c.Epoch, 10) }

func shortUID(uid string) string { return uid[:min(uidLength, len(uid))] }

// claimBatch stores the claim for the batch, unless an earlier attempt has. It says
// whether the batch may be written: not if somebody else has claimed since it was decided.
func (a *advanceCall) claimBatch(ctx context.Context) (bool, error) {
	old := a.claim
	next := claim{
		Epoch: a.in.Epoch, Revision: a.in.Snapshot, Clusters: map[string]string{}, Evictions: map[string]begun{},
	}
	if next.Epoch == 0 { // decided before there were claims
		next.Epoch = old.Epoch + 1
	}
	for _, change := range a.in.Batch {
		next.take(change)
	}
	switch {
	case len(next.Clusters) == 0:
		return true, nil // outcomes of evictions only
	case old.Epoch == next.Epoch:
		return true, nil
	case old.Epoch+1 != next.Epoch:
		return false, nil
	}
	if err := a.carryOver(ctx, old, &next); err != nil {
		return false, err
	}
	text, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("encoding the claim on placement %s: %w", a.placement.Name, err)
	}
	patch, err := fence.Patch(types.UID(a.in.Placement.UID), fence.Annotate(a.placement.Annotations, placementv1beta1.RolloutClaimAnnotation, string(text))...)
	if err != nil {
		return false, err
	}
	claimed := a.placement.DeepCopy()
	err = a.Client.Patch(ctx, claimed, patch)
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("claiming clusters on placement %s: %w", a.placement.Name, err)
	}
	a.placement, a.claim = claimed, next
	return true, nil
}

// settle looks, and takes back what was claimed and is not to be done any more: the epoch
// on a binding keeps every attempt that has read it before from writing to it. That is no
// change of the cluster, and needs no decision.
func (a *advanceCall) settle(ctx context.Context) (*rolloutFacts, error) {
	for {
		facts, err := a.look(ctx)
		if err != nil {
			return nil, err
		}
		released := 0
		for _, step := range facts.plan().Steps {
			if step.Op != rollout.Release {
				continue
			}
			released++
			if err := a.release(ctx, facts.bindings[step.Cluster]); err != nil {
				return nil, err
			}
		}
		if released == 0 {
			return facts, nil
		}
	}
}

func (a *advanceCall) release(ctx context.Context, name string) error {
	binding, err := a.liveBinding(ctx, name)
	if err != nil || binding == nil || !a.claim.pends(binding) {
		return err
	}
	touched, err := bindingwrite.Touch(ctx, a.Client, binding, placementv1beta1.RolloutEpochAnnotation, a.claim.epoch())
	if errors.Is(err, bindingwrite.ErrFenced) {
		return nil
	}
	if err != nil {
		return err
	}
	a.view.Record(touched)
	return nil
}

// take adds a change to a claim.
func (c *claim) take(change act.Change) {
	if change.Op == act.OpConclude {
		return
	}
	c.Clusters[change.Cluster] = shortUID(change.UID)
	if change.Op == act.OpEvict {
		c.Evictions[change.Eviction] = begun{UID: change.EvictionUID, Binding: change.UID, Verdict: verdictOf(change)}
	}
}

// carryOver keeps evictions of an earlier claim that have no outcome yet.
func (a *advanceCall) carryOver(ctx context.Context, old claim, next *claim) error {
	if len(old.Evictions) == 0 {
		return nil
	}
	waiting, err := WaitingEvictions(ctx, a.Client, a.placement.Name)
	if err != nil {
		return err
	}
	for i := range waiting {
		name := waiting[i].Name
		if _, again := next.Evictions[name]; again {
			continue
		}
		if e, ok := old.Evictions[name]; ok && e.UID == string(waiting[i].UID) {
			next.Evictions[name] = e
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// lookEvery is how often a fleet is looked at that comes to rest.
const lookEvery = time.Second

// picture is what is stored of a fleet at one moment.
type picture struct {
	members    map[string]*clusterv1beta1.MemberCluster
	placements []placementv1beta1.ClusterResourcePlacement
	snapshots  []placementv1beta1.ClusterResourceSnapshot
	bindings   []placementv1beta1.ClusterResourceBinding
	works      []placementv1beta1.Work
	runs       []placementv1beta1.ClusterStagedUpdateRun
	// values are those that users have given the ConfigMaps last, and those that real members have, by member and placement.
	values  map[string]string
	applied map[string]map[string]string
}

// look takes a picture.
func (w *world) look(ctx context.Context) (*picture, error) {
	p := &picture{values: map[string]string{}, applied: map[string]map[string]string{}}
	var err error
	if p.members, err = w.members(ctx); err != nil {
		return nil, err
	}
	var placements placementv1beta1.ClusterResourcePlacementList
	var snapshots placementv1beta1.ClusterResourceSnapshotList
	var bindings placementv1beta1.ClusterResourceBindingList
	var works placementv1beta1.WorkList
	var runs placementv1beta1.ClusterStagedUpdateRunList
	for _, list := range []client.ObjectList{&placements, &snapshots, &bindings, &works, &runs} {
		if err := w.Hub.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing %T: %w", list, err)
		}
	}
	p.placements = placements.Items
	p.snapshots = snapshots.Items
	p.bindings = bindings.Items
	p.works = works.Items
	p.runs = runs.Items
	for i := range p.placements {
		name := p.placements[i].Name
		if p.values[name], err = valueOn(ctx, w.Hub, name); err != nil {
			return nil, err
		}
		for member, c := range w.Members {
			if p.applied[member] == nil {
				p.applied[member] = map[string]string{}
			}
			if p.applied[member][name], err = valueOn(ctx, c, name); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// valueOn returns what a cluster's ConfigMap of a placement says, "" if there is none.
func valueOn(ctx context.Context, c client.Client, placement string) (string, error) {
	object := &corev1.ConfigMap{}
	err := c.Get(ctx, client.ObjectKey{Namespace: placement, Name: configMap}, object)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the ConfigMap of %s: %w", placement, err)
	}
	return object.Data[valueKey], nil
}

// missing returns what is not yet as users have asked for it; nothing if the fleet has come to rest as it should.
func (p *picture) missing(members []string) []string {
	var all []string
	for _, name := range members {
		if p.members[name] == nil {
			all = append(all, fmt.Sprintf("member cluster %s has not joined", name))
		}
	}
	for i := range p.placements {
		if what := p.missingOf(&p.placements[i]); what != "" {
			all = append(all, fmt.Sprintf("placement %s: %s", p.placements[i].Name, what))
		}
	}
	for i := range p.runs {
		if what := missingOfRun(&p.runs[i]); what != "" {
			all = append(all, fmt.Sprintf("run %s: %s", p.runs[i].Name, what))
		}
	}
	return all
}

// missingOfRun returns why a run is not over as it should be: well, or with a reason.
func missingOfRun(run *placementv1beta1.ClusterStagedUpdateRun) string {
	if !run.DeletionTimestamp.IsZero() {
		return "it is being deleted"
	}
	if !rules.IsRunOver(run) {
		return fmt.Sprintf("it is not over: %s", describe(run.Status.Conditions))
	}
	for _, c := range run.Status.Conditions {
		if c.Status == "False" && (c.Reason == "" || c.Message == "") {
			return fmt.Sprintf("it has failed and does not say why: %s", describe(run.Status.Conditions))
		}
	}
	return ""
}

func (p *picture) missingOf(placement *placementv1beta1.ClusterResourcePlacement) string {
	if !placement.DeletionTimestamp.IsZero() {
		return "it is being deleted"
	}
	if placement.Spec.Strategy.Type == placementv1beta1.ExternalRolloutStrategyType {
		return "" // how far its clusters are is a matter of its runs
	}
	available := meta.FindStatusCondition(placement.Status.Conditions,
		placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeAvailable))
	if available == nil || available.Status != "True" || available.ObservedGeneration != placement.Generation {
		return fmt.Sprintf("it is not available: %s", describe(placement.Status.Conditions))
	}
	picked := p.pickedBy(placement.Name)
	if want := p.wanted(placement); len(picked) != want {
		return fmt.Sprintf("it is on %d clusters, not on %d: %s", len(picked), want, strings.Join(picked, ", "))
	}
	value := p.values[placement.Name]
	for _, cluster := range picked {
		if !p.has(placement.Name, cluster, value) {
			return fmt.Sprintf("the Works of %s do not have value %s", cluster, value)
		}
		if applied, real := p.applied[cluster]; real && applied[placement.Name] != value {
			return fmt.Sprintf("%s has value %q, not %s", cluster, applied[placement.Name], value)
		}
	}
	return ""
}

// pickedBy returns the clusters with a binding of a placement.
func (p *picture) pickedBy(placement string) []string {
	var all []string
	for i := range p.bindings {
		if p.bindings[i].Labels[placementv1beta1.ParentPlacementLabel] == placement {
			all = append(all, p.bindings[i].Spec.TargetCluster)
		}
	}
	slices.Sort(all)
	return all
}

// wanted is on how many of the clusters that there are a placement belongs.
func (p *picture) wanted(placement *placementv1beta1.ClusterResourcePlacement) int {
	policy := placement.Spec.Policy
	switch policy.PlacementType {
	case placementv1beta1.PickNPlacementType:
		return min(int(*policy.NumberOfClusters), len(p.members))
	case placementv1beta1.PickFixedPlacementType:
		return len(policy.ClusterNames)
	}
	if policy.Affinity == nil {
		return len(p.members)
	}
	zone := policy.Affinity.ClusterAffinity.RequiredDuringSchedulingIgnoredDuringExecution.ClusterSelectorTerms[0].LabelSelector.MatchLabels[zoneLabel]
	n := 0
	for _, m := range p.members {
		if m.Labels[zoneLabel] == zone {
			n++
		}
	}
	return n
}

// has reports whether what the hub tells a cluster to apply has a value.
func (p *picture) has(placement, cluster, value string) bool {
	text := fmt.Appendf(nil, "%q:%q", valueKey, value)
	for i := range p.works {
		work := &p.works[i]
		if work.Labels[placementv1beta1.ParentPlacementLabel] != placement || work.Namespace != clusterv1beta1.MemberNamespace(cluster) {
			continue
		}
		for _, manifest := range work.Spec.Workload.Manifests {
			if bytes.Contains(manifest.Raw, text) {
				return true
			}
		}
	}
	return false
}

// left returns what is still stored of placements that are all gone.
func (p *picture) left() []string {
	var all []string
	for i := range p.placements {
		all = append(all, "placement "+p.placements[i].Name)
	}
	for i := range p.bindings {
		all = append(all, "binding "+p.bindings[i].Name)
	}
	for i := range p.snapshots {
		all = append(all, "snapshot "+p.snapshots[i].Name)
	}
	for i := range p.works {
		if p.works[i].Labels[placementv1beta1.ParentPlacementLabel] != "" {
			all = append(all, "Work "+p.works[i].Namespace+"/"+p.works[i].Name)
		}
	}
	for i := range p.runs {
		all = append(all, "run "+p.runs[i].Name)
	}
	return all
}

// describe returns a line of conditions.
func describe[T any](conditions []T) string {
	if len(conditions) == 0 {
		return "nothing is said of it"
	}
	return strings.ReplaceAll(fmt.Sprintf("%+v", conditions), "\n", " ")
}

// await looks until nothing is missing, and returns what is when it gives up.
func (w *world) await(ctx context.Context, limit time.Duration, missing func(context.Context) ([]string, error)) []string {
	var last []string
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, limit, true, func(ctx context.Context) (bool, error) { // what is missing tells
		what, err := missing(ctx)
		if err != nil {
			what = []string{err.Error()}
		}
		last = what
		return len(last) == 0, nil
	})
	return last
}

// settle returns when everything that users have asked for has come about, or with what has not.
func (w *world) settle(ctx context.Context, s *script, limit time.Duration) []string {
	members := append(append([]string(nil), s.real...), s.hollow...)
	return w.await(ctx, limit, func(ctx context.Context) ([]string, error) {
		for i := range s.hollow {
			if err := w.hollow.Rejoin(ctx, i); err != nil {
				return nil, err
			}
		}
		for _, name := range s.placements {
			if err := w.steerRuns(ctx, name, placementv1beta1.StateRun); err != nil {
				return nil, err
			}
		}
		if err := w.approveAll(ctx); err != nil {
			return nil, err
		}
		now, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		return now.missing(members), nil
	})
}

// clear deletes all placements and runs and returns when nothing is left of them, or with what is.
func (w *world) clear(ctx context.Context, limit time.Duration) []string {
	return w.await(ctx, limit, func(ctx context.Context) ([]string, error) {
		now, err := w.look(ctx)
		if err != nil {
			return nil, err
		}
		for i := range now.runs {
			if err := client.IgnoreNotFound(w.Hub.Delete(ctx, &now.runs[i])); err != nil {
				return nil, err
			}
		}
		for i := range now.placements {
			if err := client.IgnoreNotFound(w.Hub.Delete(ctx, &now.placements[i])); err != nil {
				return nil, err
			}
		}
		if left := now.left(); len(left) > 0 {
			return left, nil
		}
		return w.openWorkflows(ctx)
	})
}

// openWorkflows names the workflows that have not ended.
func (w *world) openWorkflows(ctx context.Context) ([]string, error) {
	page, err := w.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: `ExecutionStatus = "Running"`})
	if err != nil {
		return nil, fmt.Errorf("listing the open workflows: %w", err)
	}
	var all []string
	for _, e := range page.GetExecutions() {
		all = append(all, "workflow "+e.GetExecution().GetWorkflowId())
	}
	return all, nil
}

package convert

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// readScheduling reads which scheduler picks clusters, when a changed policy acts, and which policy is worked on first.
func (p *policyReader) readScheduling(in Input, spec fields, made *placing) {
	policy := made.policy
	if scheduler := spec.text("schedulerName"); scheduler != "default-scheduler" {
		policy.SchedulerName = scheduler
	}
	if policy.SchedulerName != "" {
		p.addNote(in, "spec.schedulerName", Changed, "the scheduler writes clusters into status.targetClusters and status.observedCRPGeneration of the latest policy snapshot")
		if made.strategy.Failover != nil {
			made.strategy.Failover = nil
			p.addNote(in, "spec.failover", Unsupported, "the other scheduler decides which clusters are left")
		}
	}
	switch activation := takeAs[placementv1beta1.Activation](spec, "activationPreference"); {
	case activation == placementv1beta1.ActivationLazy && policy.SchedulerName != "":
		p.addNote(in, "spec.activationPreference", Unsupported, "when a changed policy acts is up to the other scheduler")
	case activation == placementv1beta1.ActivationLazy:
		policy.Activation = placementv1beta1.ActivationLazy
		p.addNote(in, "spec.activationPreference", Changed, "the first policy of a placement acts at once")
	case activation != "":
		p.addNote(in, "spec.activationPreference", Unsupported, "it is Lazy or empty")
	}
	p.readSchedulePriority(in, spec, policy)
}

// readSchedulePriority reads which policy is worked on first.
func (p *policyReader) readSchedulePriority(in Input, spec fields, policy *placementv1beta1.PlacementPolicy) {
	priority := spec.sub("schedulePriority")
	if len(priority.content) == 0 {
		return
	}
	source := priority.text("priorityClassSource")
	name := priority.text("priorityClassName")
	if source != "" && source != "KubePriorityClass" {
		p.addNote(in, "spec.schedulePriority", Unsupported, "Karmada knows no source but KubePriorityClass either")
		return
	}
	policy.QueuePriorityClassName = name
	p.addNote(in, "spec.schedulePriority", Changed, "the PriorityClass has to be on the hub, and its value counts as one of four steps")
}

// maxRequired is how many overrides a placement can require.
const maxRequired = 50

// readRequired reads the overrides without which nothing is placed: those that are made of the override policies that a policy names,
// which are of its namespace, or cluster-scoped as it is.
func (p *policyReader) readRequired(in Input, spec fields) []placementv1beta1.RequiredOverride {
	kind := "clusteroverridepolicy/"
	if in.Object.GetNamespace() != "" {
		kind = "overridepolicy/" + in.Object.GetNamespace() + "/"
	}
	var required []placementv1beta1.RequiredOverride
	for _, name := range takeAs[[]string](spec, "dependentOverrides") {
		made := p.rulesOfPolicy[kind+name]
		if len(made) == 0 {
			p.addNote(in, "spec.dependentOverrides", Unsupported, "nothing is made of %s, which has to be in the input", kind+name)
		}
		for _, o := range made {
			one := placementv1beta1.RequiredOverride{Namespace: o.object.GetNamespace(), Name: joinedName(o.object.GetKind(), o.object.GetName())}
			if len(o.rules) > 0 && !slices.Contains(required, one) {
				required = append(required, one)
			}
		}
	}
	if len(required) > maxRequired {
		p.addNote(in, "spec.dependentOverrides", Unsupported, "at most %d overrides can be required: the rest is left out", maxRequired)
		required = required[:maxRequired]
	}
	return required
}

// rebalanced is a workload that a WorkloadRebalancer names.
type rebalanced struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// convertRebalancer tells the command for each placement of the workloads that are to be scheduled afresh. A rebalancer acts once, so
// that there is nothing to keep.
func (p *propagation) convertRebalancer(in Input) error {
	all := fieldsOf(in.Object)
	spec := all.sub("spec")
	workloads := takeAs[[]rebalanced](spec, "workloads")
	if spec.take("ttlSecondsAfterFinished") != nil {
		p.addNote(in, "spec.ttlSecondsAfterFinished", Ignored, "nothing stays of a command that could be removed")
	}
	p.noteRest(in, all)
	if len(workloads) == 0 {
		p.addNote(in, "spec.workloads", Ignored, "it names no workload")
	}
	for _, w := range workloads {
		p.addNote(in, "spec.workloads", Changed, "%s %s is scheduled afresh, once, by: kubectl fleet reschedule %s", w.Kind,
			strings.TrimPrefix(w.Namespace+"/"+w.Name, "/"), p.placementOf(w))
	}
	return all.err()
}

// placementOf names, for the command line, the placement of the output that places a workload by its name.
func (p *propagation) placementOf(w rebalanced) string {
	for _, document := range p.result.Documents {
		object := document.Object
		if object.GetKind() != "ResourcePlacement" || object.GetNamespace() != w.Namespace {
			continue
		}
		selectors, _, _ := unstructured.NestedSlice(object.Object, "spec", "resourceSelectors") // it was made here
		for _, selector := range selectors {
			if s, _ := selector.(map[string]any); s["kind"] == w.Kind && s["name"] == w.Name {
				return object.GetName() + " -n " + object.GetNamespace()
			}
		}
	}
	return "PLACEMENT"
}

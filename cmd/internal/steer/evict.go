package steer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

const (
	// evictionTimeout is how long to wait for the outcome of an eviction by default.
	evictionTimeout = 30 * time.Second
	// maxEvictionName leaves room for the random end of a name.
	maxEvictionName = 57
	suffixLength    = 5
)

// Evict takes what a placement has placed off a cluster.
func Evict() Verb {
	return Verb{
		Name: "evict", Takes: "PLACEMENT CLUSTER", Group: GroupRollout, Kinds: []hub.Kind{hub.KindPlacement}, Asks: true,
		Short: "Take what a placement has placed off a cluster",
		Long: `Take what a placement has placed off a cluster, by a ClusterResourcePlacementEviction. Its disruption budget decides
whether that may be. The scheduler picks another cluster, or the same one again unless that is tainted: see
kubectl fleet cordon.

From a namespaced placement, only what it has left behind can be taken off (strategy.failover.application with purgeMode
Never): its binding is deleted, and nothing is waited for.

Waits for the outcome; exits with 1 if the eviction is not allowed, and with 124 if there is no outcome in time: it stays pending
then, and may still be executed.

With --replace, the placement has to pick another cluster, and the binding to this one is marked instead (label
fleetflow.io/specified-delete): it goes within maxUnavailable and maxSurge, and only for another cluster. That
works for placements that pick a number of clusters; it is not waited for.`,
		Example: `  kubectl fleet evict web member-3 --reason "its disk is being replaced"

  # Move what is there to another cluster, within the limits of the placement
  kubectl fleet evict web member-3 --replace`,
		CheckArguments: func(args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("kubectl fleet evict needs a placement and a cluster, as in: kubectl fleet evict web member-3")
			}
			return nil
		},
		New: func() *Request {
			e := &eviction{timeout: evictionTimeout}
			return &Request{Validate: e.validate, Prepare: e.prepare, Fields: []Field{
				{Name: "cluster", Argument: true, Into: &e.cluster, Complete: clustersOf, Label: "Cluster", Required: true, Linked: true,
					Missing: "name the cluster"},
				e.reason.keptOn("the eviction"),
				{Name: "timeout", Into: &e.timeout, Usage: "How long to wait for the outcome; 0 does not wait."},
				{Name: "replace", Into: &e.replace, Usage: "Have another cluster picked, and this one left within the limits of the placement."},
			}}
		},
		Form: &Form{
			Kinds: []hub.Kind{hub.KindPlacement}, ClusterScoped: true,
			Rights: func(hub.Found) []Right {
				return []Right{{Verb: "create", Object: &placementv1beta1.ClusterResourcePlacementEviction{}}}
			},
			Page: func(view View) Page {
				return Page{Title: "Evict " + view.Target.Placement.Name, Button: "Evict",
					Lead: "What the placement has placed is taken off the cluster. Its disruption budget decides whether that may be. The scheduler picks another cluster, or the same one again unless that is tainted."}
			},
		},
	}
}

// eviction is what was asked for.
type eviction struct {
	cluster string
	reason  Reason
	timeout time.Duration
	replace bool
}

func (e *eviction) validate(*Call) error {
	if e.replace && e.reason != "" {
		return newInvalidError("--replace marks a binding, on which no reason is kept: leave out --reason")
	}
	return nil
}

func (e *eviction) prepare(ctx context.Context, call *Call, target hub.Found) (Deed, error) {
	placement := *target.Placement
	switch {
	case e.replace:
		return e.prepareReplacement(ctx, call, placement)
	case placement.Namespace != "":
		return e.prepareRemoval(ctx, call, placement)
	}
	return Deed{Question: e.consentQuestion(placement), Do: func(ctx context.Context) (Result, error) { return e.evictAndWait(ctx, call, placement) }}, nil
}

func (e *eviction) consentQuestion(placement hub.Placement) string {
	return fmt.Sprintf("Take what %s has placed off %s?", placement.Ref, e.cluster)
}

// findBinding returns the binding of a placement to the cluster of which something holds; nil if there is none.
func (e *eviction) findBinding(ctx context.Context, call *Call, placement hub.Placement,
	holds func(placementv1beta1.BindingObject) bool) (placementv1beta1.BindingObject, error) {
	bindings, err := hub.Reader{Reader: call.Client}.Of(placement.Ref).Bindings(ctx)
	at := slices.IndexFunc(bindings, func(b hub.Binding) bool { return b.Spec.TargetCluster == e.cluster && holds(b.Object) })
	if err != nil || at < 0 {
		return nil, err
	}
	return bindings[at].Object, nil
}

// prepareReplacement marks the binding of a placement to a cluster, so that another cluster takes its place.
func (e *eviction) prepareReplacement(ctx context.Context, call *Call, placement hub.Placement) (Deed, error) {
	if policy := placement.Spec.Policy; policy == nil || policy.PlacementType != placementv1beta1.PickNPlacementType {
		return Deed{}, fmt.Errorf("%s wants every matching cluster: use a taint, or an eviction without --replace", placement.Ref)
	}
	binding, err := e.findBinding(ctx, call, placement, func(b placementv1beta1.BindingObject) bool { return rules.IsLiveBinding(b) })
	switch {
	case err != nil:
		return Deed{}, err
	case binding == nil:
		return Deed{}, fmt.Errorf("%s is not on %s: kubectl fleet status %s lists its clusters", placement.Ref, e.cluster, placement.Flags())
	case rules.IsMarkedForDelete(binding):
		return nothingToDo("%s on %s is to be replaced already", placement.Ref, e.cluster), nil
	}
	question := fmt.Sprintf("Have another cluster take the place of %s in %s?", e.cluster, placement.Ref)
	return Deed{Question: question, Do: func(ctx context.Context) (Result, error) {
		if call.Sends() {
			marked := placementv1beta1.DeepCopyOf(binding)
			labels := maps.Clone(binding.GetLabels())
			labels[placementv1beta1.SpecifiedDeleteLabel] = placementv1beta1.LabelValueTrue
			marked.SetLabels(labels)
			if err := call.Writer().Patch(ctx, marked, client.MergeFrom(binding)); err != nil {
				return Result{}, fmt.Errorf("marking the binding of %s to %s: %w", placement.Ref, e.cluster, err)
			}
		}
		return resultSaying("%s on %s is to be replaced", placement.Ref, e.cluster), nil
	}}, nil
}

// evictAndWait asks for an eviction, and waits for its outcome.
func (e *eviction) evictAndWait(ctx context.Context, call *Call, placement hub.Placement) (Result, error) {
	made, err := createEviction(ctx, call, placement.Name, e.cluster, e.reason)
	if err != nil {
		return Result{}, err
	}
	if call.Dry() || e.timeout == 0 {
		return resultSaying("eviction/%s of %s from %s created", made.Name, placement.Ref, e.cluster), nil
	}
	err = call.Wait("waiting for the outcome", func() error { return awaitEviction(ctx, call.Client, made, e.timeout) })
	if err != nil {
		return Result{}, err
	}
	executed, message := outcomeOf(made)
	if !executed {
		return Result{}, &NotEvictedError{made.Name, message}
	}
	return resultSaying("%s", sayOutcome(made.Name, message)), nil
}

func sayOutcome(eviction, message string) string {
	return fmt.Sprintf("eviction/%s: %s", eviction, message)
}

// prepareRemoval removes the copy that a namespaced placement has left on a cluster, by its binding: there are no evictions from these
// placements. What is not superseded stays.
func (e *eviction) prepareRemoval(ctx context.Context, call *Call, placement hub.Placement) (Deed, error) {
	binding, err := e.findBinding(ctx, call, placement, func(b placementv1beta1.BindingObject) bool {
		return rules.IsSuperseded(b) && !rules.IsDeleting(b)
	})
	switch {
	case err != nil:
		return Deed{}, err
	case binding == nil:
		return Deed{}, fmt.Errorf("%s is namespaced: evictions are for ClusterResourcePlacements, and for what a placement has left behind (annotation %s on the binding), which there is none of on %s",
			placement.Ref, placementv1beta1.SupersededAnnotation, e.cluster)
	}
	return Deed{Question: e.consentQuestion(placement), Do: func(ctx context.Context) (Result, error) {
		if e.reason != "" {
			call.Warn("the reason is not kept: there is no eviction from a namespaced placement that could have it")
		}
		if call.Sends() {
			seen := binding.GetUID()
			version := binding.GetResourceVersion() // nothing goes that is picked again meanwhile
			if err := call.Writer().Delete(ctx, placementv1beta1.DeepCopyOf(binding),
				client.Preconditions{UID: &seen, ResourceVersion: &version}); err != nil {
				return Result{}, fmt.Errorf("deleting binding %s/%s: %w", binding.GetNamespace(), binding.GetName(), err)
			}
		}
		return resultSaying("what %s had left on %s is being removed", placement.Ref, e.cluster), nil
	}}, nil
}

// createEviction asks for an eviction under a name of its own: each is decided once.
func createEviction(ctx context.Context, call *Call, placement, cluster string,
	reason Reason) (*placementv1beta1.ClusterResourcePlacementEviction, error) {
	name := placement + "-" + cluster
	name = fmt.Sprintf("%s-%s", name[:min(len(name), maxEvictionName)], rand.String(suffixLength))
	eviction := &placementv1beta1.ClusterResourcePlacementEviction{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       placementv1beta1.PlacementEvictionSpec{PlacementName: placement, ClusterName: cluster},
	}
	if !call.Sends() {
		return eviction, nil
	}
	reason.annotateObject(eviction)
	if err := call.Writer().Create(ctx, eviction); err != nil {
		return nil, fmt.Errorf("creating eviction %q: %w", name, err)
	}
	return eviction, nil
}

// awaitEviction watches an eviction until it has its outcome.
func awaitEviction(ctx context.Context, c client.WithWatch, eviction *placementv1beta1.ClusterResourcePlacementEviction,
	timeout time.Duration) error {
	ended := func(e *placementv1beta1.ClusterResourcePlacementEviction, there bool) bool { return there && e.Ended() }
	err := Await(ctx, c, eviction, &placementv1beta1.ClusterResourcePlacementEvictionList{}, timeout, ended, ByName(eviction)...)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("eviction %q goes on: %w", eviction.Name, ctx.Err())
	case errors.Is(err, context.DeadlineExceeded):
		return &NoOutcomeError{eviction.Name, timeout}
	}
	return fmt.Errorf("waiting for eviction %q: %w", eviction.Name, err)
}

// outcomeOf reports whether an eviction was executed, and why or why not.
func outcomeOf(eviction *placementv1beta1.ClusterResourcePlacementEviction) (executed bool, message string) {
	if c := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeExecuted); c != nil {
		return c.Status == metav1.ConditionTrue, c.Message
	}
	if c := meta.FindStatusCondition(eviction.Status.Conditions, placementv1beta1.ConditionTypeValid); c != nil {
		return false, c.Message
	}
	return false, "not decided yet"
}

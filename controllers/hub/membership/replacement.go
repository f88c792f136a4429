package membership

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fleetflow/fleetflow/activities/hubread"
	"github.com/fleetflow/fleetflow/activities/workmodel"
	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// namedPlacements is how many placements a message names.
const namedPlacements = 5

// Replacement is what is known of how far the replacement of a member is.
type Replacement struct {
	// By is the cluster that replaces it, Refused why it cannot, and Fit says that it is known to be a healthy member.
	By, Refused string
	Fit         bool
	// Staying are the placements that keep a copy on the member, Leaving those whose copies are to go or are being removed, and Works
	// counts what is left of copies in the namespace of the member.
	Staying, Leaving []string
	Works            int
	// Unread says that it could not be read.
	Unread bool
	// TakenOver are the placements whose copies the new cluster has taken over, and Unavailable those of them that are not available there.
	TakenOver, Unavailable []string
}

// replacements looks at what becomes of members that others replace; live reads past the cache.
type replacements struct{ cached, live client.Reader }

// read looks at what is left on a member that a user wants replaced, and at what has become of it on the new one. It returns nil if
// that is not asked for.
func (r replacements) read(ctx context.Context, member *clusterv1beta1.MemberCluster) (*Replacement, error) {
	by := clusterrules.ReplacedBy(member)
	if by == "" {
		return nil, nil
	}
	found, err := r.look(ctx, false, member, by)
	// Everything is read live before it is said for the first time that all is done: a cache that lags behind must not say so.
	if err != nil || saysDone(member, by) || found.condition().Status != metav1.ConditionTrue {
		return found, err
	}
	return r.look(ctx, true, member, by)
}

// saysDone reports whether the status of a member says that a cluster has replaced it.
func saysDone(member *clusterv1beta1.MemberCluster, by string) bool {
	said := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeReplaced)
	return said != nil && said.Status == metav1.ConditionTrue && strings.HasPrefix(said.Message, doneText(by))
}

// doneText begins what is said once a cluster has replaced another.
func doneText(by string) string { return "Nothing is left on the cluster; " + by + " has taken over" }

// look reads what is known of a replacement: of the fleet only what concerns it.
func (r replacements) look(ctx context.Context, live bool, member *clusterv1beta1.MemberCluster, by string) (*Replacement, error) {
	reader := r.cached
	if live {
		reader = r.live
	}
	var concerned []clusterv1beta1.MemberCluster
	for _, wanted := range []string{by, member.Name} { // only the cache has an index of them
		var others clusterv1beta1.MemberClusterList
		if err := r.cached.List(ctx, &others, client.MatchingFields{hubread.ByReplacement: wanted}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing the member clusters that %s is to replace: %w", wanted, err)
		}
		for i := range others.Items {
			if others.Items[i].Name != by {
				concerned = append(concerned, others.Items[i])
			}
		}
	}
	found := &Replacement{By: by}
	var newer clusterv1beta1.MemberCluster
	switch err := reader.Get(ctx, client.ObjectKey{Name: by}, &newer); {
	case err == nil:
		concerned = append(concerned, newer)
		found.Fit = clusterrules.IsFit(&newer)
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading member cluster %s: %w", by, err)
	}
	found.Refused = clusterrules.RefuseReplacement(member, by, concerned)
	return found, r.readCopies(ctx, live, member.Name, found)
}

// isLeft reports whether anything is left on the member.
func (r *Replacement) isLeft() bool { return len(r.Staying)+len(r.Leaving)+r.Works > 0 }

// readCopies reads what the member has, and what the new cluster has taken over from it.
func (r replacements) readCopies(ctx context.Context, live bool, member string, found *Replacement) error {
	reader := r.cached
	if live {
		reader = r.live
	}
	var taken []placementv1beta1.BindingObject
	for _, scope := range placementv1beta1.Scopes() {
		bindings, err := r.listBindings(ctx, live, scope, member, found.By)
		if err != nil {
			return err
		}
		for _, binding := range bindings {
			switch name := placementOf(binding); {
			case binding.GetBindingSpec().TargetCluster != member:
				if binding.GetAnnotations()[placementv1beta1.TookOverFromAnnotation] == member {
					taken = append(taken, binding)
				}
			case rules.IsLiveBinding(binding):
				found.Staying = append(found.Staying, name)
			default:
				found.Leaving = append(found.Leaving, name)
			}
		}
	}
	if err := readTaken(ctx, reader, taken, found); err != nil {
		return err
	}
	for _, names := range [][]string{found.Staying, found.Leaving, found.TakenOver, found.Unavailable} {
		slices.Sort(names)
	}
	var works placementv1beta1.WorkList
	if err := reader.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(member)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the works of member cluster %s: %w", member, err)
	}
	found.Works = len(works.Items)
	return nil
}

// listBindings lists the bindings of a scope to clusters. Only the cache has an index of them.
func (r replacements) listBindings(ctx context.Context, live bool, scope placementv1beta1.Scope,
	clusters ...string) (bindings []placementv1beta1.BindingObject, err error) {
	if live {
		list := scope.NewBindingList()
		if err := r.live.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing the bindings of clusters %s: %w", strings.Join(clusters, ", "), err)
		}
		return slices.DeleteFunc(list.Objects(), func(binding placementv1beta1.BindingObject) bool {
			return !slices.Contains(clusters, binding.GetBindingSpec().TargetCluster)
		}), nil
	}
	for _, cluster := range slices.Compact(clusters) {
		list := scope.NewBindingList()
		if err := r.cached.List(ctx, list, client.UnsafeDisableDeepCopy, client.MatchingFields{hubread.ByCluster: cluster}); err != nil {
			return nil, fmt.Errorf("listing the bindings of cluster %s: %w", cluster, err)
		}
		bindings = append(bindings, list.Objects()...)
	}
	return bindings, nil
}

// readTaken notes which copies the new cluster has taken over, and which of them are not available, as their Works say.
func readTaken(ctx context.Context, reader client.Reader, taken []placementv1beta1.BindingObject, found *Replacement) error {
	if len(taken) == 0 {
		return nil
	}
	var works placementv1beta1.WorkList
	if err := reader.List(ctx, &works, client.InNamespace(clusterv1beta1.MemberNamespace(found.By)), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the works of member cluster %s: %w", found.By, err)
	}
	of := map[string][]placementv1beta1.Work{}
	for i := range works.Items {
		binding := works.Items[i].Labels[placementv1beta1.ParentBindingLabel]
		of[binding] = append(of[binding], works.Items[i])
	}
	for _, binding := range taken {
		found.TakenOver = append(found.TakenOver, placementOf(binding))
		if !rules.IsLiveBinding(binding) || !workmodel.StateOf(binding, of[binding.GetName()]).Available {
			found.Unavailable = append(found.Unavailable, placementOf(binding))
		}
	}
	return nil
}

// placementOf returns how messages name the placement of a binding.
func placementOf(binding placementv1beta1.BindingObject) string {
	name := binding.GetLabels()[placementv1beta1.ParentPlacementLabel]
	if namespace := binding.GetNamespace(); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// projectReplacement has the status say how far the replacement of the member is.
func projectReplacement(status *clusterv1beta1.MemberClusterStatus, member *clusterv1beta1.MemberCluster, report Report) {
	if report.Replacement == nil {
		if member.DeletionTimestamp.IsZero() {
			meta.RemoveStatusCondition(&status.Conditions, clusterv1beta1.ConditionTypeReplaced)
		}
		return
	}
	condition := report.Replacement.condition()
	condition.Type = clusterv1beta1.ConditionTypeReplaced
	setMemberCondition(status, member, report.Now, condition)
}

// condition says how far the replacement is. It is True only of what was looked at: nothing is left on the member, and what was taken over is
// available on a cluster that is known to be healthy.
func (r *Replacement) condition() metav1.Condition {
	switch {
	case r.Unread:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterTakenOverUnknown,
			Message: "It could not be read how far the replacement by " + r.By + " is, which is tried again"}
	case r.Refused != "" && r.isLeft():
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonMemberClusterReplacementRefused,
			Message: "The cluster is not replaced by " + r.By + ": " + r.Refused + r.describeLeft()}
	case len(r.Leaving) > 0, r.Works > 0 && len(r.Staying) == 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonMemberClusterReplacing,
			Message: "What is placed here stays until the copy on " + r.By + " is available" + r.describeFitness() + r.describeLeft()}
	case len(r.Staying) > 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonMemberClusterReplacing,
			Message: "Placements are on the cluster; of one that stays, the condition Scheduled says why" + r.describeFitness() + r.describeLeft()}
	case r.Refused != "":
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterTakenOverUnknown,
			Message: "Nothing is left on the cluster, and it is not known whether what was taken over is available: " + r.Refused}
	case !r.Fit:
		return metav1.Condition{Status: metav1.ConditionUnknown, Reason: clusterv1beta1.ReasonMemberClusterTakenOverUnknown,
			Message: "Nothing is left on the cluster, and it is not known whether what was taken over is available: " + r.By + " is not known to be healthy"}
	case len(r.Unavailable) > 0:
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonMemberClusterReplacing,
			Message: "Nothing is left on the cluster; what was taken over is not available on " + r.By + ": " + listPlacements(r.Unavailable)}
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: clusterv1beta1.ReasonMemberClusterReplaced,
		Message: fmt.Sprintf("%s %d placement(s), and all are available", doneText(r.By), len(r.TakenOver))}
}

// describeFitness says that the new cluster is not known to be healthy, if it is not.
func (r *Replacement) describeFitness() string {
	if r.Fit {
		return ""
	}
	return ", and " + r.By + " is not known to be healthy"
}

// describeLeft says what is left on the member.
func (r *Replacement) describeLeft() string {
	said := ""
	if len(r.Leaving) > 0 {
		said += "; to go: " + listPlacements(r.Leaving)
	}
	if len(r.Staying) > 0 {
		said += "; still here: " + listPlacements(r.Staying)
	}
	if said == "" {
		said = fmt.Sprintf("; %d work(s) are being removed", r.Works)
	}
	return said
}

// listPlacements names the first of some placements.
func listPlacements(names []string) string {
	if len(names) <= namedPlacements {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(names[:namedPlacements], ", "), len(names)-namedPlacements)
}

// replacedByCopy finds the members whose replacement a binding concerns: that of its cluster, and those that its cluster is to replace.
func (r replacements) replacedByCopy(ctx context.Context, object client.Object) []reconcile.Request {
	binding, ok := object.(placementv1beta1.BindingObject)
	if !ok {
		return nil
	}
	cluster := binding.GetBindingSpec().TargetCluster
	return r.listReplaced(ctx, hubread.AnyReplacement, func(replaced *clusterv1beta1.MemberCluster) bool {
		return replaced.Name == cluster || clusterrules.ReplacedBy(replaced) == cluster
	})
}

// replacedMembers finds the members whose replacement a change of another concerns: that which is to replace them, or one that stood in the
// way.
func (r replacements) replacedMembers(ctx context.Context, object client.Object) []reconcile.Request {
	requests := r.replacedBy(ctx, object.GetName())
	if by := object.GetAnnotations()[clusterv1beta1.ReplacedByAnnotation]; by != "" {
		requests = append(requests, r.replacedBy(ctx, by)...)
		requests = append(requests, r.listReplaced(ctx, hubread.AnyReplacement, func(replaced *clusterv1beta1.MemberCluster) bool {
			return replaced.Name == by
		})...)
	}
	return requests
}

// replacedBy finds the members that a cluster is to replace.
func (r replacements) replacedBy(ctx context.Context, by string) []reconcile.Request {
	return r.listReplaced(ctx, by, func(*clusterv1beta1.MemberCluster) bool { return true })
}

// listReplaced finds those of the members that a cluster is to replace, or any, which are concerned.
func (r replacements) listReplaced(ctx context.Context, by string, isConcerned func(*clusterv1beta1.MemberCluster) bool) []reconcile.Request {
	var replaced clusterv1beta1.MemberClusterList
	if err := r.cached.List(ctx, &replaced, client.MatchingFields{hubread.ByReplacement: by}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache always answers once it has started
	}
	var requests []reconcile.Request
	for i := range replaced.Items {
		if isConcerned(&replaced.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: replaced.Items[i].Name}})
		}
	}
	return requests
}

// onFitness lets through the changes of members that can change what is said of the replacement of others.
func onFitness() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1beta1.MemberCluster)
		after, is := e.ObjectNew.(*clusterv1beta1.MemberCluster)
		return ok && is && (clusterrules.IsFit(before) != clusterrules.IsFit(after) || rules.DeletionStarted(before, after) ||
			clusterrules.ReplacedBy(before) != clusterrules.ReplacedBy(after))
	}}
}

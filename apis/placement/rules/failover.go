package rules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	// defaultToleration is for how long what is placed on a cluster may be unavailable, defaultGracePeriod for how long a replacement that
	// is applied may take to become available, if a placement does not say.
	defaultToleration  = 5 * time.Minute
	defaultGracePeriod = 10 * time.Minute
)

// LeavesIllClusters reports whether a placement leaves clusters that are ill themselves.
func LeavesIllClusters(placement placementv1beta1.PlacementObject) bool {
	failover := FailoverOf(placement)
	return failover != nil && failover.Cluster != nil
}

// ApplicationFailoverOf returns when a placement leaves a cluster because what is placed there is not available; nil if it does not.
func ApplicationFailoverOf(placement placementv1beta1.PlacementObject) *placementv1beta1.ApplicationFailover {
	if failover := FailoverOf(placement); failover != nil {
		return failover.Application
	}
	return nil
}

// LeftBecauseOf returns why a placement has left the cluster of a binding for another.
func LeftBecauseOf(binding placementv1beta1.BindingObject) placementv1beta1.FailoverCause {
	if binding.GetAnnotations()[placementv1beta1.FailedOverBecauseAnnotation] == string(placementv1beta1.CauseApplication) {
		return placementv1beta1.CauseApplication
	}
	return placementv1beta1.CauseCluster
}

// IsSuperseded reports whether a copy stays on a cluster that its placement has left, until it is evicted. It is none of the
// clusters of the placement.
func IsSuperseded(binding placementv1beta1.BindingObject) bool {
	return binding.GetBindingSpec().State == placementv1beta1.BindingStateUnscheduled &&
		binding.GetAnnotations()[placementv1beta1.SupersededAnnotation] != ""
}

// Supersedes reports whether the copy of a binding stays on its cluster, which is left now because of that copy's health. What was
// never placed cannot stay; what is well goes along with its affinity group.
func Supersedes(a *placementv1beta1.ApplicationFailover, binding placementv1beta1.BindingObject, now time.Time) bool {
	if a.PurgeMode != placementv1beta1.PurgeNever || binding.GetBindingSpec().ResourceSnapshotName == "" {
		return false
	}
	at, _ := LeaveAt(a, binding.GetBindingStatus().Health, now)
	return !at.IsZero() && !at.After(now)
}

// PurgeModeFor returns when what is placed on a cluster goes that is left for a reason; empty if the placement does not leave clusters for
// that reason any more.
func PurgeModeFor(f *placementv1beta1.FailoverStrategy, cause placementv1beta1.FailoverCause) placementv1beta1.PurgeMode {
	mode := placementv1beta1.PurgeMode("")
	switch {
	case cause == placementv1beta1.CauseApplication && f.Application != nil:
		mode = f.Application.PurgeMode
	case cause == placementv1beta1.CauseCluster && f.Cluster != nil:
		mode = f.Cluster.PurgeMode
	default:
		return ""
	}
	if mode == "" {
		return placementv1beta1.PurgeGracefully
	}
	return mode
}

// GracePeriod returns for how long a replacement that is applied is waited for; of two that may apply, the longer.
func GracePeriod(f *placementv1beta1.FailoverStrategy) time.Duration {
	longest := time.Duration(0)
	given := func(seconds *int32) {
		period := defaultGracePeriod
		if seconds != nil {
			period = time.Duration(*seconds) * time.Second
		}
		longest = max(longest, period)
	}
	if f.Application != nil {
		given(f.Application.GracePeriodSeconds)
	}
	if f.Cluster != nil {
		given(f.Cluster.GracePeriodSeconds)
	}
	return longest
}

// TolerationOf returns for how long what is placed may be unavailable where it has been available before.
func TolerationOf(a *placementv1beta1.ApplicationFailover) time.Duration {
	if a.DecisionConditions == nil || a.DecisionConditions.TolerationSeconds == nil {
		return defaultToleration
	}
	return time.Duration(*a.DecisionConditions.TolerationSeconds) * time.Second
}

// LeaveAt returns when a cluster is to be left because of the health of what is placed there, and why, for people; zero if it is not,
// as long as nothing changes. An instant that is yet to come counts as now, so that no clock that is wrong puts the time off for
// ever.
func LeaveAt(a *placementv1beta1.ApplicationFailover, health *placementv1beta1.BindingHealth, now time.Time) (time.Time, string) {
	if health == nil || health.UnhealthySince == nil {
		return time.Time{}, ""
	}
	tolerated := TolerationOf(a)
	from := NotAfter(health.UnhealthySince.Time, now)
	switch {
	case !health.HasBeenAvailable && (a.DecisionConditions == nil || a.DecisionConditions.InitialTolerationSeconds == nil):
		return time.Time{}, ""
	case !health.HasBeenAvailable:
		tolerated = time.Duration(*a.DecisionConditions.InitialTolerationSeconds) * time.Second
	case health.ExcusedUntil != nil && health.ExcusedUntil.After(from):
		from = health.ExcusedUntil.Time
	}
	at := from.Add(tolerated)
	if health.UnknownSince != nil && at.After(health.UnknownSince.Time) {
		return time.Time{}, ""
	}
	return at, fmt.Sprintf("what is placed there has not been available for longer than %d s", int64(tolerated/time.Second))
}

// NotAfter returns an instant, or now if it is yet to come: then a clock is wrong.
func NotAfter(at, now time.Time) time.Time {
	if at.After(now) {
		return now
	}
	return at
}

// Observation is what is known at a time of what is placed on a cluster.
type Observation string

const (
	// ObservedAvailable says that everything is available.
	ObservedAvailable Observation = "Available"
	// ObservedUnavailable says that something has been applied and is not available.
	ObservedUnavailable Observation = "Unavailable"
	// ObservedNothing says that it is not known.
	ObservedNothing Observation = "Unknown"
)

// HealthAfter returns what is to be remembered after another observation of a revision, which is excused for some time if it is new. What is not
// known neither counts nor resets the time.
func HealthAfter(h *placementv1beta1.BindingHealth, seen Observation, revision string, excused time.Duration,
	now time.Time) *placementv1beta1.BindingHealth {
	at := metav1.NewTime(now.Truncate(time.Second))
	next := healthNow(h, revision, at, excused)
	switch {
	case seen == ObservedAvailable:
		return &placementv1beta1.BindingHealth{Revision: revision, HasBeenAvailable: true}
	case seen == ObservedUnavailable && next.UnhealthySince == nil:
		next.UnhealthySince = &at
	case seen == ObservedUnavailable && next.UnknownSince != nil:
		shifted := metav1.NewTime(next.UnhealthySince.Add(at.Sub(next.UnknownSince.Time)))
		next.UnhealthySince = &shifted
		next.UnknownSince = nil
	case seen == ObservedNothing && next.UnhealthySince != nil && next.UnknownSince == nil:
		next.UnknownSince = &at
	}
	return next
}

// healthNow returns what is remembered of a revision. No instant in it is later than it can be, as the clock may have been put back.
func healthNow(h *placementv1beta1.BindingHealth, revision string, at metav1.Time, excused time.Duration) *placementv1beta1.BindingHealth {
	longest := metav1.NewTime(at.Add(excused))
	if h == nil || h.Revision != revision {
		next := &placementv1beta1.BindingHealth{Revision: revision, HasBeenAvailable: h != nil && h.HasBeenAvailable}
		if next.HasBeenAvailable {
			next.ExcusedUntil = &longest
		}
		return next
	}
	next := h.DeepCopy()
	for stored, latest := range map[*metav1.Time]metav1.Time{next.UnhealthySince: at, next.UnknownSince: at, next.ExcusedUntil: longest} {
		if stored != nil && stored.After(latest.Time) {
			*stored = latest
		}
	}
	return next
}

// IsWell reports whether what is placed is known to be available.
func IsWell(h *placementv1beta1.BindingHealth) bool {
	return h != nil && h.HasBeenAvailable && h.UnhealthySince == nil && h.ExcusedUntil == nil
}

// AvailableSince returns since when the status of a binding reports its present generation as available; zero if it does not.
func AvailableSince(b placementv1beta1.BindingObject) time.Time {
	if said := meta.FindStatusCondition(b.GetBindingStatus().Conditions, placementv1beta1.ConditionTypeAvailable); said != nil && SaysAvailable(b) {
		return said.LastTransitionTime.Time
	}
	return time.Time{}
}

// reconsiderAt returns when to think again of a cluster that was left at a time and where what is placed is available: at once as
// long as nothing was written to what was picked since, which may be withdrawn, else when it is barred no more; zero if nothing
// would come of it. It says which of these.
func reconsiderAt(a *placementv1beta1.ApplicationFailover, b placementv1beta1.BindingObject, left time.Time,
	bindings []placementv1beta1.BindingObject,
	barred func(cluster string) bool) (time.Time, string) {
	since := AvailableSince(b)
	switch {
	case since.IsZero():
	case slices.ContainsFunc(bindings, func(picked placementv1beta1.BindingObject) bool {
		return IsLiveBinding(picked) && picked.GetBindingSpec().ResourceSnapshotName == "" && !picked.GetCreationTimestamp().Time.Before(left)
	}):
		return since, "well"
	case barred(b.GetBindingSpec().TargetCluster):
		return since.Add(TolerationOf(a)), "barred no more"
	}
	return time.Time{}, ""
}

// leaveOrReturnAt returns when to think of a cluster that the placement holds: when it is to be left, or gets replicas again that
// were withheld because of how what is placed there fared; zero if nothing would come of it. It says which of these.
func leaveOrReturnAt(a *placementv1beta1.ApplicationFailover, b placementv1beta1.BindingObject, now time.Time) (time.Time, string) {
	withheld := b.GetBindingSpec().ClusterDecision.Withheld
	health := b.GetBindingStatus().Health
	if since := AvailableSince(b); withheld != nil && withheld.Because == placementv1beta1.CauseApplication &&
		IsWell(health) && RunsReplicas(b) &&
		!since.IsZero() {
		return since.Add(TolerationOf(a)), "withheld no more"
	}
	at, _ := LeaveAt(a, health, now)
	return at, at.UTC().Format(time.RFC3339)
}

// Overdue identifies, in few characters, the bindings whose clusters are to be left by now because of the health of what is
// placed there, and those that were left for that reason and are to be thought of again; it is empty if there are none. next is
// when the next one is, if nothing changes; zero if none is. barred says which clusters the placement keeps off: once it does
// not, the health of a copy that is still there does not matter.
func Overdue(a *placementv1beta1.ApplicationFailover, bindings []placementv1beta1.BindingObject, barred func(cluster string) bool,
	now time.Time) (overdue string, next time.Time) {
	var told []string
	for _, b := range bindings {
		at := time.Time{}
		what := ""
		switch since, left := LeftSince(b); {
		case IsLiveBinding(b):
			at, what = leaveOrReturnAt(a, b, now)
		case left && !IsDeleting(b) && LeftBecauseOf(b) == placementv1beta1.CauseApplication && IsWell(b.GetBindingStatus().Health):
			at, what = reconsiderAt(a, b, since, bindings, barred)
		}
		switch {
		case at.IsZero():
		case !at.After(now):
			told = append(told, b.GetName()+" "+what)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	if len(told) == 0 {
		return "", next
	}
	slices.Sort(told)
	sum := sha256.Sum256([]byte(strings.Join(told, ",")))
	return hex.EncodeToString(sum[:])[:16], next
}

package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// defaultToleration is for how long what is placed on a cluster may be unavailable, defaultGracePeriod for how long a replacement that
	// is applied may take to become available, if a placement does not say.
	defaultToleration  = 5 * time.Minute
	defaultGracePeriod = 10 * time.Minute
)

// LeavesIllClusters reports whether a placement leaves clusters that are ill themselves.
func LeavesIllClusters(placement PlacementObject) bool {
	failover := FailoverOf(placement)
	return failover != nil && failover.Cluster != nil
}

// ApplicationFailoverOf returns when a placement leaves a cluster because what is placed there is not available; nil if it does not.
func ApplicationFailoverOf(placement PlacementObject) *ApplicationFailover {
	if failover := FailoverOf(placement); failover != nil {
		return failover.Application
	}
	return nil
}

// LeftBecauseOf returns why a placement has left the cluster of a binding for another.
func LeftBecauseOf(binding BindingObject) FailoverCause {
	if cause := FailoverCause(binding.GetAnnotations()[FailedOverBecauseAnnotation]); cause == CauseApplication {
		return cause
	}
	return CauseCluster
}

// FailoverCause is why a placement leaves a cluster for another.
type FailoverCause string

const (
	// CauseApplication is that what is placed on the cluster is not available.
	CauseApplication FailoverCause = "Application"
	// CauseCluster is that the cluster itself is to be left.
	CauseCluster FailoverCause = "Cluster"
)

// IsSuperseded reports whether a copy stays on a cluster that its placement has left, until it is evicted. It is none of the
// clusters of the placement.
func IsSuperseded(binding BindingObject) bool {
	return binding.GetBindingSpec().State == BindingStateUnscheduled && binding.GetAnnotations()[SupersededAnnotation] != ""
}

// Supersedes reports whether the copy of a binding stays on its cluster, which is left now because of that copy's health. What was
// never placed cannot stay; what is well goes along with its affinity group.
func (a *ApplicationFailover) Supersedes(binding BindingObject, now time.Time) bool {
	if a.PurgeMode != PurgeNever || binding.GetBindingSpec().ResourceSnapshotName == "" {
		return false
	}
	at, _ := a.LeaveAt(binding.GetBindingStatus().Health, now)
	return !at.IsZero() && !at.After(now)
}

// PurgeModeFor returns when what is placed on a cluster goes that is left for a reason; empty if the placement does not leave clusters for
// that reason any more.
func (f *FailoverStrategy) PurgeModeFor(cause FailoverCause) PurgeMode {
	mode := PurgeMode("")
	switch {
	case cause == CauseApplication && f.Application != nil:
		mode = f.Application.PurgeMode
	case cause == CauseCluster && f.Cluster != nil:
		mode = f.Cluster.PurgeMode
	default:
		return ""
	}
	if mode == "" {
		return PurgeGracefully
	}
	return mode
}

// GracePeriod returns for how long a replacement that is applied is waited for; of two that may apply, the longer.
func (f *FailoverStrategy) GracePeriod() time.Duration {
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

// Toleration returns for how long what is placed may be unavailable where it has been available before.
func (a *ApplicationFailover) Toleration() time.Duration {
	if a.DecisionConditions == nil || a.DecisionConditions.TolerationSeconds == nil {
		return defaultToleration
	}
	return time.Duration(*a.DecisionConditions.TolerationSeconds) * time.Second
}

// LeaveAt returns when a cluster is to be left because of the health of what is placed there, and why, for people; zero if it is not,
// as long as nothing changes. An instant that is yet to come counts as now, so that no clock that is wrong puts the time off for
// ever.
func (a *ApplicationFailover) LeaveAt(health *BindingHealth, now time.Time) (time.Time, string) {
	if health == nil || health.UnhealthySince == nil {
		return time.Time{}, ""
	}
	tolerated := a.Toleration()
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

// After returns what is to be remembered after another observation of a revision, which is excused for some time if it is new. What is not
// known neither counts nor resets the time.
func (h *BindingHealth) After(seen Observation, revision string, excused time.Duration, now time.Time) *BindingHealth {
	at := metav1.NewTime(now.Truncate(time.Second))
	next := h.of(revision, at, excused)
	switch {
	case seen == ObservedAvailable:
		return &BindingHealth{Revision: revision, HasBeenAvailable: true}
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

// of returns what is remembered of a revision. No instant in it is later than it can be, as the clock may have been put back.
func (h *BindingHealth) of(revision string, at metav1.Time, excused time.Duration) *BindingHealth {
	longest := metav1.NewTime(at.Add(excused))
	if h == nil || h.Revision != revision {
		next := &BindingHealth{Revision: revision, HasBeenAvailable: h != nil && h.HasBeenAvailable}
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
func (h *BindingHealth) IsWell() bool {
	return h != nil && h.HasBeenAvailable && h.UnhealthySince == nil && h.ExcusedUntil == nil
}

// AvailableSince returns since when the status of a binding reports its present generation as available; zero if it does not.
func AvailableSince(b BindingObject) time.Time {
	if said := meta.FindStatusCondition(b.GetBindingStatus().Conditions, ConditionTypeAvailable); said != nil && SaysAvailable(b) {
		return said.LastTransitionTime.Time
	}
	return time.Time{}
}

// reconsiderAt returns when to think again of a cluster that was left at a time and where what is placed is available: at once as
// long as nothing was written to what was picked since, which may be withdrawn, else when it is barred no more; zero if nothing
// would come of it. It says which of these.
func (a *ApplicationFailover) reconsiderAt(b BindingObject, left time.Time, bindings []BindingObject,
	barred func(cluster string) bool) (time.Time, string) {
	since := AvailableSince(b)
	switch {
	case since.IsZero():
	case slices.ContainsFunc(bindings, func(picked BindingObject) bool {
		return IsLiveBinding(picked) && picked.GetBindingSpec().ResourceSnapshotName == "" && !picked.GetCreationTimestamp().Time.Before(left)
	}):
		return since, "well"
	case barred(b.GetBindingSpec().TargetCluster):
		return since.Add(a.Toleration()), "barred no more"
	}
	return time.Time{}, ""
}

// leaveOrReturnAt returns when to think of a cluster that the placement holds: when it is to be left, or gets replicas again that
// were withheld because of how what is placed there fared; zero if nothing would come of it. It says which of these.
func (a *ApplicationFailover) leaveOrReturnAt(b BindingObject, now time.Time) (time.Time, string) {
	withheld := b.GetBindingSpec().ClusterDecision.Withheld
	health := b.GetBindingStatus().Health
	if since := AvailableSince(b); withheld != nil && withheld.Because == CauseApplication && health.IsWell() && RunsReplicas(b) &&
		!since.IsZero() {
		return since.Add(a.Toleration()), "withheld no more"
	}
	at, _ := a.LeaveAt(health, now)
	return at, at.UTC().Format(time.RFC3339)
}

// Overdue identifies, in few characters, the bindings whose clusters are to be left by now because of the health of what is
// placed there, and those that were left for that reason and are to be thought of again; it is empty if there are none. next is
// when the next one is, if nothing changes; zero if none is. barred says which clusters the placement keeps off: once it does
// not, the health of a copy that is still there does not matter.
func (a *ApplicationFailover) Overdue(bindings []BindingObject, barred func(cluster string) bool,
	now time.Time) (overdue string, next time.Time) {
	var told []string
	for _, b := range bindings {
		at := time.Time{}
		what := ""
		switch since, left := LeftSince(b); {
		case IsLiveBinding(b):
			at, what = a.leaveOrReturnAt(b, now)
		case left && !IsDeleting(b) && LeftBecauseOf(b) == CauseApplication && b.GetBindingStatus().Health.IsWell():
			at, what = a.reconsiderAt(b, since, bindings, barred)
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

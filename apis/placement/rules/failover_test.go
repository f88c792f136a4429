package rules_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const (
	available   = rules.ObservedAvailable
	unavailable = rules.ObservedUnavailable
	unknown     = rules.ObservedNothing
	// excused is for how long a new revision may be unavailable.
	excused = time.Minute
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// seen is an observation some seconds after the start.
type seen struct {
	after    int
	what     rules.Observation
	revision string
}

// observe remembers one observation after the other.
func observe(all ...seen) *placementv1beta1.BindingHealth {
	var health *placementv1beta1.BindingHealth
	for _, one := range all {
		if one.revision == "" {
			one.revision = "r1"
		}
		health = rules.HealthAfter(health, one.what, one.revision, excused, start.Add(time.Duration(one.after)*time.Second))
	}
	return health
}

// tolerating is a rule with its two times; initial is not given if it is negative.
func tolerating(seconds, initial int32) *placementv1beta1.ApplicationFailover {
	rule := &placementv1beta1.ApplicationFailover{DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: &seconds}}
	if initial >= 0 {
		rule.DecisionConditions.InitialTolerationSeconds = &initial
	}
	return rule
}

func TestWhenAClusterIsLeftBecauseOfWhatIsPlacedThere(t *testing.T) {
	for sentence, test := range map[string]struct {
		rule *placementv1beta1.ApplicationFailover
		seen []seen
		// now is when that is asked, at what is told, both in seconds after the start; at is negative if the cluster is not left.
		now, at int
	}{
		"R13: after the toleration":                   {seen: []seen{{0, available, ""}, {10, unavailable, ""}}, now: 20, at: 70},
		"R13: seen again, the time goes on":           {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {40, unavailable, ""}}, now: 40, at: 70},
		"not once it is available again":              {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {69, available, ""}}, now: 100, at: -1},
		"and then the time begins anew":               {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {20, available, ""}, {50, unavailable, ""}}, now: 50, at: 110},
		"what is not known does not count":            {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {30, unknown, ""}}, now: 500, at: -1},
		"nor does it reset the time":                  {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {30, unknown, ""}, {100, unavailable, ""}}, now: 100, at: 140},
		"however often":                               {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {30, unknown, ""}, {40, unknown, ""}, {50, unavailable, ""}, {60, unknown, ""}, {70, unavailable, ""}}, now: 70, at: 100},
		"what was due before stays due":               {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {80, unknown, ""}}, now: 90, at: 70},
		"what was never available is not left":        {seen: []seen{{0, unknown, ""}, {10, unavailable, ""}}, now: 1000, at: -1},
		"unless there is a time for that":             {rule: tolerating(60, 20), seen: []seen{{0, unknown, ""}, {10, unavailable, ""}}, now: 15, at: 30},
		"which does not count once it was available":  {rule: tolerating(60, 20), seen: []seen{{0, available, ""}, {10, unavailable, ""}}, now: 15, at: 70},
		"a new revision begins the time anew":         {seen: []seen{{0, available, ""}, {10, unavailable, ""}, {40, unknown, "r2"}, {41, unavailable, "r2"}}, now: 50, at: 160},
		"and is excused until it was available once":  {seen: []seen{{0, available, ""}, {40, unknown, "r2"}, {41, available, "r2"}, {42, unavailable, "r2"}}, now: 50, at: 102},
		"the toleration is five minutes if it is not": {rule: &placementv1beta1.ApplicationFailover{}, seen: []seen{{0, available, ""}, {10, unavailable, ""}}, now: 10, at: 310},
		"no toleration is none":                       {rule: tolerating(0, -1), seen: []seen{{0, available, ""}, {10, unavailable, ""}}, now: 10, at: 10},
		"a clock that is put back does not delay":     {seen: []seen{{90000, available, ""}, {90000, unavailable, ""}, {10, unavailable, ""}}, now: 10, at: 70},
		"nor does it for what is excused":             {seen: []seen{{0, available, ""}, {90000, unavailable, "r2"}, {10, unavailable, "r2"}}, now: 10, at: 130},
		"nothing is known":                            {now: 10, at: -1},
	} {
		t.Run(sentence, func(t *testing.T) {
			rule := test.rule
			if rule == nil {
				rule = tolerating(60, -1)
			}
			at, reason := rules.LeaveAt(rule, observe(test.seen...), start.Add(time.Duration(test.now)*time.Second))
			if test.at < 0 {
				assert.Zero(t, at)
				return
			}
			assert.Equal(t, start.Add(time.Duration(test.at)*time.Second), at.UTC())
			assert.Contains(t, reason, "what is placed there has not been available for longer than ")
		})
	}
}

// However observations follow each other: exactly the time counts in which it was known to be unavailable.
func TestExactlyTheTimeOfIllnessCounts(t *testing.T) {
	const tolerated = 100
	rule := tolerating(tolerated, -1)
	for seed := range uint64(10_000) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test that can be repeated
		health := observe(seen{0, available, ""})
		last := available
		ill := 0
		now := 0
		for range 12 {
			passes := random.IntN(30)
			if last == unavailable {
				ill += passes
			}
			now += passes
			next := []rules.Observation{available, unavailable, unavailable, unknown, unknown}[random.IntN(5)]
			stored := rules.HealthAfter(health, next, "r1", excused, start.Add(time.Duration(now)*time.Second))
			require.Equal(t, stored, rules.HealthAfter(stored, next, "r1", excused, start.Add(time.Duration(now)*time.Second)), "seen again, nothing is to be written")
			// As it is read back after a restart.
			health = stored.DeepCopy()
			if next == available {
				ill = 0
			}
			last = next
			at, _ := rules.LeaveAt(rule, health, start.Add(time.Duration(now)*time.Second))
			due := !at.IsZero() && !at.After(start.Add(time.Duration(now)*time.Second))
			require.Equal(t, ill >= tolerated, due, "seed %d: %d s of illness, then %s", seed, ill, next)
		}
	}
}

func TestWhatIsOverdue(t *testing.T) {
	rule := tolerating(60, -1)
	on := func(name string, all ...seen) *placementv1beta1.ClusterResourceBinding {
		return &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound},
			Status: placementv1beta1.ResourceBindingStatus{Health: observe(all...)},
		}
	}
	left := func(b *placementv1beta1.ClusterResourceBinding) *placementv1beta1.ClusterResourceBinding {
		b.Spec.State = placementv1beta1.BindingStateUnscheduled
		b.Annotations = map[string]string{placementv1beta1.FailedOverAnnotation: "2026-01-02T03:04:05Z", placementv1beta1.FailedOverBecauseAnnotation: "Application"}
		return b
	}
	well := seen{0, available, ""}
	ill := seen{10, unavailable, ""}
	// recovered is a copy on a cluster that was left, where what is placed is available again since 90.
	recovered := func() *placementv1beta1.ClusterResourceBinding {
		b := left(on("a", well, ill, seen{90, available, ""}))
		b.Spec.TargetCluster = "c-a"
		b.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeAvailable, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(start.Add(90 * time.Second))}}
		return b
	}
	barred := "c-a"
	ask := func(now int, bindings ...placementv1beta1.BindingObject) (string, time.Time) {
		return rules.Overdue(rule, bindings, func(cluster string) bool { return cluster == barred }, start.Add(time.Duration(now)*time.Second))
	}
	overdue, next := ask(20, on("a", well, ill), on("b", well))
	assert.Empty(t, overdue)
	assert.Equal(t, start.Add(70*time.Second), next.UTC())
	first, next := ask(70, on("a", well, ill), on("b", well))
	assert.NotEmpty(t, first)
	assert.Zero(t, next)
	again, _ := ask(1000, on("b", well), on("a", well, ill))
	assert.Equal(t, first, again, "it is the same illness, in whatever order and however late")
	both, _ := ask(1000, on("b", well, ill), on("a", well, ill))
	assert.NotEqual(t, first, both)
	gone, _ := ask(1000, left(on("a", well, ill)))
	assert.Empty(t, gone, "it has been left")

	flapped, next := ask(100, recovered())
	assert.Empty(t, flapped, "it is barred for the toleration")
	assert.Equal(t, start.Add(150*time.Second), next.UTC())
	over, next := ask(150, recovered())
	assert.NotEmpty(t, over, "the placement may pick it again")
	assert.Zero(t, next)
	replacement := on("n")
	replacement.CreationTimestamp = metav1.NewTime(start)
	at, next := ask(91, recovered(), replacement)
	assert.NotEmpty(t, at, "the placement may go back to it before anything is written to the other")
	assert.Zero(t, next)
	replacement.Spec.ResourceSnapshotName = "crp-0-snapshot"
	written, _ := ask(91, recovered(), replacement)
	assert.Empty(t, written)
	barred = ""
	free, next := ask(1000, recovered())
	assert.Empty(t, free, "how a copy fares that keeps nothing off does not matter")
	assert.Zero(t, next)

	withheld := func(replicas int32, because placementv1beta1.FailoverCause) *placementv1beta1.ClusterResourceBinding {
		b := recovered()
		b.Annotations = nil
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.ClusterDecision.Withheld = &placementv1beta1.WithheldReplicas{Because: because}
		b.Spec.ReplicaAssignments = []placementv1beta1.ReplicaAssignment{
			{Group: "apps", Kind: "Deployment", Name: "web", Replicas: replicas}, {Group: "batch", Kind: "Job", Name: "once", Replicas: 3},
		}
		return b
	}
	waits, next := ask(100, withheld(2, placementv1beta1.CauseApplication))
	assert.Empty(t, waits)
	assert.Equal(t, start.Add(150*time.Second), next.UTC(), "what still runs has to be available for the toleration")
	counts, next := ask(150, withheld(2, placementv1beta1.CauseApplication))
	assert.NotEmpty(t, counts, "it gets replicas again")
	assert.Zero(t, next)
	for _, other := range []*placementv1beta1.ClusterResourceBinding{withheld(0, placementv1beta1.CauseApplication), withheld(2, placementv1beta1.CauseCluster)} {
		told, next := ask(1000, other)
		assert.Empty(t, told, "that an emptied workload is available tells nothing, and a cluster that was ill tells of itself")
		assert.Zero(t, next)
	}
}

func TestPurgeModes(t *testing.T) {
	rule := &placementv1beta1.FailoverStrategy{Application: &placementv1beta1.ApplicationFailover{PurgeMode: placementv1beta1.PurgeNever}, Cluster: &placementv1beta1.ClusterFailover{}}
	assert.Equal(t, placementv1beta1.PurgeNever, rules.PurgeModeFor(rule, placementv1beta1.CauseApplication))
	assert.Equal(t, placementv1beta1.PurgeGracefully, rules.PurgeModeFor(rule, placementv1beta1.CauseCluster))
	assert.Empty(t, rules.PurgeModeFor(&placementv1beta1.FailoverStrategy{}, placementv1beta1.CauseCluster), "it does not fail over for that reason any more")
	assert.Equal(t, 10*time.Minute, rules.GracePeriod(rule))
	rule.Application.GracePeriodSeconds, rule.Cluster.GracePeriodSeconds = new(int32(5)), new(int32(7))
	assert.Equal(t, 7*time.Second, rules.GracePeriod(rule))
}

package placement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

var flink = rules.Workload{Group: "flink.apache.org", Kind: "FlinkDeployment", Namespace: "app", Name: "words"}

// preserving is a hub whose placement leaves a cluster Directly, and takes the id of the job along; it is on member-1 by now.
func preserving(t *testing.T, more ...func(*placementv1beta1.FailoverStrategy)) *hub {
	t.Helper()
	h := failingOver(t, 1)
	rules := &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "job", JSONPath: "{.jobStatus.jobID}"}}}
	h.edit(func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.Strategy.Failover = &placementv1beta1.FailoverStrategy{Cluster: &placementv1beta1.ClusterFailover{PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: rules}}
		for _, change := range more {
			change(p.Spec.Strategy.Failover)
		}
	})
	require.NoError(t, h.Create(t.Context(), member("member-2")))
	h.schedule()
	require.Equal(t, map[string]string{"member-1": "Scheduled crp-0"}, h.bindings())
	return h
}

// runs has a cluster been given the resources, and report the id of the job; an empty one is none.
func (h *hub) runs(cluster, job string) {
	h.t.Helper()
	h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		b.Spec.State = placementv1beta1.BindingStateBound
		b.Spec.ResourceSnapshotName = "crp-0-snapshot"
		work := &placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: placementv1beta1.MemberNamespace(cluster), Name: "crp-work",
			Labels:      map[string]string{placementv1beta1.ParentBindingLabel: b.Name, placementv1beta1.ParentPlacementLabel: "crp"},
			Annotations: map[string]string{placementv1beta1.BindingUIDAnnotation: string(b.UID), placementv1beta1.RevisionAnnotation: "r"},
		}}
		work.Spec.Workload.Manifests = []placementv1beta1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"flink.apache.org/v1beta1","kind":"FlinkDeployment","metadata":{"namespace":"app","name":"words"}}`),
		}}}
		said := placementv1beta1.ManifestCondition{Identifier: placementv1beta1.WorkResourceIdentifier{
			Group: flink.Group, Version: "v1beta1", Kind: flink.Kind, Namespace: flink.Namespace, Name: flink.Name,
		}}
		if job != "" {
			said.StateValues = []placementv1beta1.StateValue{{JSONPath: "{.jobStatus.jobID}", Value: job}}
		}
		work.Status.ManifestConditions = []placementv1beta1.ManifestCondition{said}
		require.NoError(h.t, client.IgnoreNotFound(h.Delete(h.t.Context(), work.DeepCopy())))
		require.NoError(h.t, h.Create(h.t.Context(), work))
	})
}

// given is the id of the job that the binding of a cluster brings along; empty if it does not.
func (h *hub) given(cluster string) string {
	job := ""
	h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		job = rules.PreservedStateOf(b)[flink]["job"]
	})
	return job
}

// leave has the taint of a cluster be there for a minute, and schedules.
func (h *hub) leave(cluster string) {
	h.t.Helper()
	h.taint(cluster, true)
	h.clock.Step(time.Minute)
	require.Equal(h.t, 1, h.schedule().Unscheduled)
}

func TestStateGoesAlongToTheClusterThatReplacesOne(t *testing.T) {
	h := preserving(t)
	h.runs("member-1", "one")
	h.leave("member-1")
	assert.Equal(t, "one", h.given("member-2"))
	assert.Empty(t, h.given("member-1"))

	h.taint("member-1", false)
	h.runs("member-2", "two")
	h.removed("member-1")
	h.leave("member-2")
	assert.Equal(t, "two", h.given("member-1"), "the copy reports its own")
}

// removed has the binding of a cluster be gone, with its Works.
func (h *hub) removed(cluster string) {
	h.t.Helper()
	h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) { b.Finalizers = nil })
	list := &placementv1beta1.ClusterResourceBindingList{}
	require.NoError(h.t, h.List(h.t.Context(), list))
	for i := range list.Items {
		if list.Items[i].Spec.TargetCluster == cluster {
			require.NoError(h.t, h.Delete(h.t.Context(), &list.Items[i]))
		}
	}
	require.NoError(h.t, h.DeleteAllOf(h.t.Context(), &placementv1beta1.Work{}, client.InNamespace(placementv1beta1.MemberNamespace(cluster))))
}

func TestStateThatIsOnItsWayGoesOn(t *testing.T) {
	for sentence, tc := range map[string]struct {
		second func(*hub)
		want   string
	}{
		"the replacement has not been given anything":                  {second: func(h *hub) { h.leave("member-2") }, want: "one"},
		"it has, and reports nothing":                                  {second: func(h *hub) { h.runs("member-2", ""); h.leave("member-2") }, want: "one"},
		"it reports its own":                                           {second: func(h *hub) { h.runs("member-2", "two"); h.leave("member-2") }, want: "two"},
		"it has something that can be no label":                        {second: func(h *hub) { h.runs("member-2", "a b"); h.leave("member-2") }, want: "one"},
		"it has not been given anything, and a user wants it replaced": {second: func(h *hub) { h.mark("member-2") }, want: "one"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := preserving(t)
			h.runs("member-1", "one")
			h.leave("member-1")
			h.removed("member-1")
			tc.second(h)
			assert.Equal(t, tc.want, h.given("member-0"))
		})
	}
}

// mark has a user want a cluster replaced, and schedules.
func (h *hub) mark(cluster string) {
	h.t.Helper()
	h.editBindingOf(cluster, func(b *placementv1beta1.ClusterResourceBinding) {
		b.Labels[placementv1beta1.SpecifiedDeleteLabel] = "true"
	})
	require.Equal(h.t, 1, h.schedule().Unscheduled)
}

func TestStateStaysWhereItIs(t *testing.T) {
	for sentence, tc := range map[string]struct {
		change func(*placementv1beta1.FailoverStrategy)
		leave  func(*hub)
	}{
		"without rules": {change: func(f *placementv1beta1.FailoverStrategy) { f.Cluster.StatePreservation = nil }, leave: func(h *hub) { h.leave("member-1") }},
		"if the rules are for another reason": {change: func(f *placementv1beta1.FailoverStrategy) {
			f.Application = &placementv1beta1.ApplicationFailover{PurgeMode: placementv1beta1.PurgeDirectly, StatePreservation: f.Cluster.StatePreservation}
			f.Cluster.StatePreservation = nil
		}, leave: func(h *hub) { h.leave("member-1") }},
		"if a user wants the cluster replaced": {change: func(*placementv1beta1.FailoverStrategy) {}, leave: func(h *hub) { h.mark("member-1") }},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := preserving(t, tc.change)
			h.runs("member-1", "one")
			tc.leave(h)
			assert.Empty(t, h.given("member-2"))
		})
	}
}

func TestStateIsPreservedForTheReasonOfTheFailover(t *testing.T) {
	h := preserving(t, func(f *placementv1beta1.FailoverStrategy) {
		f.Application = &placementv1beta1.ApplicationFailover{
			DecisionConditions: &placementv1beta1.FailoverDecisionConditions{TolerationSeconds: new(int32(60))}, PurgeMode: placementv1beta1.PurgeDirectly,
			StatePreservation: &placementv1beta1.StatePreservation{Rules: []placementv1beta1.StatePreservationRule{{AliasLabelName: "ill", JSONPath: "{.jobStatus.jobID}"}}},
		}
	})
	h.runs("member-1", "one")
	h.fallIll("member-1")
	h.clock.Step(time.Minute)
	require.Equal(t, 1, h.schedule().Unscheduled)
	h.editBindingOf("member-2", func(b *placementv1beta1.ClusterResourceBinding) {
		assert.Equal(t, rules.PreservedState{flink: {"ill": "one"}}, rules.PreservedStateOf(b))
	})
}

func TestStateIsNotLostWhereverTheProcessDies(t *testing.T) {
	for dies := range 12 {
		h := preserving(t)
		h.runs("member-1", "one")
		h.taint("member-1", true)
		h.clock.Step(time.Minute)
		h.left = dies
		_, err := h.activities().ScheduleClusters(t.Context(), ref)
		h.left = -1
		if err == nil {
			assert.Equal(t, "one", h.given("member-2"))
			require.Greater(t, dies, 2, "it has died at each write before")
			return
		}
		h.editBindingOf("member-1", func(b *placementv1beta1.ClusterResourceBinding) {
			if b.Spec.State == placementv1beta1.BindingStateUnscheduled {
				assert.Equal(t, "one", h.given("member-2"), "it is there before the other goes")
			}
		})
		h.schedule()
		assert.Equal(t, "one", h.given("member-2"), "after %d writes", dies)
	}
	t.Fatal("it dies all the time")
}

func TestAClusterThatIsPickedAgainBeforeItWasClearedHasItsCopy(t *testing.T) {
	h := preserving(t)
	h.runs("member-1", "one")
	h.leave("member-1")
	h.taint("member-1", false)
	h.schedule()
	if h.bindings()["member-2"] == "Scheduled crp-0" { // it is not withdrawn: it fails in turn
		h.taint("member-0", true)
		h.leave("member-2")
	}
	assert.Equal(t, "Bound crp-0", h.bindings()["member-1"])
	assert.Empty(t, h.given("member-1"))
}

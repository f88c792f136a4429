package records

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const day = 24 * time.Hour

// kindOfObjects returns how records of objects of a kind are kept.
func kindOfObjects(t *testing.T, kind string) recorded {
	t.Helper()
	all := recordedKinds()
	at := slices.IndexFunc(all, func(of recorded) bool { return of.kind.Kind == kind })
	require.GreaterOrEqual(t, at, 0)
	return all[at]
}

// named returns the metadata of an object that was created some seconds after the start and has been changed so often.
func named(name string, seconds int, generation int64, by string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(seconds) * time.Second)), Generation: generation,
		Annotations: map[string]string{placementv1beta1.ChangedByAnnotation: fmt.Sprintf("spec %d Kubectl %s", generation, by)},
	}
}

// lines prints records, a line each: type, who has done it, and some of the data.
func lines(chain []fleetflowv1alpha1.AuditRecord) (all []string) {
	for i := range chain {
		spec := &chain[i].Spec
		line := string(spec.Type) + " by " + chain[i].Actor()
		for _, key := range []string{changeKey, generationKey, snapshotKey, clusterKey, reasonKey, fleetflowv1alpha1.PlacementScopeKey} {
			if spec.Data[key] != "" {
				line += " " + key + "=" + string(spec.Data[key])
			}
		}
		all = append(all, line)
	}
	return all
}

func placementAt(generation int64, snapshots ...string) *placementv1beta1.ClusterResourcePlacement {
	p := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: named("web", 0, generation, "jane")}
	for i, index := range snapshots {
		p.Status.ResourceSnapshots = append(p.Status.ResourceSnapshots, placementv1beta1.ResourceSnapshotSummary{
			Index: index, Name: "web-" + index, CreationTime: metav1.NewTime(start.Add(time.Duration(i+1) * time.Minute)),
		})
		p.Status.ObservedResourceIndex = index
	}
	return p
}

// saying adds conditions to a placement, with the generation that it has.
func saying(p *placementv1beta1.ClusterResourcePlacement, conditions ...metav1.Condition) *placementv1beta1.ClusterResourcePlacement {
	for _, c := range conditions {
		c.Type = "ClusterResourcePlacement" + c.Type
		c.ObservedGeneration = p.Generation
		p.Status.Conditions = append(p.Status.Conditions, c)
	}
	return p
}

// stories are objects as they are looked at, one after the other, and what there is on record in the end.
func stories() map[string]struct {
	kind  string
	steps []client.Object
	want  []string
} {
	const yes, no, maybe = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	scheduled := said("Scheduled", yes, "", 0, 60)
	deleted := placementAt(2, "0", "1")
	deleted.Generation = 3 // the API server counts that it is deleted
	at := metav1.NewTime(start.Add(time.Hour))
	deleted.DeletionTimestamp = &at
	hold := func(generation int64, conditions ...metav1.Condition) *fleetflowv1alpha1.RolloutHold {
		expires := metav1.NewTime(start.Add(time.Hour))
		h := &fleetflowv1alpha1.RolloutHold{ObjectMeta: named("incident", 0, generation, "joe")}
		h.Spec = fleetflowv1alpha1.RolloutHoldSpec{Message: "INC-4711", ExpirationTime: &expires}
		h.Status.Conditions = conditions
		return h
	}
	eviction := func(conditions ...metav1.Condition) *placementv1beta1.ClusterResourcePlacementEviction {
		e := &placementv1beta1.ClusterResourcePlacementEviction{ObjectMeta: named("web-member-1", 0, 1, "jane")}
		e.Spec = placementv1beta1.PlacementEvictionSpec{PlacementName: "web", ClusterName: "member-1"}
		e.Status.Conditions = conditions
		return e
	}
	override := func(generation int64) *placementv1beta1.ClusterResourceOverride {
		return &placementv1beta1.ClusterResourceOverride{ObjectMeta: named("fewer", 0, generation, "jane")}
	}
	member := func(conditions ...metav1.Condition) *clusterv1beta1.MemberCluster {
		m := &clusterv1beta1.MemberCluster{ObjectMeta: named("member-1", 0, 1, "root")}
		m.Status.Conditions = conditions
		return m
	}
	joined := said("Joined", yes, "", 1, 10)
	well := said("Healthy", yes, "", 1, 10)
	silent := said("Healthy", maybe, clusterv1beta1.ReasonMemberClusterHeartbeatMissed, 1, 100)
	outOfReach := said("Healthy", no, clusterv1beta1.ReasonMemberClusterOutOfReach, 1, 150)
	return map[string]struct {
		kind  string
		steps []client.Object
		want  []string
	}{
		"a placement": {"ClusterResourcePlacement", []client.Object{
			placementAt(1), placementAt(1, "0"),
			saying(placementAt(1, "0"), scheduled, said("Applied", yes, "", 0, 70), said("Available", no, "", 0, 70)),
			saying(placementAt(1, "0"), scheduled, said("Applied", yes, "", 0, 70), said("Available", yes, "", 0, 90)),
			saying(placementAt(1, "0"), scheduled, said("Applied", yes, "", 0, 70), said("Available", no, "", 0, 95)),
			saying(placementAt(1, "0"), scheduled, said("Applied", yes, "", 0, 70), said("Available", yes, "", 0, 99)), // a cluster was away for a moment
			saying(placementAt(2, "0", "1"), scheduled, said("Applied", no, "ApplyFailed", 0, 130)),
			deleted,
		}, []string{
			"placement.created by jane change=created generation=1", "snapshot.created by fleet snapshot=0", "placement.rolledOut by fleet generation=1 snapshot=0",
			"snapshot.created by fleet snapshot=1", "placement.failed by fleet generation=2 snapshot=1 reason=ApplyFailed", "placement.changed by jane change=changed generation=2",
			"placement.deleted by unverified",
		}},
		"a hold that expires": {"RolloutHold", []client.Object{
			hold(1), hold(2, said("Effective", yes, "", 2, 1)), hold(2, said("Effective", no, fleetflowv1alpha1.ReasonHoldExpired, 2, 3600)),
		}, []string{"hold.set by joe change=created generation=1", "hold.set by joe change=changed generation=2", "hold.expired by fleet"}},
		"an eviction that is executed": {"ClusterResourcePlacementEviction", []client.Object{
			eviction(), eviction(said("Valid", yes, "", 1, 1)), eviction(said("Valid", yes, "", 1, 1), said("Executed", yes, "", 1, 2)),
		}, []string{"eviction.asked by jane cluster=member-1", "eviction.executed by fleet cluster=member-1"}},
		"an eviction that is refused": {"ClusterResourcePlacementEviction", []client.Object{
			eviction(), eviction(said("Valid", no, "", 1, 1)),
		}, []string{"eviction.asked by jane cluster=member-1", "eviction.refused by fleet cluster=member-1"}},
		"an override": {"ClusterResourceOverride", []client.Object{override(1), override(1), override(3)},
			[]string{"override.changed by jane change=created generation=1", "override.changed by jane change=changed generation=3"}},
		"an override in a namespace": {"ResourceOverride", []client.Object{&placementv1beta1.ResourceOverride{
			ObjectMeta: inNamespace(named("image", 0, 1, "jane"), "web"),
			Spec:       placementv1beta1.ResourceOverrideSpec{Placement: &placementv1beta1.PlacementRef{Name: "shop", Scope: placementv1beta1.ClusterScoped}},
		}}, []string{"override.changed by jane change=created generation=1 placementScope=Cluster"}},
		"a member": {"MemberCluster", []client.Object{
			member(), member(joined, well), member(joined, silent), member(joined, outOfReach), member(joined, said("Healthy", yes, "", 1, 200)),
			member(joined, said("Healthy", no, "Unhealthy", 1, 210)), member(joined, said("Healthy", yes, "", 1, 220)),
		}, []string{"member.joined by root", "member.lost by fleet reason=MemberClusterHeartbeatMissed", "member.back by fleet"}},
	}
}

func inNamespace(meta metav1.ObjectMeta, namespace string) metav1.ObjectMeta {
	meta.Namespace = namespace
	return meta
}

func TestRecordsOfOtherObjectsAreChains(t *testing.T) {
	for sentence, story := range stories() {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			of := kindOfObjects(t, story.kind)
			running := h.keeper(start.Add(2 * time.Hour))
			for _, step := range story.steps {
				require.NoError(t, running.keepObject(t.Context(), of, step))
				reads := h.reads
				require.NoError(t, running.keepObject(t.Context(), of, step))
				require.NoError(t, h.keeper(start.Add(2*time.Hour)).keepObject(t.Context(), of, step), "once more, by the next agent")
				assert.Equal(t, reads, h.reads, "nothing is missing, which the cache tells")
			}
			chain := h.chain(t)
			assert.ElementsMatch(t, story.want, lines(chain))
			assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
			assert.Equal(t, len(chain), h.writes, "each is written once")
		})
	}
}

func TestWhatIsThereBeforeThereAreRecordsIsFoundOnce(t *testing.T) {
	h := newHub(t)
	of := kindOfObjects(t, "ClusterResourcePlacement")
	later := start.Add(90 * day)
	for _, generation := range []int64{4, 4, 5} {
		require.NoError(t, h.keeper(later).keepObject(t.Context(), of, placementAt(generation, "0")))
	}
	assert.Equal(t, []string{"placement.found by fleet change=found generation=4", "placement.changed by jane change=changed generation=5"}, lines(h.chain(t)),
		"what is older than a record may become is not told")
}

func TestObjectsThatAreGoneAreRecorded(t *testing.T) {
	for kind, test := range map[string]struct {
		object client.Object
		want   string
	}{
		"RolloutHold":                      {object: stories()["a hold that expires"].steps[0], want: "hold.set hold.lifted"},
		"ClusterResourceOverride":          {object: stories()["an override"].steps[0], want: "override.changed override.changed"},
		"ClusterResourcePlacement":         {object: placementAt(1), want: "placement.created placement.deleted"},
		"MemberCluster":                    {object: stories()["a member"].steps[1], want: "member.joined member.left"},
		"ClusterResourcePlacementEviction": {object: stories()["an eviction that is refused"].steps[1], want: "eviction.asked eviction.refused"},
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHub(t, test.object.DeepCopyObject().(client.Object))
			of := kindOfObjects(t, kind)
			require.NoError(t, h.keeper(start).keepObject(t.Context(), of, test.object))
			before := typesOf(h.chain(t))
			require.NoError(t, h.keeper(start).keepGone(t.Context(), of))
			assert.Equal(t, before, typesOf(h.chain(t)), "it is there")
			require.NoError(t, h.Delete(t.Context(), test.object.DeepCopyObject().(client.Object)))
			running := h.keeper(start.Add(time.Minute))
			released := test.object.DeepCopyObject().(client.Object)
			released.SetAnnotations(map[string]string{placementv1beta1.ReasonAnnotation: "it is over"})
			running.forget(of, released)
			require.NoError(t, running.keepGone(t.Context(), of))
			require.NoError(t, h.keeper(start.Add(time.Hour)).keepGone(t.Context(), of), "once more, by the next agent")
			chain := h.chain(t)
			if of.gone != "" {
				assert.Equal(t, "it is over", chain[len(chain)-1].Spec.Comment)
			}
			assert.Equal(t, test.want, typesOf(chain))
			assert.Empty(t, fleetflowv1alpha1.VerifyRecords(chain).Breaks)
		})
	}
}

func TestAHoldThatHasExpiredIsNotLiftedByItsDeletion(t *testing.T) {
	h := newHub(t)
	of := kindOfObjects(t, "RolloutHold")
	steps := stories()["a hold that expires"].steps
	for _, step := range steps {
		require.NoError(t, h.keeper(start.Add(2*time.Hour)).keepObject(t.Context(), of, step))
	}
	require.NoError(t, h.keeper(start.Add(3*time.Hour)).keepGone(t.Context(), of))
	assert.Equal(t, "hold.set hold.set hold.expired", typesOf(h.chain(t)))

	extended := steps[0].DeepCopyObject().(*fleetflowv1alpha1.RolloutHold)
	extended.Generation = 3
	require.NoError(t, h.keeper(start.Add(4*time.Hour)).keepObject(t.Context(), of, extended))
	require.NoError(t, h.keeper(start.Add(5*time.Hour)).keepGone(t.Context(), of))
	assert.Equal(t, "hold.set hold.set hold.expired hold.set hold.lifted", typesOf(h.chain(t)), "one that was extended since is")
}

func TestAnEvictionIsOnRecordBeforeItIsDeleted(t *testing.T) {
	h := newHub(t)
	executed := stories()["an eviction that is executed"].steps[2].(*placementv1beta1.ClusterResourcePlacementEviction)
	require.NoError(t, h.keeper(start).EvictionEnds()(t.Context(), executed))
	assert.Equal(t, "eviction.asked eviction.executed", typesOf(h.chain(t)))

	refusing := newHub(t)
	refusing.refuses = fleetflowv1alpha1.RecordEvictionExecuted
	require.NoError(t, refusing.keeper(start).EvictionEnds()(t.Context(), executed), "what is never taken does not keep it")
	assert.Nil(t, (*Keeper)(nil).EvictionEnds(), "no records are written")
}

// The record of a change goes before later ones of other facts, and the change is not made again by that.
func TestAChangeWhoseRecordIsGoneIsNotRecordedAgain(t *testing.T) {
	const yes = metav1.ConditionTrue
	h := newHub(t)
	of := kindOfObjects(t, "ClusterResourcePlacement")
	available := saying(placementAt(2, "0"), said("Scheduled", yes, "", 0, 60), said("Applied", yes, "", 0, 70), said("Available", yes, "", 0, 90))
	for _, step := range []client.Object{placementAt(1), placementAt(2, "0"), available} {
		require.NoError(t, h.keeper(start.Add(time.Hour)).keepObject(t.Context(), of, step))
	}
	chain := h.chain(t)
	require.Equal(t, fleetflowv1alpha1.RecordPlacementRolledOut, chain[len(chain)-1].Spec.Type)
	for i := range chain[:len(chain)-1] {
		require.NoError(t, h.Delete(t.Context(), &chain[i]))
	}
	require.NoError(t, h.keeper(start.Add(90*day)).keepObject(t.Context(), of, available))
	assert.Equal(t, "placement.rolledOut", typesOf(h.chain(t)))
}

// What was written before records were named by their place in a chain is a chain as well.
func TestRecordsThatHaveTheNameOfTheirFactAreRecords(t *testing.T) {
	h := newHub(t)
	of := kindOfObjects(t, "ClusterResourceOverride")
	steps := stories()["an override"].steps
	require.NoError(t, h.keeper(start).keepObject(t.Context(), of, steps[0]))
	for _, record := range h.chain(t) {
		require.NoError(t, h.Delete(t.Context(), &record))
		record.Name = "r-" + record.Spec.ID[:32]
		record.ResourceVersion = ""
		delete(record.Annotations, fleetflowv1alpha1.AuditIDAnnotation)
		require.NoError(t, h.Create(t.Context(), &record))
	}
	reads := h.reads
	require.NoError(t, h.keeper(start).keepObject(t.Context(), of, steps[0]))
	assert.Equal(t, reads, h.reads, "nothing is missing, which the cache tells")
	require.NoError(t, h.keeper(start).keepObject(t.Context(), of, steps[2]))
	assert.Equal(t, "override.changed override.changed", typesOf(h.chain(t)))
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(h.chain(t)).Breaks)
}

func TestAMemberThatIsLetGoWithoutItsAgentIsOnRecordAsThat(t *testing.T) {
	for sentence, test := range map[string]struct {
		without []string
		want    string
	}{
		"its agent has left":                   {[]string{"", ""}, "member.left"},
		"its agent is away":                    {[]string{"the member agent to leave", ""}, "member.forceRemoved"},
		"and the hub agent ends in between":    {[]string{"the member agent to leave", "", "the member agent to leave", ""}, "member.forceRemoved"},
		"its agent is away, and is looked for": {[]string{"the member agent to leave", "the member agent to leave"}, "member.forceRemoved"},
	} {
		t.Run(sentence, func(t *testing.T) {
			h := newHub(t)
			member := &clusterv1beta1.MemberCluster{ObjectMeta: named("member-1", 0, 1, "root")}
			for _, without := range test.without {
				require.NoError(t, h.keeper(start).MemberLeaves()(t.Context(), member, without))
			}
			require.NoError(t, h.keeper(start.Add(time.Minute)).keepGone(t.Context(), kindOfObjects(t, "MemberCluster")))
			assert.Equal(t, test.want, typesOf(h.chain(t)))
		})
	}
	assert.Nil(t, (*Keeper)(nil).MemberLeaves(), "no records are written")
}

func TestWhoHasAskedForWhatOfARunIsOnRecord(t *testing.T) {
	h := newHub(t)
	step := func(annotation string, generation int64, state placementv1beta1.UpdateRunState, reason string, actions ...placementv1beta1.ClusterAction) {
		r := run(said("Initialized", metav1.ConditionTrue, "", 1, 1), said("Progressing", metav1.ConditionFalse, reason, generation, int(generation)))
		r.Generation = generation
		r.Annotations[placementv1beta1.ChangedByAnnotation] = strings.TrimSpace(fmt.Sprintf("spec %d Kubectl x\n%s", generation, annotation))
		r.Spec.State = state
		r.Spec.ClusterActions = actions
		require.NoError(t, h.keeper(start.Add(time.Hour)).Keep(t.Context(), r))
	}
	skip := placementv1beta1.ClusterAction{Cluster: "member-7", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}
	retry := placementv1beta1.ClusterAction{Cluster: "member-7", Action: placementv1beta1.ClusterActionRetry, Attempt: 2}
	step("state/Stop 2 Kubectl joe", 2, placementv1beta1.StateStop, placementv1beta1.ReasonUpdateRunStopped)
	step("state/Run 3 Dashboard jane", 3, placementv1beta1.StateRun, placementv1beta1.ReasonUpdateRunStarted)
	step("state/Run 3 Dashboard jane\nSkip/member-7/1 4 Kubectl joe", 4, placementv1beta1.StateRun, placementv1beta1.ReasonUpdateRunStarted, skip)
	step("state/Run 3 Dashboard jane\nRetry/member-7/2 5 Kubectl ada", 5, placementv1beta1.StateRun, placementv1beta1.ReasonUpdateRunStarted, retry)
	step("state/Run 3 Dashboard jane\nSkip/member-7/1 6 Agent fleet-hub-agent", 6, placementv1beta1.StateRun, placementv1beta1.ReasonUpdateRunStarted, skip)
	step("Skip/member-7/1 6 Agent fleet-hub-agent", 7, placementv1beta1.StateStop, placementv1beta1.ReasonUpdateRunStopped, skip) // who has stopped it was not noted
	var told []string
	for _, line := range lines(h.chain(t)) {
		if !strings.HasPrefix(line, "run.created") && !strings.HasPrefix(line, "run.initialized") {
			told = append(told, line)
		}
	}
	assert.Equal(t, []string{
		"run.stopped by joe generation=2", "run.resumed by jane generation=2", "cluster.skipped by joe cluster=member-7", "cluster.retried by ada cluster=member-7",
		"cluster.skipped by fleet cluster=member-7", "run.stopped by unverified generation=7",
	}, told)
	assert.Empty(t, fleetflowv1alpha1.VerifyRecords(h.chain(t)).Breaks)
}

// idsOf returns the ids of records, in no order.
func idsOf(chain []fleetflowv1alpha1.AuditRecord) []string {
	var ids []string
	for i := range chain {
		ids = append(ids, chain[i].Spec.ID)
	}
	slices.Sort(ids)
	return ids
}

// It is acceptance 2 of records for other objects than runs, for which TestRecordsAreTheSameWhereverTheAgentEnds is: wherever the agent ends
// between a fact and its record, the next one writes what the first would have.
func TestRecordsOfOtherObjectsAreTheSameWhereverTheAgentEnds(t *testing.T) {
	for sentence, story := range stories() {
		of := kindOfObjects(t, story.kind)
		undisturbed := newHub(t)
		for _, step := range story.steps {
			require.NoError(t, undisturbed.keeper(start.Add(2*time.Hour)).keepObject(t.Context(), of, step))
		}
		want := idsOf(undisturbed.chain(t))
		for write := 1; write <= len(want); write++ {
			for _, behind := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, write %d, behind it %t", sentence, write, behind), func(t *testing.T) {
					h := newHub(t)
					h.fails = func(n int) (bool, bool) { return n == write && !behind, n == write && behind }
					running := h.keeper(start.Add(2 * time.Hour))
					ends := 0
					for _, step := range story.steps {
						if err := running.keepObject(t.Context(), of, step); err != nil {
							require.ErrorIs(t, err, errLost)
							ends++
							running = h.keeper(start.Add(2 * time.Hour))
							require.NoError(t, running.keepObject(t.Context(), of, step))
						}
					}
					assert.Equal(t, 1, ends)
					assert.Equal(t, want, idsOf(h.chain(t)))
					assert.Empty(t, fleetflowv1alpha1.VerifyRecords(h.chain(t)).Breaks)
				})
			}
		}
	}
}

// thousandClusters is a run of a thousand clusters in five stages, each of which is approved and measured. It has come as far as so many stages.
func thousandClusters(name string, stages int) *placementv1beta1.ClusterStagedUpdateRun {
	const yes = metav1.ConditionTrue
	r := run(said("Initialized", yes, "", 1, 1), said("Progressing", yes, placementv1beta1.ReasonUpdateRunStarted, 1, 2))
	r.Name = name
	r.UID = types.UID(name)
	for stage := range 5 {
		at := 10 * (stage + 1)
		s := placementv1beta1.StageUpdatingStatus{StageName: fmt.Sprintf("stage-%d", stage)}
		for i := range 200 {
			s.Clusters = append(s.Clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: fmt.Sprintf("member-%d-%d", stage, i)})
		}
		if stage < stages {
			begun := metav1.NewTime(start.Add(time.Duration(at) * time.Second))
			s.StartTime = &begun
			for i := range s.Clusters {
				s.Clusters[i].Conditions = []metav1.Condition{said("Succeeded", yes, placementv1beta1.ReasonClusterUpdatingSucceeded, 1, at+1)}
			}
			s.AfterStageTaskStatus = []placementv1beta1.StageTaskStatus{{
				Type: placementv1beta1.StageTaskTypeApproval, ApprovalRequestName: name + "-" + s.StageName, Conditions: []metav1.Condition{
					said(placementv1beta1.ConditionTypeApprovalRequestCreated, yes, "", 1, at+2), said(placementv1beta1.ConditionTypeApprovalRequestApproved, yes, "", 1, at+3),
				},
			}, {
				Type: placementv1beta1.StageTaskTypeAnalysis, AnalysisRunName: name + "-" + s.StageName, Conditions: []metav1.Condition{
					said(placementv1beta1.ConditionTypeAnalysisStarted, yes, placementv1beta1.ReasonStageTaskAnalysisStarted, 1, at+2),
					said(placementv1beta1.ConditionTypeAnalysisSucceeded, yes, placementv1beta1.ReasonStageTaskAnalysisSucceeded, 1, at+4),
				},
			}}
			s.Conditions = []metav1.Condition{said("Succeeded", yes, placementv1beta1.ReasonStageUpdatingSucceeded, 1, at+5)}
		}
		r.Status.StagesStatus = append(r.Status.StagesStatus, s)
	}
	if stages == 5 {
		r.Status.Conditions = append(r.Status.Conditions, said("Succeeded", yes, "", 1, 70))
	}
	return r
}

// It is acceptance 4 of records: a hundred runs at once over a thousand clusters each make 4,000 records at most, which is no more than two of a
// hundred writes, as each cluster of a run takes two writes of its own at least: that of its binding and that of its Work.
func TestRecordsOfAHundredRunsOverAThousandClustersAreFew(t *testing.T) {
	const runs, clusters, writesOfACluster = 100, 1000, 2
	written := 0
	for n := range runs {
		h := newHub(t)
		keeper := h.keeper(start.Add(time.Hour))
		for stages := range 6 {
			r := thousandClusters(fmt.Sprintf("run-%d", n), stages)
			for range 3 { // the status of a run changes more often than there is something to record
				require.NoError(t, keeper.Keep(t.Context(), r))
			}
		}
		assert.Len(t, h.chain(t), h.writes)
		written += h.writes
	}
	t.Logf("%d records, each written once: %.2f %% of the writes of the runs", written, 100*float64(written)/(runs*clusters*writesOfACluster))
	assert.LessOrEqual(t, written, 4000)
	assert.LessOrEqual(t, written*100, 2*runs*clusters*writesOfACluster)
}

//go:build bench

package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/bench/ceiling"
	"github.com/fleetflow/fleetflow/test/bench/hollow"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
)

const (
	// rehearsed is how many objects a change has that is rehearsed.
	rehearsed = 20
	// maxQuestionWrites is how many writes of the hub a question may cost: it, the answer, and its deletion.
	maxQuestionWrites = 3
	// maxAnswer is how many bytes an answer may have.
	maxAnswer = 64 << 10
	// atTheirPace is about how long a real agent takes for that many objects, at 20 requests a second.
	atTheirPace = 3 * time.Second
)

// TestRehearsal asks 500 clusters what a change of 20 objects would do there, in turn with a bare client that writes and reads the same.
func TestRehearsal(t *testing.T) {
	f := shared
	name := "rehearsal"
	f.grow(t, several)
	f.content(t, name)
	each(t, named("further", rehearsed-2), func(ctx context.Context, _ int, further string) error {
		return f.hub.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: further}, Data: map[string]string{"key": "value-0"},
		})
	})
	f.place(t, func(int) *placementv1beta1.PlacementPolicy { return allOf(several) }, external(), name)
	f.awaitPlacements(t, placementv1beta1.ConditionTypeScheduled, "0", name)
	example := f.answered(t, name)
	var product, bare []cost
	for round := 1; round <= rounds; round++ {
		bare = append(bare, f.bareAnswers(t, example))
		product = append(product, f.rehearse(t, name, fmt.Sprintf("%s-%d", name, round)))
	}
	title := fmt.Sprintf("rehearsal of %d objects on %d clusters", rehearsed, several)
	times := func(all []cost) []cost {
		return slices.SortedFunc(slices.Values(all), func(a, b cost) int { return cmp.Compare(a.wall, b.wall) })
	}
	median := times(product)[rounds/2]
	ceilingOf := times(bare)[rounds/2]
	f.figures.add(t, title+": from its creation to the last answer counted, median of 3", "<= 10 s", seconds(median.wall))
	f.figures.add(t, title+": a bare client's writes and reads, median of 3", "-", seconds(ceilingOf.wall))
	f.figures.add(t, title+": time against the bare client", "<= 1.5 x", quantity{median.wall.Seconds() / ceilingOf.wall.Seconds(), "x"})
	f.figures.add(t, title+": CPU time of everything against the bare client", "-", quantity{median.cpu.Seconds() / ceilingOf.cpu.Seconds(), "x"})

	members := f.members.Members()[:several]
	require.NoError(t, f.members.Behave(t.Context(), hollow.Behaviour{Latency: atTheirPace}, members...))
	t.Cleanup(func() { assert.NoError(t, f.members.Behave(context.Background(), hollow.Behaviour{}, members...)) })
	paced := f.rehearse(t, name, name+"-paced")
	f.figures.add(t, title+", members that take 3 s: from its creation to the last answer counted", "<= 10 s", seconds(paced.wall))
}

// answered returns a question that was answered, after a first rehearsal, which warms up.
func (f *fleet) answered(t *testing.T, placement string) *fleetflowv1alpha1.MemberQuestion {
	t.Helper()
	asked := f.askAll(t, placement, "first")
	defer f.forget(t, asked)
	question := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(t, f.hub.Get(t.Context(), client.ObjectKey{
		Namespace: clusterv1beta1.MemberNamespace(hollow.Name(0)), Name: fleetflowv1alpha1.RehearsalQuestionName(asked.UID),
	}, question))
	require.NotNil(t, question.Status.Rehearsal)
	assert.EqualValues(t, rehearsed, question.Status.Rehearsal.Counts.Total())
	answer, err := json.Marshal(question.Status)
	require.NoError(t, err)
	whole, err := json.Marshal(question.Spec)
	require.NoError(t, err)
	assert.LessOrEqual(t, len(answer), maxAnswer)
	title := fmt.Sprintf("rehearsal of %d objects", rehearsed)
	f.figures.add(t, title+": bytes of an answer", fmt.Sprintf("<= %d", maxAnswer), count(len(answer)))
	f.figures.add(t, title+": bytes of a question", "-", count(len(whole)))
	return question
}

// bareAnswers is what a bare client needs while the hub agent rests.
func (f *fleet) bareAnswers(t *testing.T, example *fleetflowv1alpha1.MemberQuestion) cost {
	t.Helper()
	require.NoError(t, f.Control.Do(t.Context(), control.Stop, controlplane.HubAgent))
	defer func() { require.NoError(t, f.Control.Do(context.Background(), control.Start, controlplane.HubAgent)) }()
	f.awaitQuiet(t)
	before := f.busy(t)
	took, err := ceiling.Answers(within(t, patience), f.hub, example, several)
	require.NoError(t, err)
	spent := cost{wall: took, cpu: f.busy(t) - before}
	t.Logf("a bare client: %s, CPU time %s, load %s", seconds(spent.wall), seconds(spent.cpu), load())
	return spent
}

// rehearse asks all clusters, and asserts what that writes.
func (f *fleet) rehearse(t *testing.T, placement, name string) cost {
	t.Helper()
	f.forget(t, f.askAll(t, placement, name+"-warm", hollow.Name(0))) // the hub agent may have been started just now
	f.awaitQuiet(t)
	stop := f.meter(t)
	used := f.cpu(t)
	began := time.Now()
	asked := f.askAll(t, placement, name)
	spent := cost{wall: time.Since(began)}
	cpu := f.cpuSince(t, used)
	spent.cpu = time.Duration(cpu.total() * float64(time.Second))
	t.Logf("%s: %s, CPU time: %s, load %s", name, seconds(spent.wall), cpu, load())
	f.forget(t, asked)
	done, refused := stop()
	t.Logf("writes: %s; refused: %s", done, refused)
	for what, perCluster := range map[string]float64{
		"memberquestions": maxQuestionWrites - 1, "memberquestions/status": 1, // deletions of what is gone already count as none
	} {
		assert.InDelta(t, perCluster*float64(several), done[what], 0.5, what)
	}
	assert.LessOrEqual(t, done["clusterrehearsals/status"], 3+spent.wall.Seconds(), "answers that come together are one write")
	assert.Zero(t, done["works"]+done["works/status"]+done["clusterresourcebindings"])
	return spent
}

// askAll creates a rehearsal, of all clusters unless some are named, and waits until all have answered.
func (f *fleet) askAll(t *testing.T, placement, name string, clusters ...string) *fleetflowv1alpha1.ClusterRehearsal {
	t.Helper()
	asked := &fleetflowv1alpha1.ClusterRehearsal{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: fleetflowv1alpha1.RehearsalSpec{
			PlacementName: placement, Clusters: clusters, Timeout: &metav1.Duration{Duration: 5 * time.Minute},
		},
	}
	require.NoError(t, f.hub.Create(t.Context(), asked))
	now := &fleetflowv1alpha1.ClusterRehearsal{}
	f.await(t, 10*time.Minute, "all clusters to answer", func() string {
		if err := f.cache.Get(t.Context(), client.ObjectKey{Name: name}, now); err != nil {
			return err.Error()
		}
		if !fleetflowv1alpha1.IsRehearsalOver(now) {
			return fmt.Sprintf("%d of %d have", now.Status.Answered, now.Status.ClusterCount)
		}
		return ""
	})
	want := int32(several)
	if len(clusters) > 0 {
		want = int32(len(clusters))
	}
	require.Equal(t, want, now.Status.Answered, "%v", now.Status.Conditions)
	require.Equal(t, want, now.Status.Clusters.Changes)
	return now
}

// forget deletes a rehearsal, and waits until its questions are gone.
func (f *fleet) forget(t *testing.T, asked *fleetflowv1alpha1.ClusterRehearsal) {
	t.Helper()
	require.NoError(t, f.hub.Delete(t.Context(), asked))
	list := &fleetflowv1alpha1.MemberQuestionList{}
	f.await(t, patience, "the questions to be gone", func() string {
		err := f.hub.List(t.Context(), list, client.MatchingLabels{fleetflowv1alpha1.RehearsalLabel: string(asked.UID)}, client.Limit(1))
		if err != nil {
			return err.Error()
		}
		if len(list.Items) > 0 {
			return "some are there"
		}
		return ""
	})
}

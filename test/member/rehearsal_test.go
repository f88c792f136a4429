//go:build integration

package member

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/onemember"
)

// told is what the member has answered.
type told struct {
	*fleetflowv1alpha1.MemberQuestion
	objects []fleetflowv1alpha1.RehearsedObject
}

// about returns what is told of an object by its name.
func (t told) about(name string) fleetflowv1alpha1.RehearsedObject {
	for _, o := range t.objects {
		if o.Object.Name == name {
			return o
		}
	}
	return fleetflowv1alpha1.RehearsedObject{}
}

// works are the manifests that Works would have, by their names in order.
type works []struct {
	name    string
	objects []map[string]any
}

// questionOf returns a question to the member of what a change would do.
func (s *spec) questionOf(name string, strategy *placementv1beta1.ApplyStrategy, would works, removed ...string) *fleetflowv1alpha1.MemberQuestion {
	s.Helper()
	rehearse := &fleetflowv1alpha1.RehearseQuestion{Revision: "7", Strategy: strategy, RemovedWorks: removed}
	lists := make([][]placementv1beta1.Manifest, 0, len(would))
	for _, w := range would {
		lists = append(lists, onemember.Manifests(w.objects...))
		rehearse.Works = append(rehearse.Works, fleetflowv1alpha1.RehearsedWork{Name: w.name, Manifests: int32(len(w.objects))})
	}
	data, err := json.Marshal(lists)
	require.NoError(s, err)
	rehearse.Manifests = packed(s, data)
	return &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{Namespace: onemember.Namespace, Name: name},
		Spec: fleetflowv1alpha1.MemberQuestionSpec{
			Type: fleetflowv1alpha1.QuestionRehearse, Deadline: metav1.NewTime(time.Now().Add(patience)), Rehearse: rehearse,
			AskedFor: fleetflowv1alpha1.QuestionOrigin{Kind: "ClusterRehearsal", Name: name, UID: "1"},
		},
	}
}

func packed(t require.TestingT, data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// ask asks a question and returns the answer.
func (s *spec) askMember(q *fleetflowv1alpha1.MemberQuestion) told {
	s.Helper()
	require.NoError(s, rig.Hub.Create(s.ctx, q))
	return s.awaitAnswer(q.Name)
}

func (s *spec) awaitAnswer(name string) told {
	s.Helper()
	answered, err := access.Await(s.ctx, rig.Hub, onemember.Key(name), func(q *fleetflowv1alpha1.MemberQuestion) string {
		if meta.FindStatusCondition(q.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered) == nil {
			return "it is not answered"
		}
		return ""
	})
	require.NoError(s, err)
	out := told{MemberQuestion: answered}
	if answered.Status.Rehearsal != nil {
		reader, err := gzip.NewReader(bytes.NewReader(answered.Status.Rehearsal.Objects))
		require.NoError(s, err)
		data, err := io.ReadAll(reader)
		require.NoError(s, err)
		require.NoError(s, json.Unmarshal(data, &out.objects))
	}
	return out
}

// requireReason makes sure why a question has no answer.
func (s *spec) requireReason(t told, reason string, words ...string) {
	s.Helper()
	c := meta.FindStatusCondition(t.Status.Conditions, fleetflowv1alpha1.ConditionTypeAnswered)
	require.NotNil(s, c)
	require.Equal(s, reason, c.Reason, c.Message)
	for _, word := range words {
		require.Contains(s, c.Message, word)
	}
}

// questionsThatCannotBeRead are questions as no hub should ask them.
func questionsThatCannotBeRead(s *spec) {
	bomb := packed(s, bytes.Repeat([]byte{' '}, 64<<20))
	for name, spoil := range map[string]func(*fleetflowv1alpha1.RehearseQuestion){
		"no gzip":   func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = []byte("not packed") },
		"cut off":   func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = q.Manifests[:len(q.Manifests)-5] },
		"too large": func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = bomb },
		"no lists":  func(q *fleetflowv1alpha1.RehearseQuestion) { q.Manifests = packed(s, []byte(`{"data":"hunter2"}`)) },
		"more Works": func(q *fleetflowv1alpha1.RehearseQuestion) {
			q.Works = append(q.Works, fleetflowv1alpha1.RehearsedWork{Name: "b"})
		},
		"another count": func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[0].Manifests = 2 },
		"no name":       func(q *fleetflowv1alpha1.RehearseQuestion) { q.Works[0].Name = "" },
		"named twice":   func(q *fleetflowv1alpha1.RehearseQuestion) { q.RemovedWorks = []string{q.Works[0].Name} },
	} {
		q := s.questionOf(s.name+"-"+strings.ReplaceAll(strings.ToLower(name), " ", "-"), nil, works{{s.name, []map[string]any{s.configMap("a", "v")}}})
		spoil(q.Spec.Rehearse)
		answer := s.askMember(q)
		s.requireReason(answer, fleetflowv1alpha1.ReasonQuestionInvalid)
		assert.NotContains(s, fmt.Sprint(answer.Status), "hunter2", name)
	}
}

// nothingIsWritten has a change of every sort rehearsed: the audit log of the member's API server has dry runs, and no other write of what
// the change is about, and the versions of all that there is stay what they are.
func nothingIsWritten(s *spec) {
	s.place(s.configMap("same", "v"), s.configMap("changed", "v"), s.configMap("drifted", "v"), s.configMap("removed", "v"),
		s.secretManifest(map[string]any{"k": "hunter2-before"}))
	s.awaitAvailable(s.name)
	_, err := access.Await(s.ctx, rig.Member, client.ObjectKey{Name: s.name}, func(a *placementv1beta1.AppliedWork) string {
		for _, item := range a.Status.AppliedResources {
			if item.UID == "" {
				return "the agent has not written down what it has applied"
			}
		}
		return ""
	})
	require.NoError(s, err)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "theirs"}, Data: map[string]string{"key": "v"}}
	require.NoError(s, rig.Member.Create(s.ctx, theirs))
	versions := func() map[string]string {
		list := &corev1.ConfigMapList{}
		require.NoError(s, rig.Member.List(s.ctx, list, client.InNamespace(s.name)))
		out := map[string]string{}
		for i := range list.Items {
			out[list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		secrets := &corev1.SecretList{}
		require.NoError(s, rig.Member.List(s.ctx, secrets, client.InNamespace(s.name)))
		for i := range secrets.Items {
			out["Secret "+secrets.Items[i].Name] = secrets.Items[i].ResourceVersion
		}
		applied := &placementv1beta1.AppliedWork{}
		require.NoError(s, rig.Member.Get(s.ctx, client.ObjectKey{Name: s.name}, applied))
		out["AppliedWork"] = applied.ResourceVersion
		return out
	}
	kept := versions()
	before, err := rig.Calls(s.ctx, onemember.Member)
	require.NoError(s, err)
	onHub, err := rig.Calls(s.ctx, "hub")
	require.NoError(s, err)
	asking := time.Now()
	answer := s.askMember(s.questionOf(s.name, nil, works{{s.name, []map[string]any{
		s.configMap("same", "v"), s.configMap("changed", "w"), s.configMap("drifted", "v"), s.configMap("theirs", "w"), s.configMap("new", "v"),
		s.secretManifest(map[string]any{"k": "hunter2-after"}),
	}}}))
	after, err := rig.Calls(s.ctx, onemember.Member)
	require.NoError(s, err)
	asked := after.Since(before)
	assert.NotZero(s, asked[onemember.Call{Verb: onemember.Rehearsal, Resource: "configmaps"}], "%s", asked)
	assert.Equal(s, kept, versions())
	s.requireOnlyTried(asking, "patch", "delete")
	afterOnHub, err := rig.Calls(s.ctx, "hub")
	require.NoError(s, err)
	assert.Equal(s, 1, afterOnHub.Since(onHub)[onemember.Call{Verb: "PATCH", Resource: "memberquestions/status"}], "%s", afterOnHub.Since(onHub))

	assert.Equal(s, fleetflowv1alpha1.RehearsalCounts{Same: 2, Changes: 3, Creates: 1, Removes: 1}, answer.Status.Rehearsal.Counts)
	assert.Equal(s, "7", answer.Status.Rehearsal.Revision)
	assert.Equal(s, fleetflowv1alpha1.RehearsalChanges, answer.about("changed").Outcome)
	assert.Equal(s, []fleetflowv1alpha1.RehearsedField{{Path: "/data/key", From: "v", To: "w"}}, answer.about("changed").Fields)
	assert.Equal(s, fleetflowv1alpha1.RehearsalRemoves, answer.about("removed").Outcome)
	assert.Contains(s, answer.about("theirs").Fields, fleetflowv1alpha1.RehearsedField{Path: "/data/key", From: "v", To: "w"})
	told, err := json.Marshal(answer.objects)
	require.NoError(s, err)
	assert.NotContains(s, string(told), "hunter2")

	log, err := os.ReadFile(rig.Fleet.LogFile(onemember.Agent))
	require.NoError(s, err)
	assert.NotContains(s, string(log), "hunter2-after")
	for _, cluster := range []client.Client{rig.Hub, rig.Member} {
		events := &corev1.EventList{}
		require.NoError(s, cluster.List(s.ctx, events))
		for i := range events.Items {
			assert.NotContains(s, events.Items[i].Message, "hunter2-after")
		}
	}

	again := s.askMember(s.questionOf(s.name+"-again", nil, works{{s.name, []map[string]any{
		s.configMap("same", "v"), s.configMap("changed", "w"), s.configMap("drifted", "v"), s.configMap("theirs", "w"), s.configMap("new", "v"),
		s.secretManifest(map[string]any{"k": "hunter2-after"}),
	}}}))
	assert.Equal(s, answer.Status.Rehearsal.Digest, again.Status.Rehearsal.Digest, "the same was found")
}

// requireOnlyTried makes sure that the agent has written nothing of the spec since a time, by the audit log of the member's API server, and
// that it has tried writes of some verbs. Of what it has applied before, it may still be writing down what that was.
func (s *spec) requireOnlyTried(since time.Time, verbs ...string) {
	s.Helper()
	writes, err := rig.Writes(since, func(w onemember.Write) bool {
		return w.Resource != "appliedworks/status" && (w.Namespace == s.name || w.Name == s.name)
	})
	require.NoError(s, err)
	var tried []string
	for _, w := range writes {
		if !strings.Contains(w.User, "member-agent") {
			continue
		}
		assert.True(s, w.Tried, "%+v", w)
		tried = append(tried, w.Verb)
	}
	for _, verb := range verbs {
		assert.Contains(s, tried, verb)
	}
}

// fiveThousandObjects has a change that takes the agent far longer than the question lets it look.
func fiveThousandObjects(s *spec) {
	const many, seconds, aSecond, maxAnswer = 5000, 15, 20, 64 << 10
	var change works
	for part := range 5 {
		var objects []map[string]any
		for i := range many / 5 {
			objects = append(objects, s.configMap(fmt.Sprintf("many-%d-%04d", part, i), "v"))
		}
		change = append(change, works{{fmt.Sprintf("%s-%d", s.name, part), objects}}...)
	}
	q := s.questionOf(s.name, nil, change)
	asking := time.Now()
	q.Spec.Deadline = metav1.NewTime(asking.Add(seconds * time.Second))
	answer := s.askMember(q)
	took := time.Since(asking)
	assert.Less(s, took, seconds*time.Second)
	counts := answer.Status.Rehearsal.Counts
	assert.EqualValues(s, many, counts.Total())
	assert.EqualValues(s, many, counts.Creates+counts.Unknown, "%+v", counts)
	assert.NotZero(s, counts.Creates, "what was found until then is told")
	assert.NotZero(s, counts.Unknown, "what was not looked at is not told as known")
	whole, err := json.Marshal(answer.Status)
	require.NoError(s, err)
	assert.LessOrEqual(s, len(answer.Status.Rehearsal.Objects), maxAnswer)
	assert.Less(s, len(whole), 2*maxAnswer, "base64 and the counts added")
	tried, err := rig.Writes(asking, func(w onemember.Write) bool { return w.Namespace == s.name })
	require.NoError(s, err)
	assert.LessOrEqual(s, len(tried), int(took.Seconds()+1)*aSecond, "requests are paced")
	s.requireOnlyTried(asking)
}

// movesAndRemovals has objects that leave a Work for another one, and Works that are gone.
func movesAndRemovals(s *spec) {
	first := s.name + "-a"
	second := s.name + "-b"
	third := s.name + "-c"
	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(first, s.configMap("moves", "v"), s.configMap("drops", "v"))))
	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(second, s.configMap("goes", "v"), s.configMap("moves-too", "v"))))
	for _, name := range []string{first, second} {
		s.awaitAvailable(name)
	}
	require.NoError(s, rig.Hub.Create(s.ctx, onemember.Work(third, s.configMap("goes", "v"))))
	s.awaitWork(third, func(w *placementv1beta1.Work) string {
		if len(w.Status.ManifestConditions) == 0 {
			return "it is not looked at"
		}
		return ""
	})
	answer := s.askMember(s.questionOf(s.name, nil, works{
		{first, []map[string]any{s.configMap("moves-too", "v")}}, {s.name + "-new", []map[string]any{s.configMap("moves", "w")}},
	}, second))
	assert.Equal(s, fleetflowv1alpha1.RehearsalChanges, answer.about("moves").Outcome, "%+v", answer.objects)
	assert.Equal(s, fleetflowv1alpha1.RehearsalSame, answer.about("moves-too").Outcome, "%+v", answer.objects)
	assert.Equal(s, fleetflowv1alpha1.RehearsalRemoves, answer.about("drops").Outcome, "%+v", answer.objects)
	assert.Empty(s, answer.about("goes").Outcome, "another Work wants it: %+v", answer.objects)
}

// answeredOnce has an agent that starts anew, and a deadline that has passed.
func answeredOnce(s *spec) {
	asked := s.questionOf(s.name, nil, works{{s.name, []map[string]any{s.configMap("a", "v")}}})
	first := s.askMember(asked)
	late := s.questionOf(s.name+"-late", nil, works{{s.name, []map[string]any{s.configMap("a", "v")}}})
	late.Spec.Deadline = metav1.NewTime(time.Now().Add(-time.Minute))
	require.NoError(s, rig.Hub.Create(s.ctx, late))
	s.do(control.Restart, onemember.Agent)
	last := s.askMember(s.questionOf(s.name+"-last", nil, works{{s.name, []map[string]any{s.configMap("a", "v")}}}))
	require.NotEmpty(s, last.objects)
	again := &fleetflowv1alpha1.MemberQuestion{}
	require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(s.name), again))
	assert.Equal(s, first.ResourceVersion, again.ResourceVersion, "it is answered once")
	require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(late.Name), late))
	assert.Empty(s, late.Status.Conditions, "nothing is answered after the deadline")
}

// hubWithoutQuestions takes the right to read questions away, as an older hub has none to give.
func hubWithoutQuestions(s *spec) {
	role := &rbacv1.Role{}
	require.NoError(s, rig.Hub.Get(s.ctx, onemember.Key(onemember.Member), role))
	before := role.DeepCopy()
	role.Rules = role.Rules[:len(role.Rules)-2]
	require.NoError(s, rig.Hub.Patch(s.ctx, role, client.MergeFrom(before)))
	pid := rig.Process(onemember.Agent).PID
	s.do(control.Restart, onemember.Agent)
	require.NotEqual(s, pid, rig.Process(onemember.Agent).PID)
	s.place(s.configMap("a", "v"))
	s.awaitAvailable(s.name)
	pid = rig.Process(onemember.Agent).PID
	denied := role.DeepCopy()
	role.Rules = before.Rules
	require.NoError(s, rig.Hub.Patch(s.ctx, role, client.MergeFrom(denied)))
	s.askMember(s.questionOf(s.name, nil, works{{s.name, []map[string]any{s.configMap("a", "v")}}}))
	s.requireSameAgent(pid)
}

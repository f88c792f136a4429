package rehearsal_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetflow/fleetflow/activities/rehearsal"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func pack(t *testing.T, value any) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	require.NoError(t, json.NewEncoder(writer).Encode(value))
	require.NoError(t, writer.Close())
	return buffer.Bytes()
}

func object(outcome fleetflowv1alpha1.RehearsalOutcome, name, message string) fleetflowv1alpha1.RehearsedObject {
	return fleetflowv1alpha1.RehearsedObject{
		Object:  placementv1beta1.WorkResourceIdentifier{Kind: "ConfigMap", Namespace: "web", Name: name},
		Outcome: outcome, Message: message,
	}
}

// answered returns a question about as many manifests as there are objects, with an answer.
func answered(t *testing.T, objects ...fleetflowv1alpha1.RehearsedObject) *fleetflowv1alpha1.MemberQuestion {
	t.Helper()
	return &fleetflowv1alpha1.MemberQuestion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-m1", Name: "rehearsal-1"},
		Spec: fleetflowv1alpha1.MemberQuestionSpec{
			Type: fleetflowv1alpha1.QuestionRehearse,
			Rehearse: &fleetflowv1alpha1.RehearseQuestion{
				Revision: "3", Works: []fleetflowv1alpha1.RehearsedWork{{Name: "web-work", Manifests: int32(len(objects))}}, //nolint:gosec // few
			},
		},
		Status: fleetflowv1alpha1.MemberQuestionStatus{
			Conditions: []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeAnswered, Status: metav1.ConditionTrue}},
			Rehearsal:  &fleetflowv1alpha1.RehearsalAnswer{Revision: "3", Objects: pack(t, objects)},
		},
	}
}

func TestTheOutcomeOfAClusterIsTheOneThatMattersMost(t *testing.T) {
	answer := rehearsal.Read(answered(t, object("same", "a", ""), object("refused", "b", "exceeded quota"), object("changes", "c", "")))
	assert.Equal(t, fleetflowv1alpha1.RehearsalRefused, answer.Outcome)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Same: 1, Refused: 1, Changes: 1}, answer.Counts)
	assert.Equal(t, fleetflowv1alpha1.RehearsalSame, rehearsal.Read(answered(t, object("same", "a", ""))).Outcome)
	assert.Equal(t, fleetflowv1alpha1.RehearsalSame, rehearsal.Read(answered(t)).Outcome, "of no objects")
}

func TestNothingIsBelievedThatCannotBe(t *testing.T) {
	for sentence, spoil := range map[string]func(*fleetflowv1alpha1.MemberQuestion){
		"the answer is about another revision": func(q *fleetflowv1alpha1.MemberQuestion) { q.Status.Rehearsal.Revision = "2" },
		"the answer has more objects than were asked for": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Spec.Rehearse.Works[0].Manifests--
		},
		"the answer leaves an object out": func(q *fleetflowv1alpha1.MemberQuestion) { q.Spec.Rehearse.Works[0].Manifests++ },
		"the answer is not compressed":    func(q *fleetflowv1alpha1.MemberQuestion) { q.Status.Rehearsal.Objects = []byte("[]") },
		"the answer is cut off": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal.Objects = q.Status.Rehearsal.Objects[:len(q.Status.Rehearsal.Objects)/2]
		},
		"the answer unpacks to 100 MiB": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal.Objects = pack(t, strings.Repeat("x", 100<<20))
		},
		"the answer has an outcome of its own": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal.Objects = pack(t, []fleetflowv1alpha1.RehearsedObject{object("fine", "a", ""), object("same", "b", "")})
		},
		"the counts are made up": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal.Omitted = 7
			q.Status.Rehearsal.Counts = fleetflowv1alpha1.RehearsalCounts{Same: 2}
		},
		"the counts are negative": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Rehearsal.Omitted = -1
			q.Status.Rehearsal.Counts = fleetflowv1alpha1.RehearsalCounts{Same: 1, Changes: -1, Creates: 1}
		},
		"the answer is empty": func(q *fleetflowv1alpha1.MemberQuestion) { q.Status.Rehearsal = nil },
		"the question is not answered": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status = fleetflowv1alpha1.MemberQuestionStatus{}
		},
		"the agent does not know the question": func(q *fleetflowv1alpha1.MemberQuestion) {
			q.Status.Conditions[0].Status = metav1.ConditionFalse
			q.Status.Conditions[0].Reason = fleetflowv1alpha1.ReasonQuestionUnknown
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			question := answered(t, object("same", "a", ""), object("same", "b", ""))
			require.Equal(t, fleetflowv1alpha1.RehearsalSame, rehearsal.Read(question).Outcome)
			spoil(question)
			answer := rehearsal.Read(question)
			assert.Equal(t, fleetflowv1alpha1.RehearsalUnknown, answer.Outcome)
			require.Len(t, answer.Lines, 1)
			assert.NotEmpty(t, answer.Lines[0].Message)
		})
	}
}

func TestWordsOfAMemberAreHarmless(t *testing.T) {
	answer := rehearsal.Read(answered(t, object("refused", "a\x1b[2J<script>", "no\nmore \u202e<img src=x onerror=alert(1)> `rm` |"+strings.Repeat("é", 600))))
	line := answer.Lines[0]
	for _, said := range []string{line.Object, line.Message} {
		assert.NotContains(t, said, "<")
		assert.NotContains(t, said, "`")
		assert.NotContains(t, said, "\x1b")
		assert.NotContains(t, said, "\n")
		assert.NotContains(t, said, "\u202e")
	}
	assert.LessOrEqual(t, len(line.Message), 512)
}

func TestAnswersThatDifferByNamesAndNumbersAreOneGroup(t *testing.T) {
	tally := rehearsal.NewTally()
	for i := range 12 {
		cluster := fmt.Sprintf("member-%02d", i)
		tally.Add(cluster, rehearsal.Read(answered(t, object("refused", "a", fmt.Sprintf("exceeded quota on %s: used %d", cluster, i)))))
	}
	groups, omitted := tally.Groups()
	require.Len(t, groups, 1)
	assert.Zero(t, omitted)
	assert.EqualValues(t, 12, groups[0].ClusterCount)
	assert.Len(t, groups[0].Clusters, 10)
	assert.Equal(t, "member-00", groups[0].Clusters[0])
	assert.Equal(t, "exceeded quota on member-00: used 0", groups[0].Message)
	assert.Equal(t, fleetflowv1alpha1.RehearsalCounts{Refused: 12}, tally.Counts())
}

func TestATallyIsTheSameInWhicheverOrderAnswersCome(t *testing.T) {
	answers := map[string]*fleetflowv1alpha1.MemberQuestion{}
	var names []string
	for i := range 40 {
		name := fmt.Sprintf("m%d", i)
		names = append(names, name)
		outcomes := fleetflowv1alpha1.RehearsalOutcomes()
		answers[name] = answered(t, object(outcomes[i%3+2], "a", "because "+name), object("same", "b", ""))
		answers[name].Spec.Rehearse.Works[0].Manifests = 2
		if outcomes[i%3+2] == fleetflowv1alpha1.RehearsalRemoves {
			answers[name].Spec.Rehearse.Works[0].Manifests = 1
		}
	}
	count := func() (string, []fleetflowv1alpha1.RehearsalGroup) {
		tally := rehearsal.NewTally()
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			tally.Add(name, rehearsal.Read(answers[name]))
			tally.Add(name, rehearsal.UnknownAnswer("a second answer counts for nothing"))
		}
		groups, _ := tally.Groups()
		assert.NotEqual(t, tally.Digest("web", "1"), tally.Digest("web", "2"), "what would be written is another thing")
		return tally.Digest("web", "1"), groups
	}
	digest, groups := count()
	for range 10 {
		again, same := count()
		assert.Equal(t, digest, again)
		assert.Equal(t, groups, same)
	}
	answers["m7"] = answered(t, object("refused", "a", "no"), object("same", "b", ""))
	other, _ := count()
	assert.NotEqual(t, digest, other, "what was found is another thing")
}

func TestAMemberThatLiesCrowdsOutNoOther(t *testing.T) {
	tally := rehearsal.NewTally()
	var lies []fleetflowv1alpha1.RehearsedObject
	for i := range 3000 {
		lies = append(lies, object("refused", "x", fmt.Sprintf("lie %c%c%c", 'a'+i%26, 'a'+i/26%26, 'a'+i/676)))
	}
	tally.Add("liar", rehearsal.Read(answered(t, lies...)))
	tally.Add("honest", rehearsal.Read(answered(t, object("changes", "a", ""))))
	groups, omitted := tally.Groups()
	assert.Equal(t, fleetflowv1alpha1.RehearsalChanges, groups[len(groups)-1].Outcome, "what an honest one says is told")
	assert.LessOrEqual(t, len(groups), 100)
	assert.EqualValues(t, 3001, len(groups)+int(omitted))
}

func TestAQuestionSaysWhatFitsIntoIt(t *testing.T) {
	manifest := func(raw string) placementv1beta1.Manifest {
		return placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: []byte(raw)}}
	}
	work := placementv1beta1.Work{ObjectMeta: metav1.ObjectMeta{Name: "web-work"}}
	work.Spec.Workload.Manifests = []placementv1beta1.Manifest{manifest(`{"kind":"A"}`), manifest(`{"kind":"B"}`)}
	packer := &rehearsal.Packer{}
	works, packed, err := packer.Pack([]placementv1beta1.Work{work})
	require.NoError(t, err)
	assert.Equal(t, []fleetflowv1alpha1.RehearsedWork{{Name: "web-work", Manifests: 2}}, works)
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	var lists [][]map[string]string
	require.NoError(t, json.NewDecoder(reader).Decode(&lists))
	assert.Equal(t, [][]map[string]string{{{"kind": "A"}, {"kind": "B"}}}, lists)

	noise := make([]byte, 3<<20)
	_, _ = rand.New(rand.NewSource(1)).Read(noise) //nolint:gosec // no secret
	large, err := json.Marshal(map[string][]byte{"data": noise})
	require.NoError(t, err)
	work.Spec.Workload.Manifests = []placementv1beta1.Manifest{manifest(string(large))}
	_, _, err = packer.Pack([]placementv1beta1.Work{work})
	var tooLarge *rehearsal.TooLargeError
	require.ErrorAs(t, err, &tooLarge)
	assert.ErrorContains(t, err, "too large to ask")

	works, packed, err = packer.Pack(nil)
	require.NoError(t, err)
	assert.Empty(t, works)
	assert.Empty(t, packed)
}

package agents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

const repository = "registry.example.com:5000/member-agent"

// memberOf is a member whose agent runs a version, was asked for another at a time, and says a reason about a request of a time.
func memberOf(runs, asked string, at time.Time, reason string, about time.Time) *clusterv1beta1.MemberCluster {
	member := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.AgentImageProperty: {Value: repository + ":" + runs}, clusterv1beta1.AgentHubProperty: {Value: "https://hub:6443"},
	}
	if asked != "" {
		member.Spec.Agent = &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(at), Image: repository + ":" + asked}
	}
	if reason != "" {
		member.Status.Properties[clusterv1beta1.AgentRequestProperty] = clusterv1beta1.PropertyValue{Value: about.Format(time.RFC3339)}
		member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeAgentAsRequested, Reason: reason, Message: "said"}}
	}
	return member
}

func TestHowFarAnAgentIsWithAWish(t *testing.T) {
	before := noon.Add(-time.Hour)
	for sentence, test := range map[string]struct {
		member *clusterv1beta1.MemberCluster
		wish   Wish
		after  time.Duration
		want   State
	}{
		"one that was not asked":                      {memberOf("v1", "", before, "", before), Wish{Tag: "v2"}, 0, Unasked},
		"one that has it, also by other means":        {memberOf("v2", "", before, "", before), Wish{Tag: "v2"}, 0, Done},
		"one that has not taken it up":                {memberOf("v1", "v2", noon, "", noon), Wish{Tag: "v2"}, 0, UnderWay},
		"one that tells of an earlier request":        {memberOf("v1", "v2", noon, clusterv1beta1.ReasonAgentRequestDone, before), Wish{Tag: "v2"}, 0, UnderWay},
		"one that is about it":                        {memberOf("v1", "v2", noon, clusterv1beta1.ReasonAgentRequestUnderWay, noon), Wish{Tag: "v2"}, 0, UnderWay},
		"one that is about it for too long":           {memberOf("v1", "v2", noon, clusterv1beta1.ReasonAgentRequestUnderWay, noon), Wish{Tag: "v2"}, time.Hour, Failed},
		"one that was asked by an earlier command":    {memberOf("v1", "v2", before, clusterv1beta1.ReasonAgentRequestUnderWay, before), Wish{Tag: "v2"}, 0, UnderWay},
		"one that has done it":                        {memberOf("v2", "v2", noon, clusterv1beta1.ReasonAgentRequestDone, noon), Wish{Tag: "v2"}, 0, Done},
		"one that had done it for an earlier command": {memberOf("v2", "v2", before, clusterv1beta1.ReasonAgentRequestDone, before), Wish{Tag: "v2"}, 0, Done},
		"one that has another image since":            {memberOf("v3", "v2", before, clusterv1beta1.ReasonAgentRequestDone, before), Wish{Tag: "v2"}, 0, Unasked},
		"one that has failed":                         {memberOf("v1", "v2", noon, clusterv1beta1.ReasonAgentRequestFailed, noon), Wish{Tag: "v2"}, 0, Failed},
		"one that may not":                            {memberOf("v1", "v2", noon, clusterv1beta1.ReasonAgentRequestRefused, noon), Wish{Tag: "v2"}, 0, Refused},
		"one that has failed before is asked again":   {memberOf("v1", "v2", before, clusterv1beta1.ReasonAgentRequestFailed, before), Wish{Tag: "v2"}, 0, Unasked},
		"one that was asked for something else":       {memberOf("v1", "v2", before, clusterv1beta1.ReasonAgentRequestUnderWay, before), Wish{Tag: "v3"}, 0, Unasked},
		"one that has the hub where it is to have it": {memberOf("v1", "", before, "", before), Wish{HubURL: "https://hub:6443"}, 0, Done},
		"a token is renewed each time":                {memberOf("v1", "", before, "", before), Wish{RenewToken: true}, 0, Unasked},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.wish.Began = noon
			test.wish.Patience = 15 * time.Minute
			agent, err := test.wish.Judge(Read(test.member), noon.Add(test.after))
			require.NoError(t, err)
			assert.Equal(t, test.want, agent.State)
		})
	}
}

func TestATagNeedsARepository(t *testing.T) {
	request, err := Wish{Tag: "v2", Began: noon}.Request(Agent{Member: "one", Image: repository + "@sha256:abc"})
	require.NoError(t, err)
	assert.Equal(t, repository+":v2", request.Image)
	_, err = Wish{Tag: "v2"}.Request(Agent{Member: "one"})
	require.ErrorContains(t, err, "the agent of member/one does not say which image it runs")
}

func TestStagesGoOneAfterTheOther(t *testing.T) {
	stages := []Stage{{"canary", []string{"a"}, 1}, {"rest", []string{"b", "c", "d"}, 2}}
	for sentence, test := range map[string]struct {
		states map[string]State
		want   Step
	}{
		"the first stage is asked":               {nil, Step{Stage: 0, Ask: []string{"a"}}},
		"the second waits":                       {map[string]State{"a": UnderWay}, Step{Stage: 0, InFlight: 1}},
		"so many at once":                        {map[string]State{"a": Done}, Step{Stage: 1, Ask: []string{"b", "c"}}},
		"one follows another":                    {map[string]State{"a": Done, "b": Done, "c": UnderWay}, Step{Stage: 1, Ask: []string{"d"}, InFlight: 1}},
		"none follows one that has failed":       {map[string]State{"a": Done, "b": Failed, "c": UnderWay}, Step{Stage: 1, InFlight: 1, Failed: []Agent{{State: Failed}}}},
		"it is over once the others have ended":  {map[string]State{"a": Done, "b": Refused, "c": Done}, Step{Stage: 1, Over: true, Failed: []Agent{{State: Refused}}}},
		"one that has failed holds later stages": {map[string]State{"a": Failed}, Step{Stage: 0, Over: true, Failed: []Agent{{State: Failed}}}},
		"all are done":                           {map[string]State{"a": Done, "b": Done, "c": Done, "d": Done}, Step{Stage: 2, Over: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			states := map[string]Agent{}
			for member, state := range test.states {
				states[member] = Agent{State: state}
			}
			assert.Equal(t, test.want, Next(stages, states))
		})
	}
}

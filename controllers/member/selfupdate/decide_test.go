package selfupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

var (
	noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	former = Setup{Image: "registry.example.com/member-agent:v1", HubURL: "https://hub:6443"}
	wanted = Setup{Image: "registry.example.com/member-agent:v2", HubURL: "https://hub:6443"}
	owner  = Allowed{Repositories: []string{"registry.example.com/member-agent"}, Pinned: true}
)

func requestOf(at time.Time, edit func(*clusterv1beta1.AgentRequest)) *clusterv1beta1.AgentRequest {
	request := &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(at), Image: wanted.Image}
	if edit != nil {
		edit(request)
	}
	return request
}

func trialSince(started time.Time) *Record {
	return &Record{RequestTime: metav1.NewTime(noon), Phase: PhaseTrial, From: former, To: wanted, Started: metav1.NewTime(started)}
}

func TestDecide(t *testing.T) {
	for sentence, test := range map[string]struct {
		edit     func(*Facts)
		template *Setup
		phase    Phase
		reason   string
	}{
		"an image that is asked for is put on trial":       {func(*Facts) {}, &wanted, PhaseTrial, clusterv1beta1.ReasonAgentRequestUnderWay},
		"nothing is done unasked":                          {func(f *Facts) { f.Request = nil }, nil, "", ""},
		"an obstacle on the cluster is a refusal":          {func(f *Facts) { f.Obstacle = "no" }, nil, "", clusterv1beta1.ReasonAgentRequestRefused},
		"an image of another repository is refused":        {func(f *Facts) { f.Request.Image = "evil.example.com/x:v2" }, nil, "", clusterv1beta1.ReasonAgentRequestRefused},
		"an agent that reports with what is asked is done": {func(f *Facts) { f.Self, f.Template, f.Reported = wanted, wanted, true }, nil, PhaseDone, clusterv1beta1.ReasonAgentRequestDone},
		"an agent that has not reported with what is asked is awaited": {func(f *Facts) { f.Self, f.Template = wanted, wanted }, nil, "",
			clusterv1beta1.ReasonAgentRequestUnderWay},
		"a trial lasts while there is time": {func(f *Facts) {
			f.Template, f.Record, f.Reported = wanted, trialSince(noon.Add(-9*time.Minute)), true
		}, nil, "", clusterv1beta1.ReasonAgentRequestUnderWay},
		"a trial ends well with a report of the new agent": {func(f *Facts) {
			f.Self, f.Template, f.Record, f.Reported = wanted, wanted, trialSince(noon), true
		}, nil, PhaseDone, clusterv1beta1.ReasonAgentRequestDone},
		"after a trial without a report the old agent is back": {func(f *Facts) {
			f.Template, f.Record, f.Reported = wanted, trialSince(noon.Add(-10*time.Minute)), true
		}, &former, PhaseFailed, clusterv1beta1.ReasonAgentRequestFailed},
		"a new agent that works and cannot report brings the old one back": {func(f *Facts) {
			f.Self, f.Template, f.Record = wanted, wanted, trialSince(noon.Add(-10*time.Minute))
		}, &former, PhaseFailed, clusterv1beta1.ReasonAgentRequestFailed},
		"a request that is withdrawn leaves the trial to its end": {func(f *Facts) {
			f.Request = nil
			f.Template, f.Record = wanted, trialSince(noon.Add(-10*time.Minute))
		}, &former, PhaseFailed, clusterv1beta1.ReasonAgentRequestFailed},
		"what is changed on the cluster meanwhile stays": {func(f *Facts) {
			f.Template, f.Record = Setup{Image: "other:v3", HubURL: former.HubURL}, trialSince(noon)
		}, nil, PhaseFailed, clusterv1beta1.ReasonAgentRequestFailed},
		"a request that has failed is not tried again": {func(f *Facts) {
			f.Record = trialSince(noon)
			f.Record.Phase = PhaseFailed
		}, nil, "", clusterv1beta1.ReasonAgentRequestFailed},
		"a request that was met is not met again, whatever was done on the cluster since": {func(f *Facts) {
			f.Record = trialSince(noon)
			f.Record.Phase = PhaseDone
		}, nil, "", clusterv1beta1.ReasonAgentRequestDone},
		"the same request of a later time is tried again": {func(f *Facts) {
			f.Record = trialSince(noon)
			f.Record.Phase = PhaseFailed
			f.Request.RequestTime = metav1.NewTime(noon.Add(time.Minute))
		}, &wanted, PhaseTrial, clusterv1beta1.ReasonAgentRequestUnderWay},
		"a later request for the old image ends a trial at once": {func(f *Facts) {
			f.Template, f.Record = wanted, trialSince(noon)
			f.Request = requestOf(noon.Add(time.Minute), func(r *clusterv1beta1.AgentRequest) { r.Image = former.Image })
		}, &former, PhaseTrial, clusterv1beta1.ReasonAgentRequestUnderWay},
		"a later request that is refused leaves the trial": {func(f *Facts) {
			f.Template, f.Record = wanted, trialSince(noon)
			f.Request = requestOf(noon.Add(time.Minute), func(r *clusterv1beta1.AgentRequest) { r.Image = "evil.example.com/x:v2" })
		}, nil, "", clusterv1beta1.ReasonAgentRequestUnderWay},
		"a token is awaited without a change of the Deployment": {func(f *Facts) {
			f.Request = &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(noon), RenewToken: true}
			f.Token.Pending = true
		}, nil, "", clusterv1beta1.ReasonAgentRequestUnderWay},
		"a token can be asked for where the Deployment cannot be changed": {func(f *Facts) {
			f.Request = &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(noon), RenewToken: true}
			f.Obstacle = "no"
		}, nil, "", clusterv1beta1.ReasonAgentRequestDone},
		"a token that cannot be renewed is a refusal": {func(f *Facts) {
			f.Request = &clusterv1beta1.AgentRequest{RequestTime: metav1.NewTime(noon), RenewToken: true}
			f.Token.Obstacle = "it does not end"
		}, nil, "", clusterv1beta1.ReasonAgentRequestRefused},
	} {
		t.Run(sentence, func(t *testing.T) {
			facts := Facts{Request: requestOf(noon, nil), Self: former, Template: former, Timeout: 10 * time.Minute, Now: noon}
			test.edit(&facts)
			decision := Decide(facts, owner)
			assert.Equal(t, test.template, decision.Template)
			phase := Phase("")
			if decision.Record != nil {
				phase = decision.Record.Phase
			}
			assert.Equal(t, test.phase, phase)
			reason := ""
			if decision.Finding != nil {
				reason = decision.Finding.Reason
				assert.Equal(t, reason == clusterv1beta1.ReasonAgentRequestDone, decision.Finding.Status == metav1.ConditionTrue)
				assert.NotEmpty(t, decision.Finding.Message)
			}
			assert.Equal(t, test.reason, reason)
		})
	}
}

func TestALaterRequestForTheOldImageIsDoneByTheAgentThatStayed(t *testing.T) {
	facts := Facts{
		Request: requestOf(noon.Add(time.Minute), func(r *clusterv1beta1.AgentRequest) { r.Image = former.Image }),
		Self:    former, Template: wanted, Record: trialSince(noon), Reported: true, Timeout: 10 * time.Minute, Now: noon.Add(time.Minute),
	}
	first := Decide(facts, owner)
	require.NotNil(t, first.Template)
	facts.Template = *first.Template
	facts.Record = first.Record
	second := Decide(facts, owner)
	require.NotNil(t, second.Record)
	assert.Equal(t, PhaseDone, second.Record.Phase)
}

func TestWhatTheOwnerAllows(t *testing.T) {
	const digest = "@sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for sentence, test := range map[string]struct {
		allowed       Allowed
		present, next Setup
		want          string
	}{
		"the repository of the chart":       {owner, former, wanted, ""},
		"a repository that only begins so":  {owner, former, Setup{Image: "registry.example.com/member-agent-evil:v2"}, "images of registry.example.com/member-agent only"},
		"a repository below it":             {owner, former, Setup{Image: "registry.example.com/member-agent/evil:v2"}, "images of registry.example.com/member-agent only"},
		"a digest for a digest":             {owner, Setup{Image: "registry.example.com/member-agent" + digest}, Setup{Image: "registry.example.com/member-agent" + digest[:70] + "9"}, ""},
		"no tag for a digest":               {owner, Setup{Image: "registry.example.com/member-agent" + digest}, wanted, "name the image by its digest"},
		"an address of the known authority": {owner, former, Setup{HubURL: "https://new:6443"}, ""},
		"no address without an authority":   {Allowed{}, former, Setup{HubURL: "https://new:6443"}, "any server could pass for the hub"},
		"an address that the owner names":   {Allowed{HubURLs: []string{"https://new:6443"}}, former, Setup{HubURL: "https://new:6443"}, ""},
		"no address that the owner does not name": {Allowed{HubURLs: []string{"https://new:6443"}, Pinned: true}, former, Setup{HubURL: "https://new:6443.evil.example.com"},
			"does not let the agent have the hub at https://new:6443.evil.example.com"},
		"what is there already": {Allowed{}, former, former, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			request := &clusterv1beta1.AgentRequest{Image: test.next.Image, HubURL: test.next.HubURL}
			why := refuseRequest(Facts{Request: request, Template: test.present}, test.allowed)
			if test.want == "" {
				assert.Empty(t, why)
				return
			}
			assert.Contains(t, why, test.want)
		})
	}
}

func TestTheRepositoryOfAnImage(t *testing.T) {
	for image, want := range map[string]string{
		"member-agent":                      "member-agent",
		"registry:5000/member-agent":        "registry:5000/member-agent",
		"registry:5000/member-agent:v1":     "registry:5000/member-agent",
		"registry:5000/a/b:v1@sha256:abc":   "registry:5000/a/b",
		"registry.example.com/a@sha256:abc": "registry.example.com/a",
	} {
		assert.Equal(t, want, Repository(image), image)
	}
}

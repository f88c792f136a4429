// Package agents shows the agents of members and asks them to change themselves, in stages: kubectl fleet agents. How far an agent is,
// and who is asked next, is decided by what is in the MemberClusters alone, so that a command can be run again and goes on where it was.
package agents

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// Agent is the agent of a member.
type Agent struct {
	Member     string       `json:"member"`
	Version    string       `json:"version,omitempty"`
	Image      string       `json:"image,omitempty"`
	HubAddress string       `json:"hubAddress,omitempty"`
	TokenEnds  string       `json:"tokenEnds,omitempty"`
	LastReport *metav1.Time `json:"lastReport,omitempty"`
	// Request is what was asked of the agent last; nil if nothing was.
	Request *clusterv1beta1.AgentRequest `json:"request,omitempty"`
	// State is how far the agent is with it, Message what it says.
	State   State  `json:"state,omitempty"`
	Message string `json:"message,omitempty"`
}

// State is how far an agent is with a request.
type State string

// States of a request.
const (
	// Unasked means that the agent is not as wanted, and was not asked.
	Unasked State = ""
	// UnderWay means that the agent was asked and has not said how it ended.
	UnderWay State = "UnderWay"
	// Done means that the agent has reported with what was asked for.
	Done State = "Done"
	// Refused means that the owner of the cluster does not let it.
	Refused State = "Refused"
	// Failed means that the agent is another one than was asked for, or has not said in time how it ended.
	Failed State = "Failed"
)

// Over reports whether nothing more is to come.
func (s State) Over() bool { return s == Done || s == Refused || s == Failed }

// Read returns the agent of a member, and how far it is with what was asked of it last.
func Read(member *clusterv1beta1.MemberCluster) Agent {
	property := func(name clusterv1beta1.PropertyName) string { return member.Status.Properties[name].Value }
	agent := Agent{
		Member: member.Name, Version: property(clusterv1beta1.AgentVersionProperty), Image: property(clusterv1beta1.AgentImageProperty),
		HubAddress: property(clusterv1beta1.AgentHubProperty), TokenEnds: property(clusterv1beta1.AgentTokenEndProperty),
		Request: member.Spec.Agent,
	}
	for i := range member.Status.AgentStatus {
		if status := &member.Status.AgentStatus[i]; status.Type == clusterv1beta1.MemberAgent {
			agent.LastReport = &status.LastReceivedHeartbeat
		}
	}
	if agent.Request == nil {
		return agent
	}
	agent.State = UnderWay
	said := meta.FindStatusCondition(member.Status.Conditions, clusterv1beta1.ConditionTypeAgentAsRequested)
	if said == nil || property(clusterv1beta1.AgentRequestProperty) != agent.Request.RequestTime.UTC().Format(time.RFC3339) {
		agent.Message = "the agent has not taken the request up"
		return agent
	}
	agent.Message = said.Message
	switch said.Reason {
	case clusterv1beta1.ReasonAgentRequestDone:
		agent.State = Done
	case clusterv1beta1.ReasonAgentRequestRefused:
		agent.State = Refused
	case clusterv1beta1.ReasonAgentRequestFailed:
		agent.State = Failed
	}
	return agent
}

// Wish is what agents are to be.
type Wish struct {
	// Image is the image they are to run; or Tag is its tag, of the repository that each has its image of.
	Image, Tag string
	HubURL     string
	RenewToken bool
	// Began is when the user asked for it: what has failed before is asked again.
	Began time.Time
	// Patience is how long an agent may take.
	Patience time.Duration
}

// Request returns what the wish asks of an agent.
func (w Wish) Request(agent Agent) (*clusterv1beta1.AgentRequest, error) {
	request := &clusterv1beta1.AgentRequest{
		RequestTime: metav1.NewTime(w.Began.UTC().Truncate(time.Second)), Image: w.Image, HubURL: w.HubURL, RenewToken: w.RenewToken,
	}
	if w.Tag == "" {
		return request, nil
	}
	repository := repositoryOf(agent.Image)
	if repository == "" {
		return nil, fmt.Errorf("the agent of member/%s does not say which image it runs, so its repository is not known: give --image, or upgrade this agent on its cluster once", agent.Member)
	}
	request.Image = repository + ":" + w.Tag
	return request, nil
}

// repositoryOf returns an image without its tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[:colon]
	}
	return image
}

// Judge returns an agent with how far it is with a wish, which may be another than what was asked of it last.
func (w Wish) Judge(agent Agent, now time.Time) (Agent, error) {
	request, err := w.Request(agent)
	if err != nil {
		return agent, err
	}
	asked := agent.Request
	same := asked != nil && asked.Image == request.Image && asked.HubURL == request.HubURL && asked.RenewToken == request.RenewToken
	earlier := same && asked.RequestTime.Before(&request.RequestTime)
	switch {
	case !same && !w.RenewToken && w.isFulfilled(agent, request):
		agent.State = Done
	case !same, earlier && agent.State.Over() && !w.stillDone(agent, request):
		agent.State = Unasked
		agent.Message = ""
	case agent.State == UnderWay && now.Sub(laterOf(asked.RequestTime.Time, w.Began)) >= w.Patience:
		agent.State = Failed
		agent.Message = fmt.Sprintf("not within %s: %s", w.Patience, agent.Message)
	}
	return agent, nil
}

// isFulfilled reports whether an agent has what is requested, be it by a request or by its chart.
func (w Wish) isFulfilled(agent Agent, request *clusterv1beta1.AgentRequest) bool {
	return (request.Image == "" || request.Image == agent.Image) && (request.HubURL == "" || request.HubURL == agent.HubAddress)
}

// stillDone reports whether what an earlier request has brought about is still so. A token is renewed each time it is asked for.
func (w Wish) stillDone(agent Agent, request *clusterv1beta1.AgentRequest) bool {
	return agent.State == Done && !w.RenewToken && w.isFulfilled(agent, request)
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

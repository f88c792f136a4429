package agents

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// withAgent is a member of a region whose agent runs a version.
func withAgent(name, region, version string) *clusterv1beta1.MemberCluster {
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"), Generation: 1, Labels: map[string]string{"region": region}},
	}
	member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.AgentVersionProperty: {Value: version}, clusterv1beta1.AgentImageProperty: {Value: "registry.example.com/member-agent:" + version},
		clusterv1beta1.AgentHubProperty: {Value: "https://hub:6443"},
	}
	return member
}

// byRegion is a strategy with a stage for each region.
func byRegion() *placementv1beta1.ClusterStagedUpdateStrategy {
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "by-region"}}
	two := intstr.FromInt32(2)
	for _, region := range []string{"west", "east"} {
		strategy.Spec.Stages = append(strategy.Spec.Stages, placementv1beta1.StageConfig{
			Name: region, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"region": region}}, MaxConcurrency: &two,
		})
	}
	return strategy
}

// answer has the agents of the fleet do what they are asked, in the order in which they are asked, until all have; those of refusing refuse.
func answer(t *testing.T, c *terminal.Console, members int, refusing ...string) (asked func() []string) {
	watcher, err := c.Hub.Watch(t.Context(), &clusterv1beta1.MemberClusterList{})
	require.NoError(t, err)
	var order []string
	ended := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(ended)
		defer watcher.Stop()
		for len(order) < members {
			select {
			case <-stopped:
				return
			case event, open := <-watcher.ResultChan():
				member, is := event.Object.(*clusterv1beta1.MemberCluster)
				if !open || !is || member.Spec.Agent == nil || len(member.Status.Conditions) > 0 {
					continue
				}
				order = append(order, member.Name)
				reason := clusterv1beta1.ReasonAgentRequestDone
				for _, name := range refusing {
					if name == member.Name {
						reason = clusterv1beta1.ReasonAgentRequestRefused
					}
				}
				if !assert.NoError(t, report(t, c, member, reason)) {
					return
				}
			}
		}
	}()
	return func() []string {
		close(stopped)
		<-ended
		return order
	}
}

// report writes what an agent says of what it was asked.
func report(t *testing.T, c *terminal.Console, member *clusterv1beta1.MemberCluster, reason string) error {
	fresh := &clusterv1beta1.MemberCluster{}
	if err := c.Hub.Get(t.Context(), client.ObjectKeyFromObject(member), fresh); err != nil {
		return err
	}
	request := fresh.Spec.Agent
	fresh.Status.Properties[clusterv1beta1.AgentRequestProperty] = clusterv1beta1.PropertyValue{Value: request.RequestTime.UTC().Format(time.RFC3339)}
	if reason == clusterv1beta1.ReasonAgentRequestDone {
		fresh.Status.Properties[clusterv1beta1.AgentImageProperty] = clusterv1beta1.PropertyValue{Value: request.Image}
	}
	fresh.Status.Conditions = []metav1.Condition{{
		Type: clusterv1beta1.ConditionTypeAgentAsRequested, Status: metav1.ConditionTrue, Reason: reason, Message: "says the agent",
		LastTransitionTime: request.RequestTime,
	}}
	return c.Hub.Status().Update(t.Context(), fresh)
}

func TestAgentsAreUpgradedStageByStage(t *testing.T) {
	c := terminal.New(t, withAgent("a", "east", "v1"), withAgent("b", "west", "v1"), withAgent("c", "west", "v2"), byRegion())
	asked := answer(t, c, 2)
	require.NoError(t, c.Run(New, "upgrade", "--version", "v2", "--strategy", "by-region", "--yes"))
	assert.Equal(t, []string{"b", "a"}, asked())
	assert.Contains(t, c.Out.String(), "stage west: 1 of 2 agents as wanted; 2 at the same time: b\n")
	assert.Contains(t, c.Out.String(), "member/b asked for member-agent:v2\n")
	assert.Contains(t, c.Out.String(), "stage east: member/a is as wanted")
	untouched := &clusterv1beta1.MemberCluster{}
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "c"}, untouched))
	assert.Nil(t, untouched.Spec.Agent, "it has that version already")

	require.NoError(t, c.Run(New, "upgrade", "--version", "v2", "--strategy", "by-region"), "there is nothing to ask, nor to answer")
}

func TestNoAgentIsAskedAfterOneThatRefuses(t *testing.T) {
	c := terminal.New(t, withAgent("a", "east", "v1"), withAgent("b", "west", "v1"), byRegion())
	asked := answer(t, c, 1, "b")
	err := c.Run(New, "upgrade", "--version", "v2", "--strategy", "by-region", "--yes")
	require.ErrorContains(t, err, "stage west has agents that are not as wanted; no other was asked")
	require.ErrorContains(t, err, "member/b: says the agent")
	assert.Equal(t, []string{"b"}, asked())

	require.NoError(t, c.Run(New, "-o", "wide"))
	assert.Regexp(t, `b +v1 +member-agent:v2: refused`, c.Out.String())
}

func TestADryRunAsksNoAgent(t *testing.T) {
	c := terminal.New(t, withAgent("a", "east", "v1"), byRegion())
	require.NoError(t, c.Run(New, "upgrade", "--version", "v2", "--strategy", "by-region", "--dry-run"))
	assert.Contains(t, c.Out.String(), "member/a asked for member-agent:v2 (dry run)")
	member := &clusterv1beta1.MemberCluster{}
	require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "a"}, member))
	assert.Nil(t, member.Spec.Agent)
}

func TestWhatCannotBeAskedOfAgentsIsSaid(t *testing.T) {
	silent := withAgent("a", "east", "v1")
	delete(silent.Status.Properties, clusterv1beta1.AgentImageProperty)
	for sentence, test := range map[string]struct {
		args []string
		want string
	}{
		"no image":                             {[]string{"upgrade"}, "give either --version"},
		"two images":                           {[]string{"upgrade", "--version", "v2", "--image", "a:b"}, "give either --version"},
		"an agent that does not say its image": {[]string{"upgrade", "--version", "v2"}, "the agent of member/a does not say which image it runs"},
		"a member that is not there":           {[]string{"upgrade", "zoe", "--version", "v2"}, `there is no member named "zoe"`},
		"a strategy that is not there":         {[]string{"upgrade", "--image", "a:b", "--strategy", "none"}, `there is no ClusterStagedUpdateStrategy "none"`},
		"a stage that is not there":            {[]string{"upgrade", "--image", "a:b", "--strategy", "by-region", "--until-stage", "north"}, `by-region has no stage "north"`},
		"a stage of no strategy":               {[]string{"upgrade", "--image", "a:b", "--until-stage", "west"}, "give --strategy, too"},
		"an address that is not secure":        {[]string{"readdress", "--hub-url", "http://hub"}, `--hub-url "http://hub" is not an address`},
		"a selector that is none":              {[]string{"renew-token", "-l", "a=("}, "is no label selector"},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := terminal.New(t, silent.DeepCopy(), byRegion())
			assert.ErrorContains(t, c.Run(New, append(test.args, "--yes")...), test.want)
		})
	}
}

package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// joinEvery is how often joining is looked at: often enough to notice the second in which the last member joined.
const joinEvery = 100 * time.Millisecond

// Membership is what the hub says about a member.
type Membership struct {
	Name    string `json:"name"`
	Joined  string `json:"joined"`
	Healthy string `json:"healthy"`
	// Heartbeat is when the member's agent last reported, to the second.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
}

// Memberships asks the hub about all members of the fleet.
func Memberships(ctx context.Context, c client.Client, fleet *state.Fleet) ([]Membership, error) {
	list := &clusterv1beta1.MemberClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the member clusters: %w", err)
	}
	byName := map[string]clusterv1beta1.MemberClusterStatus{}
	for _, member := range list.Items {
		byName[member.Name] = member.Status
	}
	memberships := make([]Membership, 0, fleet.Members)
	for _, name := range fleet.MemberNames() {
		memberships = append(memberships, membership(name, byName[name]))
	}
	return memberships, nil
}

func membership(name string, said clusterv1beta1.MemberClusterStatus) Membership {
	m := Membership{Name: name, Joined: string(metav1.ConditionUnknown), Healthy: string(metav1.ConditionUnknown),
		Heartbeat: lastHeartbeat(said.AgentStatus)}
	if joined := meta.FindStatusCondition(said.Conditions, clusterv1beta1.ConditionTypeJoined); joined != nil {
		m.Joined = string(joined.Status)
	}
	if healthy := meta.FindStatusCondition(said.Conditions, clusterv1beta1.ConditionTypeHealthy); healthy != nil {
		m.Healthy = string(healthy.Status)
	}
	return m
}

// lastHeartbeat returns the newest heartbeat of some agents.
func lastHeartbeat(agents []clusterv1beta1.AgentStatus) time.Time {
	var latest time.Time
	for _, agent := range agents {
		if agent.LastReceivedHeartbeat.After(latest) {
			latest = agent.LastReceivedHeartbeat.Time
		}
	}
	return latest
}

// AwaitJoined returns when every member is joined and its agent has reported since the given time: a fleet that was down
// remembers its members as joined. It calls report with the members that are still missing.
func AwaitJoined(ctx context.Context, c client.Client, fleet *state.Fleet, since time.Time, report func(missing []string)) error {
	var missing []string
	var lastError error
	err := wait.PollUntilContextCancel(ctx, joinEvery, true, func(ctx context.Context) (bool, error) {
		memberships, err := Memberships(ctx, c, fleet)
		if err != nil {
			lastError = err
			return false, nil //nolint:nilerr // asked again, and reported when the time is up
		}
		lastError = nil
		missing = nil
		for _, m := range memberships {
			if m.Joined != string(metav1.ConditionTrue) || !heardSince(ctx, c, m, since) {
				missing = append(missing, m.Name)
			}
		}
		report(missing)
		return len(missing) == 0, nil
	})
	if err != nil && lastError != nil {
		return fmt.Errorf("waiting for the members to join: %w", lastError)
	}
	if err != nil {
		return fmt.Errorf("waiting for %v to join: %w", missing, err)
	}
	return nil
}

// heardSince asks the member's own object too: the hub copies heartbeats from there, at its own pace.
func heardSince(ctx context.Context, c client.Client, m Membership, since time.Time) bool {
	// Heartbeats are kept to the second.
	since = since.Truncate(time.Second)
	if !m.Heartbeat.Before(since) {
		return true
	}
	mailbox := &clusterv1beta1.InternalMemberCluster{}
	err := c.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.MemberNamespace(m.Name), Name: m.Name}, mailbox)
	return err == nil && !lastHeartbeat(mailbox.Status.AgentStatus).Before(since)
}

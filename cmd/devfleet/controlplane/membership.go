package controlplane

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/fleetflow/fleetflow/cmd/devfleet/state"
)

var internalMemberClusters = schema.GroupVersionResource{
	Group: "cluster.kubernetes-fleet.io", Version: "v1beta1", Resource: "internalmemberclusters",
}

// joinEvery is how often joining is looked at: often enough to notice the second in which the last member joined.
const joinEvery = 100 * time.Millisecond

// Membership is what the hub says about a member.
type Membership struct {
	Name    string `json:"name"`
	Joined  string `json:"joined"`
	Healthy string `json:"healthy"`
	// Heartbeat is when the member's agent was last heard of, to the second.
	Heartbeat time.Time `json:"heartbeat,omitzero"`
}

// Memberships asks the hub about all members of the fleet.
func Memberships(ctx context.Context, client dynamic.Interface, fleet *state.Fleet) ([]Membership, error) {
	list, err := client.Resource(memberClusters).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the member clusters: %w", err)
	}
	byName := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		byName[list.Items[i].GetName()] = &list.Items[i]
	}
	memberships := make([]Membership, 0, fleet.Members)
	for _, name := range fleet.MemberNames() {
		m := Membership{Name: name, Joined: "Unknown", Healthy: "Unknown"}
		if object := byName[name]; object != nil {
			m = membership(object)
		}
		memberships = append(memberships, m)
	}
	return memberships, nil
}

func membership(object *unstructured.Unstructured) Membership {
	m := Membership{
		Name:   object.GetName(),
		Joined: conditionStatus(object, "Joined"), Healthy: conditionStatus(object, "Healthy"),
		Heartbeat: lastHeartbeat(object),
	}
	if m.Joined == "" {
		m.Joined = "Unknown"
	}
	if m.Healthy == "" {
		m.Healthy = "Unknown"
	}
	return m
}

// lastHeartbeat returns the newest heartbeat of the agents in a status.
func lastHeartbeat(object *unstructured.Unstructured) time.Time {
	var latest time.Time
	agents, _, _ := unstructured.NestedSlice(object.Object, "status", "agentStatus")
	for _, agent := range agents {
		fields, ok := agent.(map[string]any)
		if !ok {
			continue
		}
		text, _, _ := unstructured.NestedString(fields, "lastReceivedHeartbeat")
		if heartbeat, err := time.Parse(time.RFC3339, text); err == nil && heartbeat.After(latest) {
			latest = heartbeat
		}
	}
	return latest
}

// AwaitJoined returns when every member is joined and its agent has been heard of since the given time: a fleet that
// was down remembers its members as joined. It calls report with the members that are still missing.
func AwaitJoined(ctx context.Context, client dynamic.Interface, fleet *state.Fleet, since time.Time, report func(missing []string)) error {
	var missing []string
	var lastError error
	err := wait.PollUntilContextCancel(ctx, joinEvery, true, func(ctx context.Context) (bool, error) {
		memberships, err := Memberships(ctx, client, fleet)
		if err != nil {
			lastError = err
			return false, nil //nolint:nilerr // asked again, and reported when the time is up
		}
		lastError, missing = nil, nil
		for _, m := range memberships {
			if m.Joined != string(metav1.ConditionTrue) || !heardSince(ctx, client, m, since) {
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
func heardSince(ctx context.Context, client dynamic.Interface, m Membership, since time.Time) bool {
	// Heartbeats are kept to the second.
	since = since.Truncate(time.Second)
	if !m.Heartbeat.Before(since) {
		return true
	}
	object, err := client.Resource(internalMemberClusters).Namespace("fleet-member-"+m.Name).Get(ctx, m.Name, metav1.GetOptions{})
	return err == nil && !lastHeartbeat(object).Before(since)
}

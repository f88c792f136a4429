// Package kubefleet has what tells that the agents of KubeFleet run, whose API fleetflow shares: the leases that they hold,
// the webhooks that they register, and the names by which they write. Two agents that both follow this API undo each other's
// writes, so those of fleetflow stand back, and `kubectl fleet migrate check` says who runs.
package kubefleet

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Lease names the object by which the replicas of an agent agree on who works.
type Lease struct {
	Namespace, Name string
	// Agent is what the holder is called in sentences.
	Agent string
}

// Leases of KubeFleet's agents where its charts put them. An agent that was told to elect no leader, or to keep its lease in
// another namespace, cannot be known by them.
var (
	// HubAgentLease is on the hub.
	HubAgentLease = Lease{Namespace: "fleet-system", Name: "136224848560.hub.fleet.azure.com", Agent: "KubeFleet's hub agent"}
	// MemberAgentLease is on each member.
	MemberAgentLease = Lease{Namespace: "kube-system", Name: "136224848560.member.fleet.azure.com", Agent: "KubeFleet's member agent"}
)

// Field managers by which KubeFleet's agents write on the hub: the names of their programs.
const (
	HubAgentManager    = "hubagent"
	MemberAgentManager = "memberagent"
)

// Webhook configurations that KubeFleet's hub agent registers by itself. They stay when it is uninstalled, and what they
// intercept is then refused.
var (
	ValidatingWebhooks = []string{"fleet-guard-rail-webhook-configuration", "fleet-validating-webhook-configuration"}
	MutatingWebhooks   = []string{"fleet-mutating-webhook-configuration"}
)

// AdmissionPolicies are those that KubeFleet's hub agent makes if it is told to; each has a binding of its name with -binding behind
// it. They stay when the agent is uninstalled, and go on refusing.
var AdmissionPolicies = []string{
	"deny-pods-and-replicasets-outside-reserved-namespaces",
	"deny-serviceaccounts-and-tokenrequests-in-reserved-namespaces",
}

// OwnGroup is the API group of KubeFleet's that fleetflow does not have; OwnKinds are those of its kinds that users make.
const OwnGroup = "placement.kubefleet.dev"

// OwnKinds are described at OwnGroup.
var OwnKinds = []string{"ClusterPlacementPolicy", "ClusterRequest", "PlacementPolicy"}

// defaultLeaseDuration is how long a lease counts that says nothing of it.
const defaultLeaseDuration = 15 * time.Second

// Hold names the holder of a lease and the time until which the lease is to be respected. It is zero for a lease that is free.
type Hold struct {
	Holder  string
	Until   time.Time
	renewed time.Time
}

// Observe returns the hold after the lease was seen at a time; with nil, that there is none. The clock of the holder may
// differ: a renewal that is seen counts from when it is seen, and only for the first sight does its own time count.
func (h Hold) Observe(lease *coordinationv1.Lease, now time.Time) Hold {
	if lease == nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil {
		return Hold{}
	}
	duration := defaultLeaseDuration
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
		duration = time.Duration(*seconds) * time.Second
	}
	seen := Hold{Holder: *lease.Spec.HolderIdentity, renewed: lease.Spec.RenewTime.Time}
	switch {
	case h.renewed.IsZero():
		seen.Until = seen.renewed.Add(duration)
	case seen.renewed.Equal(h.renewed):
		seen.Until = h.Until
	default:
		seen.Until = now.Add(duration)
	}
	return seen
}

// IsHeld reports whether the lease is to be respected at a time.
func (h Hold) IsHeld(now time.Time) bool { return now.Before(h.Until) }

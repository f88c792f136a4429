package migration

import (
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/kubefleet"
)

// Weight is how much a finding matters.
type Weight string

const (
	// InTheWay has to be dealt with before the move, or is lost by it.
	InTheWay Weight = "InTheWay"
	// NoCounterpart is what the other side does not do.
	NoCounterpart Weight = "NoCounterpart"
	// Note is good to know.
	Note Weight = "Note"
)

// Finding is something to know about a move.
type Finding struct {
	Weight Weight `json:"weight"`
	// Reason is for scripts.
	Reason string `json:"reason"`
	// Object it is about, as in ClusterResourcePlacement/web; empty if it is about the hub.
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
}

// Agents says who runs.
type Agents struct {
	// KubeFleet and Fleetflow are the holders of the leases of the hub agents, empty if there are none.
	KubeFleet string `json:"kubeFleetHubAgent,omitempty"`
	Fleetflow string `json:"fleetflowHubAgent,omitempty"`
	// Members counts the member agents of KubeFleet, of fleetflow, and of unknown kind.
	Members struct {
		KubeFleet int `json:"kubeFleet"`
		Fleetflow int `json:"fleetflow"`
		Unknown   int `json:"unknown"`
	} `json:"members"`
}

// Placement is what there is of a placement.
type Placement struct {
	Object    string `json:"object"`
	Strategy  string `json:"strategy"`
	Clusters  int    `json:"clusters"`
	Available int    `json:"available"`
	Bindings  int    `json:"bindings"`
	Policies  int    `json:"policySnapshots"`
	Snapshots int    `json:"resourceSnapshots"`
	Works     int    `json:"works"`
	Runs      int    `json:"runs"`
	// RolledOutAgain is to how many clusters KubeFleet would roll out once more what they have; only on the way back.
	RolledOutAgain int `json:"rolledOutAgain,omitempty"`
	// Adopted says that the other side goes on with it where it stands.
	Adopted bool `json:"adopted"`
}

// UnderWay is something that the move meets in the middle.
type UnderWay struct {
	Object string `json:"object"`
	Where  string `json:"where"`
}

// Writes is what would be written of a kind.
type Writes struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	// On says where: on the hub, or on the members.
	On   string `json:"on"`
	What string `json:"what"`
}

// The places of writes.
const (
	onHub     = "hub"
	onMembers = "members"
)

// Report is what a check has found.
type Report struct {
	// To is where the move goes: fleetflow or kubefleet.
	To         string      `json:"to"`
	Agents     Agents      `json:"agents"`
	Placements []Placement `json:"placements"`
	Total      Placement   `json:"total"`
	UnderWay   []UnderWay  `json:"underWay"`
	Writes     []Writes    `json:"writes"`
	Findings   []Finding   `json:"findings"`
}

// Has reports whether there are findings of a weight.
func (r *Report) Has(weight Weight) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Weight == weight })
}

// Of returns the findings of a weight.
func (r *Report) Of(weight Weight) []Finding {
	return slices.DeleteFunc(slices.Clone(r.Findings), func(f Finding) bool { return f.Weight != weight })
}

func (r *Report) find(weight Weight, reason, object, message string) {
	r.Findings = append(r.Findings, Finding{weight, reason, object, message})
}

func (r *Report) write(kind string, count int, what string) { r.writeOn(onHub, kind, count, what) }

func (r *Report) writeOn(place, kind string, count int, what string) {
	if count > 0 {
		r.Writes = append(r.Writes, Writes{Kind: kind, Count: count, On: place, What: what})
	}
}

// writtenBy returns when a manager last wrote an object; zero if it has not, or if no record of that is kept.
func writtenBy(o metav1.Object, manager string) (last metav1.Time) {
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == manager && entry.Time != nil && last.Before(entry.Time) {
			last = *entry.Time
		}
	}
	return last
}

// holderOf returns who holds a lease; empty if none does.
func holderOf(lease *coordinationv1.Lease, now time.Time) string {
	if hold := (kubefleet.Hold{}).Observe(lease, now); hold.IsHeld(now) {
		return hold.Holder
	}
	return ""
}

// rolledOutAgain notes to how many clusters what a placement has placed is rolled out once more.
func (r *Report) rolledOutAgain(placement string, clusters int) {
	r.Total.RolledOutAgain += clusters
	for i := range r.Placements {
		if r.Placements[i].Object == placement {
			r.Placements[i].RolledOutAgain = clusters
		}
	}
}

package web

import (
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
)

// meView is what the page about the user shows.
type meView struct {
	Name   string
	Groups []string
	Until  time.Time
	// LogsOut says that there is a session to end.
	LogsOut bool
	Rights  []rightView
}

// rightView is something that the user may do, or why not.
type rightView struct{ What, Refusal string }

// deeds returns what the pages can do, with what it takes.
func deeds() []struct {
	what  string
	right as.Right
} {
	group := placementv1beta1.GroupVersion.Group
	return []struct {
		what  string
		right as.Right
	}{
		{"approve stages of runs", as.Right{Verb: "patch", Group: group, Resource: "clusterapprovalrequests", Subresource: "status"}},
		{"stop and resume runs, skip and retry clusters", as.Right{Verb: "patch", Group: group, Resource: "clusterstagedupdateruns"}},
		{"evict placements from clusters", as.Right{Verb: "create", Group: group, Resource: "clusterresourceplacementevictions"}},
		{"stop the line", as.Right{Verb: "create", Group: fleetflowv1alpha1.RolloutHolds.Group,
			Resource: fleetflowv1alpha1.RolloutHolds.Resource}},
		{"release holds", as.Right{Verb: "delete", Group: fleetflowv1alpha1.RolloutHolds.Group,
			Resource: fleetflowv1alpha1.RolloutHolds.Resource}},
		{"see what snapshots hold", as.Right{Verb: "list", Group: group, Resource: "clusterresourcesnapshots"}},
	}
}

func mePage(v *visit) (page, error) {
	visitor := visitorOf(v.Context())
	view := meView{Name: visitor.Name, Groups: visitor.Groups, Until: visitor.Until, LogsOut: !visitor.Until.IsZero()}
	for _, deed := range deeds() {
		view.Rights = append(view.Rights, rightView{deed.what, v.refusal(deed.right)})
	}
	return compose("You", "", false, piece{"me", "me", view})
}

package web

import (
	"time"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
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

// deeds are what the pages can do, with what it takes.
var deeds = []struct {
	what  string
	right steer.Right
}{
	{"approve stages of runs", steer.Right{Verb: "patch", Object: placementv1beta1.Scope{}.NewApprovalRequest(""), Subresource: "status"}},
	{"stop and resume runs, skip and retry clusters", steer.Right{Verb: "patch", Object: placementv1beta1.Scope{}.NewUpdateRun("")}},
	{"evict placements from clusters", steer.Right{Verb: "create", Object: &placementv1beta1.ClusterResourcePlacementEviction{}}},
	{"stop the line", steer.Right{Verb: "create", Object: &fleetflowv1alpha1.RolloutHold{}}},
	{"release holds", steer.Right{Verb: "delete", Object: &fleetflowv1alpha1.RolloutHold{}}},
	{"see what snapshots hold", steer.Right{Verb: "list", Object: placementv1beta1.Scope{}.NewResourceSnapshot("")}},
}

func mePage(v *visit) (page, error) {
	visitor := visitorOf(v.Context())
	view := meView{Name: visitor.Name, Groups: visitor.Groups, Until: visitor.Until, LogsOut: !visitor.Until.IsZero()}
	for _, deed := range deeds {
		view.Rights = append(view.Rights, rightView{deed.what, v.refusal(v.rightOf(deed.right))})
	}
	return compose("You", "", false, piece{"me", "me", view})
}

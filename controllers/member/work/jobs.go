package work

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/apply"
	"github.com/fleetflow/fleetflow/controllers/member/availability"
)

// jobRun is the one run of a Job that the cluster removes some time after it has finished. The inventory keeps it; it is empty for
// every other object.
type jobRun struct {
	// of is the hash of the manifest.
	of string
	// result is Complete or Failed, empty if its end was not seen.
	result string
	// lastsUntil is before when the cluster cannot have removed the Job by itself; zero if that is not known any more.
	lastsUntil time.Time
}

// recallRuns puts what the inventory knows of the runs of Jobs to their steps. What a pass has seen since knows more.
func recallRuns(listed []placementv1beta1.AppliedResourceMeta, last map[int]outcome, steps []*step) {
	runs := map[apply.Key]jobRun{}
	for _, item := range listed {
		if item.RunOf != "" {
			runs[apply.KeyOf(item.WorkResourceIdentifier)] = jobRun{of: item.RunOf, result: item.RunResult}
		}
	}
	for _, s := range steps {
		s.runBefore = runs[apply.KeyOf(s.outcome.id)]
		if seen := last[s.outcome.id.Ordinal].run; seen.of == s.runBefore.of {
			s.runBefore.lastsUntil = seen.lastsUntil
		}
	}
}

// isDone reports whether a Job that is gone has run from this manifest and was removed by the cluster itself. Removing a Job that
// has not finished makes another.
func (r jobRun) isDone(m apply.Manifest, now time.Time) bool {
	return r.of != "" && r.of == m.Hash && (r.result != "" || !now.Before(r.lastsUntil))
}

// runOf returns the run of a Job as it was read from the cluster; the one before if it is gone.
func runOf(live *unstructured.Unstructured, m apply.Manifest, before jobRun) jobRun {
	if live == nil {
		return before
	}
	ttl, removes := apply.TimeToLive(live)
	if !removes {
		return jobRun{}
	}
	return jobRun{of: m.Hash, result: apply.JobResult(live), lastsUntil: live.GetCreationTimestamp().Add(ttl)}
}

// availabilityOfGone returns the status of a Job that has run and is gone.
func (r jobRun) availabilityOfGone() (status availability.Status, failure string) {
	switch r.result {
	case "Complete":
		return availability.Available, ""
	case "Failed":
		return availability.Failed, "the Job had failed before the cluster removed it"
	default:
		return availability.NotTrackable, ""
	}
}

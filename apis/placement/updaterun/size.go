package updaterun

import (
	"encoding/json"
	"time"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// MaxStatus is how many bytes of JSON the status of a run may become. etcd takes 1.5 MiB for the whole object, in which
// metadata, and what is said of clusters that fail, need some room.
const MaxStatus = 5 << 18

// LargestStatus returns how many bytes of JSON the status of a planned run becomes if its clusters do well: the most of its
// beginning, all clusters under way and all done. A run that is not large always fits, and is not looked at.
func LargestStatus(run placementv1beta1.UpdateRunObject) int {
	if !IsLarge(run) {
		return 0
	}
	r := Recorder{Run: placementv1beta1.DeepCopyOf(run), Now: time.Unix(0, 0)} // every time is as long as another
	size := jsonSize(r.Status())
	for _, record := range []func(*placementv1beta1.StageUpdatingStatus, []string){r.ClustersStarted, r.ClustersSucceeded} {
		for i := range r.Status().StagesStatus {
			stage := &r.Status().StagesStatus[i]
			record(stage, ClusterNames(stage))
		}
		size = max(size, jsonSize(r.Status()))
	}
	return size
}

func jsonSize(status *placementv1beta1.UpdateRunStatus) int {
	raw, err := json.Marshal(status)
	if err != nil {
		panic(err) // the types of the API always marshal
	}
	return len(raw)
}

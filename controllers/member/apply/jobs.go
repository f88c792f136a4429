package apply

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var jobKind = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}

// TimeToLive returns how long after its end the cluster keeps a Job. It returns false for every object that the cluster does not
// remove by itself.
func TimeToLive(object *unstructured.Unstructured) (time.Duration, bool) {
	if object == nil || object.GroupVersionKind().GroupKind() != jobKind {
		return 0, false
	}
	seconds, found, err := unstructured.NestedInt64(object.Object, "spec", "ttlSecondsAfterFinished")
	return time.Duration(seconds) * time.Second, found && err == nil
}

// JobResult returns how a Job has ended, Complete or Failed; nothing as long as it has not.
func JobResult(job *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, item := range conditions {
		condition, _ := item.(map[string]any)
		switch kind, _ := condition["type"].(string); kind {
		case string(batchv1.JobComplete), string(batchv1.JobFailed):
			if condition["status"] == "True" {
				return kind
			}
		}
	}
	return ""
}

// isRemovingItself reports whether a Job that is being deleted ran from this manifest, has finished, and is removed for that.
func isRemovingItself(job *unstructured.Unstructured, m Manifest) bool {
	_, removes := TimeToLive(job)
	return removes && JobResult(job) != "" && isLastAppliedTo(job, m)
}

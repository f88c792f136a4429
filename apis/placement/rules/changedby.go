package rules

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// ChangedSpec stands, in ChangedByAnnotation, for the last change of the spec, whatever it was.
const ChangedSpec = "spec"

// changedByAgent is by what a change comes that an agent of the fleet has made.
const changedByAgent = "Agent"

// Change says who has asked for something that the spec of an object asks for.
type Change struct {
	// Username is the user as the API server knows it, Channel by what the change came: Kubectl or Dashboard. The fleet itself has none.
	Username, Channel string
	// ByFleet says that an agent of the fleet has made it.
	ByFleet bool
	// Generation is that of the object with the change.
	Generation string
}

// ChangedBy returns who has asked for something that the spec of an object asks for: ChangedSpec for the last change of whatever, or what
// WantedState and WantedOf return of a run. It is not known where the API server has not noted each change since: it says of
// of which generation of the object it is. That an object is deleted is a generation, too, which changes nothing.
func ChangedBy(object metav1.Object, wanted string) (Change, bool) {
	lines := strings.Split(object.GetAnnotations()[placementv1beta1.ChangedByAnnotation], "\n")
	isOf := func(generation int64) bool {
		return strings.HasPrefix(lines[0], ChangedSpec+" "+strconv.FormatInt(generation, 10)+" ")
	}
	if !isOf(object.GetGeneration()) && (!IsDeleting(object) || !isOf(AskedGeneration(object))) {
		return Change{}, false
	}
	for _, line := range lines {
		if fields := strings.SplitN(line, " ", 4); len(fields) == 4 && fields[0] == wanted && fields[3] != "" {
			if fields[2] == changedByAgent {
				return Change{ByFleet: true, Generation: fields[1]}, true
			}
			return Change{Username: fields[3], Channel: fields[2], Generation: fields[1]}, true
		}
	}
	return Change{}, false
}

// AskedGeneration returns the generation with which the spec of an object came to be what it is: the API server counts the deletion of an object
// that has finalizers like a change.
func AskedGeneration(object metav1.Object) int64 {
	if IsDeleting(object) && object.GetGeneration() > 1 {
		return object.GetGeneration() - 1
	}
	return object.GetGeneration()
}

// WantedState returns what ChangedBy knows the state of a run as.
func WantedState(state placementv1beta1.UpdateRunState) string { return "state/" + string(state) }

// WantedOf returns what ChangedBy knows that as what a run is asked to do about a cluster.
func WantedOf(action placementv1beta1.ClusterAction) string {
	return string(action.Action) + "/" + action.Cluster + "/" + strconv.Itoa(int(max(action.Attempt, 1)))
}

package rules_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestWhoHasChangedAnObject(t *testing.T) {
	const said = "spec 7 Kubectl joe the second\nstate/Stop 5 Dashboard jane@example.com\nSkip/member-7/1 7 Kubectl joe the second\n" +
		"Retry/member-8/2 6 Agent system:serviceaccount:fleet-system:hub-agent\nbroken\nSkip/member-9/1 7 Kubectl "
	skip := placementv1beta1.ClusterAction{Cluster: "member-7", Action: placementv1beta1.ClusterActionSkip}
	retry := placementv1beta1.ClusterAction{Cluster: "member-8", Action: placementv1beta1.ClusterActionRetry, Attempt: 2}
	for sentence, test := range map[string]struct {
		said       string
		generation int64
		wanted     string
		want       rules.Change
		deleting   bool
		unknown    bool
	}{
		"the last change":                         {said: said, generation: 7, wanted: rules.ChangedSpec, want: rules.Change{Username: "joe the second", Channel: "Kubectl", Generation: "7"}},
		"what was asked for before still counts":  {said: said, generation: 7, wanted: rules.WantedState(placementv1beta1.StateStop), want: rules.Change{Username: "jane@example.com", Channel: "Dashboard", Generation: "5"}},
		"what is asked of a cluster":              {said: said, generation: 7, wanted: rules.WantedOf(skip), want: rules.Change{Username: "joe the second", Channel: "Kubectl", Generation: "7"}},
		"an agent of the fleet":                   {said: said, generation: 7, wanted: rules.WantedOf(retry), want: rules.Change{ByFleet: true, Generation: "6"}},
		"nobody has noted it":                     {said: said, generation: 7, wanted: rules.WantedState(placementv1beta1.StateRun), unknown: true},
		"a change since was not noted":            {said: said, generation: 8, wanted: rules.WantedState(placementv1beta1.StateStop), unknown: true},
		"it is of a generation that is yet to be": {said: said, generation: 6, wanted: rules.ChangedSpec, unknown: true},
		"a name that is missing":                  {said: said, generation: 7, wanted: "Skip/member-9/1", unknown: true},
		"it is deleted, which is counted as well": {said: said, generation: 8, deleting: true, wanted: rules.ChangedSpec, want: rules.Change{Username: "joe the second", Channel: "Kubectl", Generation: "7"}},
		"it was changed before it was deleted":    {said: said, generation: 9, deleting: true, wanted: rules.ChangedSpec, unknown: true},
		"nothing is noted":                        {generation: 7, wanted: rules.ChangedSpec, unknown: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := &metav1.ObjectMeta{Generation: test.generation, Annotations: map[string]string{placementv1beta1.ChangedByAnnotation: test.said}}
			if test.deleting {
				object.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			change, known := rules.ChangedBy(object, test.wanted)
			assert.Equal(t, !test.unknown, known)
			assert.Equal(t, test.want, change)
		})
	}
}

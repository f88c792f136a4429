package brakes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

func TestWhatIsSaidOfAWindow(t *testing.T) {
	members := []map[string]string{{"region": "eu"}, {"region": "eu"}, {"region": "us"}}
	for sentence, test := range map[string]struct {
		spec, at                      string
		open                          bool
		starts                        fleetflowv1alpha1.WindowStarts
		changes, opens, closes, cause string
		accepted, reachable           string // the reasons of the conditions
		clusters                      int32  // -1: not counted
		again                         string
	}{
		"closed, and when it opens": {
			spec: `{type: Allow, scope: Fleet, timeZone: Europe/Berlin, weekly: [{days: [Mon], start: "22:00", end: "06:00"}]}`, at: "2026-11-23T12:00:00Z",
			starts: "Held", changes: "2026-11-23T21:00:00Z", opens: "2026-11-23T21:00:00Z", closes: "2026-11-24T05:00:00Z", cause: "OpeningEnds",
			accepted: "Accepted", reachable: "OpensSoon", clusters: 3, again: "2026-11-23T21:00:00Z",
		},
		"open, and when that ends": {
			spec: `{type: Allow, scope: Cluster, clusterSelector: {matchLabels: {region: eu}}, timeZone: UTC, lastStartBefore: 1h, weekly: [{days: [Mon], start: "10:00", end: "14:00"}]}`, at: "2026-11-23T12:00:00Z",
			open: true, starts: "Allowed", changes: "2026-11-23T13:00:00Z", opens: "2026-11-30T10:00:00Z", closes: "2026-11-23T13:00:00Z", cause: "LastStartBefore",
			accepted: "Accepted", reachable: "OpensSoon", clusters: 2, again: "2026-11-23T13:00:00Z",
		},
		"an opening far ahead is looked at again when it is near": {
			spec: `{type: Deny, scope: Placement, placementSelector: {}, timeZone: UTC, dates: [{start: "2027-02-01T00:00", end: "2027-02-02T00:00"}]}`, at: "2026-11-23T12:00:00Z",
			starts: "Allowed", changes: "2027-02-01T00:00:00Z", opens: "2027-02-01T00:00:00Z", closes: "2027-02-02T00:00:00Z", cause: "OpeningEnds",
			accepted: "Accepted", reachable: "OpensLater", clusters: -1, again: "2026-12-31T00:00:00Z",
		},
		"what is past is not reachable, and accepted": {
			spec: `{type: Deny, scope: Fleet, timeZone: UTC, dates: [{start: "2026-02-01T00:00", end: "2026-02-02T00:00"}]}`, at: "2026-11-23T12:00:00Z",
			starts: "Allowed", accepted: "Accepted", reachable: "NoOpeningSoon", clusters: 3,
		},
		"an Allow that can not be followed is closed": {
			spec: `{type: Allow, scope: Fleet, timeZone: UTC, cron: [{expression: "0 0 31 2 *", duration: 1h}]}`, at: "2026-11-23T12:00:00Z",
			starts: "Held", accepted: "NeverOpens", reachable: "NotAccepted", clusters: 3,
		},
		"a Deny that can not be followed is open": {
			spec: `{type: Deny, scope: Fleet, timeZone: Europe/Nowhere, weekly: [{days: [Mon], start: "22:00", end: "06:00"}]}`, at: "2026-11-23T12:00:00Z",
			open: true, starts: "Held", accepted: "UnknownTimeZone", reachable: "NotAccepted", clusters: 3,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			window := &fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "w", Generation: 3}}
			require.NoError(t, yaml.UnmarshalStrict([]byte(test.spec), &window.Spec))
			now, err := time.Parse(time.RFC3339, test.at)
			require.NoError(t, err)
			status, again := describeWindow(brake.CompileWindow(window), members, metav1.NewTime(now))
			assert.Equal(t, test.open, status.Active)
			assert.Equal(t, test.starts, status.Starts)
			assert.Equal(t, test.changes, text(status.NextTransitionTime))
			assert.Equal(t, test.opens, text(status.NextOpenTime))
			assert.Equal(t, test.closes, text(status.NextCloseTime))
			assert.Equal(t, test.cause, status.NextCloseReason)
			for kind, want := range map[string]string{"Accepted": test.accepted, "Reachable": test.reachable} {
				got := ""
				if condition := meta.FindStatusCondition(status.Conditions, kind); condition != nil {
					got = condition.Reason
					assert.EqualValues(t, 3, condition.ObservedGeneration)
				}
				assert.Equal(t, want, got, kind)
			}
			if test.clusters < 0 {
				assert.Nil(t, status.MatchedClusters)
			} else if assert.NotNil(t, status.MatchedClusters) {
				assert.Equal(t, test.clusters, *status.MatchedClusters)
			}
			assert.Equal(t, test.again, text(instant(again)))
			window.Status = status
			same, _ := describeWindow(brake.CompileWindow(window), members, metav1.NewTime(now.Add(time.Second)))
			assert.Equal(t, status, same, "a second later nothing is to be written")
		})
	}
}

func text(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// wholeDays are all hours of some days.
func wholeDays(days ...fleetflowv1alpha1.Weekday) []fleetflowv1alpha1.WeeklyOpening {
	return []fleetflowv1alpha1.WeeklyOpening{{Days: days, DailyHours: fleetflowv1alpha1.DailyHours{Start: "00:00", End: "24:00"}}}
}

func aWindow(name string, change func(*fleetflowv1alpha1.RolloutWindowSpec)) *fleetflowv1alpha1.RolloutWindow {
	w := &fleetflowv1alpha1.RolloutWindow{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))},
		Spec: fleetflowv1alpha1.RolloutWindowSpec{
			Type: fleetflowv1alpha1.WindowAllow, Scope: fleetflowv1alpha1.WindowFleet, TimeZone: "UTC", Weekly: wholeDays("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"),
		},
	}
	if change != nil {
		change(&w.Spec)
	}
	return w
}

func TestWindows(t *testing.T) {
	c := newConsole(t,
		aWindow("always", nil),
		aWindow("west", func(s *fleetflowv1alpha1.RolloutWindowSpec) {
			s.Scope = fleetflowv1alpha1.WindowCluster
			s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "west"}}
		}),
		aWindow("web", func(s *fleetflowv1alpha1.RolloutWindowSpec) {
			s.Scope = fleetflowv1alpha1.WindowPlacement
			s.PlacementSelector = &metav1.LabelSelector{}
		}),
		aWindow("nowhere", func(s *fleetflowv1alpha1.RolloutWindowSpec) {
			s.Scope = fleetflowv1alpha1.WindowStage
			s.Stages = []string{"canary", "prod"}
			s.TimeZone = "Europe/Nowhere"
		}),
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "w1", Labels: map[string]string{"region": "west"}}},
		&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "e1"}},
		&placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
	)
	require.NoError(t, c.run("windows"))
	assert.Equal(t, `NAME      TYPE    SCOPE       STATE                                 NEXT CHANGE   IN    MATCHES
always    Allow   Fleet       open                                  -             -     2 cluster(s)
nowhere   Allow   Stage       closed (not valid: UnknownTimeZone)   -             -     stage(s) canary, prod
web       Allow   Placement   open                                  -             -     1 placement(s)
west      Allow   Cluster     open                                  -             -     1 cluster(s)
`, c.Out.String())
	require.NoError(t, c.run("windows", "show", "always", "--at", "2026-11-24T12:00Z"))
	assert.Equal(t, "always: Allow, scope Fleet, UTC\nTue 2026-11-24 12:00 UTC: open\n", c.Out.String())
	assert.ErrorContains(t, c.run("windows", "show", "nothing"), `there is no rollout window "nothing"`)
	assert.ErrorContains(t, c.run("windows", "show", "nowhere"), "rollout window nowhere is not valid (UnknownTimeZone:")
	assert.ErrorContains(t, c.run("windows", "show", "always", "--at", "noon"), `--at "noon" is not a time`)
	assert.ErrorContains(t, c.run("windows", "show", "always", "--zone", "Nowhere"), `--zone "Nowhere" is not a time zone`)
	assert.ErrorContains(t, c.run("windows", "show", "always", "--next", "0"), "--next 0 is not a number of openings")
	assert.ErrorContains(t, c.run("windows", "shew"), "do you mean show?")

	none := newConsole(t)
	require.NoError(t, none.run("windows"))
	assert.Empty(t, none.Out.String())
}

func TestWindowsOfAManifest(t *testing.T) {
	c := newConsole(t)
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "window.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const window = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutWindow, metadata: {name: sundays}, spec: {type: Deny, scope: Fleet, timeZone: Europe/Berlin,
  weekly: [{days: [Sun], start: "02:15", end: "02:45"}]}}`
	require.NoError(t, c.run("windows", "test", "-f", file(window), "--at", "2027-10-30T00:00Z", "--next", "1"))
	assert.Equal(t, `sundays: Deny, scope Fleet, Europe/Berlin
Sat 2027-10-30 00:00 UTC: closed until Sun 2027-10-31 02:15 +02:00 (00:15 UTC), which is 24h from then

OPENS                                     LAST START   CLOSES                                    LASTS
Sun 2027-10-31 02:15 +02:00 (00:15 UTC)   -            Sun 2027-10-31 02:45 +01:00 (01:45 UTC)   90m
`, c.Out.String())
	require.NoError(t, c.run("windows", "test", "-f", file(window), "--at", "2027-10-30T00:00Z", "--next", "1", "-o", "json"))
	assert.Contains(t, c.Out.String(), `"opens": "2027-10-31T02:15:00+02:00"`)
	assert.ErrorContains(t, c.run("windows", "test"), "needs manifests")
	assert.ErrorContains(t, c.run("windows", "test", "-f", file("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")), "ConfigMap is not a RolloutWindow")
	assert.ErrorContains(t, c.run("windows", "test", "-f", file(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutWindow, metadata: {name: a}, spec: {weekle: []}}`)), `unknown field "spec.weekle"`)
}

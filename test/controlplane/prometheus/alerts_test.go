// Package prometheus asks Prometheus' own engine when the alert rules of the charts fire.
package prometheus

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"go.yaml.in/yaml/v3"
)

// expressions are those of the alerts of both charts, by name.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, chart := range []string{"hub-agent", "member-agent"} {
		content, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "charts", chart, "monitoring", "alerts.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var rules struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
		if err := yaml.Unmarshal(content, &rules); err != nil {
			t.Fatal(err)
		}
		for _, group := range rules.Groups {
			for _, rule := range group.Rules {
				found[rule.Alert] = rule.Expr
			}
		}
	}
	return found
}

func TestAlertsFireOnlyWhenSomebodyHasToAct(t *testing.T) {
	const status = `fleet_workload_placement_status_last_timestamp_seconds{job="hub",name="web",generation="1",status="False",conditionType="ClusterResourcePlacementRolloutStarted"`
	waits := func(reason string) string { return status + `,reason="` + reason + `"} 0x60` }
	type test struct {
		alert, series string
		// fires is the result after an hour; none if it is empty.
		fires string
	}
	tests := map[string]test{
		"a Temporal that does not answer the agent that leads, and to which another one has a connection": {
			"FleetflowTemporalIsAway", `fleetflow_temporal_answers{job="hub",instance="a"} 0x60
  fleetflow_temporal_connected{job="hub",instance="a"} 1x60
  fleetflow_temporal_connected{job="hub",instance="b"} 1x60`, `{job="hub"} 0`,
		},
		"a Temporal that answers": {"FleetflowTemporalIsAway", `fleetflow_temporal_answers{job="hub",instance="a"} 1x60`, ""},
		"a window that is not valid": {
			"FleetflowWindowNotAccepted", `fleetflow_rollout_windows{job="hub",type="Allow",accepted="False"} 1x60`, `{job="hub",type="Allow"} 1`,
		},
		"windows that are valid": {
			"FleetflowWindowNotAccepted", `fleetflow_rollout_windows{job="hub",type="Allow",accepted="False"} 0x60
  fleetflow_rollout_windows{job="hub",type="Allow",accepted="True"} 3x60`, "",
		},
		"a hold that is older than a day": {
			"FleetflowHoldForgotten", `fleetflow_rollout_hold_created_timestamp_seconds{job="hub",hold="incident",expires="false"} -100000x60`, `{job="hub",hold="incident"} 103600`,
		},
		"one of a moment ago": {
			"FleetflowHoldForgotten", `fleetflow_rollout_hold_created_timestamp_seconds{job="hub",hold="incident",expires="false"} 0x60`, "",
		},
		"one that ends by itself": {
			"FleetflowHoldForgotten", `fleetflow_rollout_hold_created_timestamp_seconds{job="hub",hold="incident",expires="true"} -100000x60`, "",
		},
		"a run that has waited for an approval for more than a day": {
			"FleetflowApprovalWaits", `fleetflow_update_run_task_begun_timestamp_seconds{job="hub",run_namespace="web",run="r",stage="prod",task_type="afterStageApproval"} -100000x60`,
			`{job="hub",run_namespace="web",run="r",stage="prod"} 103600`,
		},
		"a run that soaks for more than a day": {
			"FleetflowApprovalWaits", `fleetflow_update_run_task_begun_timestamp_seconds{job="hub",run_namespace="web",run="r",stage="prod",task_type="afterStageTimedWait"} -100000x60`, "",
		},
		"containers that crash on a member, of two agents the one that works": {
			"FleetflowObjectsFail", `fleetflow_member_failing_objects{cluster="eu",instance="a",reason="CrashLoop"} 2x60
  fleetflow_member_failing_objects{cluster="eu",instance="b",reason="CrashLoop"} 0x60`, `{cluster="eu",instance="a",reason="CrashLoop"} 2`,
		},
		"containers that crash no more": {"FleetflowObjectsFail", `fleetflow_member_failing_objects{cluster="eu",instance="a",reason="CrashLoop"} 2 0x60`, ""},
		"a placement that does not get on": {
			"FleetflowPlacementNotComplete", waits("RolloutNotStartedYet"),
			`{job="hub",name="web",conditionType="ClusterResourcePlacementRolloutStarted",reason="RolloutNotStartedYet"} 3600`,
		},
	}
	for _, reason := range []string{
		"RolloutStartedUnknown", "RolloutControlledByExternalController", "HoldInForce", "WindowClosed", "OutsideAllowedWindow", "RolloutPaused",
		"PartitionReached", "Suspended", "WaitingForHook",
	} {
		tests["a placement that waits on purpose: "+reason] = test{"FleetflowPlacementNotComplete", waits(reason), ""}
	}
	rules := expressions(t)
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			expression := rules[test.alert]
			if expression == "" {
				t.Fatalf("there is no alert %s", test.alert)
			}
			script := fmt.Sprintf("load 1m\n  %s\n\neval instant at 60m %s\n", test.series, strings.TrimSpace(expression))
			if test.fires != "" {
				script += "  " + test.fires + "\n"
			}
			promqltest.RunTest(t, script, promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery))
		})
	}
}

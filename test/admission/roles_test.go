//go:build integration

package admission

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fleetRoles are the ClusterRoles that the chart brings for people.
var fleetRoles = []string{"hub-agent-viewer", "hub-agent-placer", "hub-agent-runner", "hub-agent-approver", "hub-agent-hold", "hub-agent-gates-viewer", "hub-agent-window-admin", "hub-agent-break-glass", "hub-agent-analysis-author", "hub-agent-analysis-sources", "hub-agent-analysis-objects", "hub-agent-analysis-admin", "hub-agent-administrator"}

// reads tries to list the objects of a kind.
func reads(kind, namespace string) func(*testing.T, *session) error {
	return func(t *testing.T, s *session) error {
		object := parse(t, kind)
		object.SetNamespace(namespace)
		resource, err := s.resource(object)
		require.NoError(t, err)
		_, err = resource.List(t.Context(), metav1.ListOptions{})
		return err
	}
}

// TestARoleLetsDoWhatItIsFor has a user of each role try what the guide tells of roles.
func TestARoleLetsDoWhatItIsFor(t *testing.T) {
	createGuarded(t)
	users := map[string]*session{}
	for _, role := range fleetRoles {
		require.NoError(t, admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "tests-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "a " + role}},
		}))
		users[role] = granted(t, "a "+role)
		users[role].awaitRole(t, role)
	}
	const (
		secretive    = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceSnapshot}"
		envelope     = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: e}, data: {role: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}}}`
		strategy     = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: gated}, spec: {stages: [{name: all}]}}`
		disabledKind = `{apiVersion: fleetflow.io/v1alpha1, kind: PropagatedType, metadata: {name: podtemplates}, spec: {propagation: Disabled}}`
		hold         = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {generateName: incident-}, spec: {message: payments down}}`
		window       = `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutWindow, metadata: {generateName: freeze-}, spec: {type: Deny, scope: Fleet, timeZone: UTC, dates: [{start: "2020-12-18T00:00", end: "2021-01-05T00:00"}]}}`
		template     = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {generateName: jobs-}, spec: {metrics: [{name: smoke, job: {namespace: jobs, fromCronJob: smoke}}]}}`
		measuring    = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {generateName: errors-}, spec: {metrics: [{name: up, prometheus: {sourceRef: {name: central}, query: up}, success: result > 0.0}]}}`
		looking      = `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {generateName: ready-}, spec: {metrics: [{name: up, objects: {from: Hub, apiVersion: v1, kind: ConfigMap, namespace: a, name: a}, success: "true"}]}}`
		source       = `{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {generateName: central-}, spec: {type: Prometheus, url: "https://prometheus.monitoring.svc:9090"}}`
		sink         = `{apiVersion: fleetflow.io/v1alpha1, kind: AuditSink, metadata: {generateName: siem-}, spec: {type: Webhook, webhook: {url: "https://siem.example.com"}}}`
		newRun       = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: mine}, spec: {placementName: other, stagedRolloutStrategyName: gated}}`
	)
	stopped := admin.create(t, hold).GetName()
	approve := changes(approval, "", "guarded-canary", `{status: {conditions: [`+approved+`]}}`, "status")
	for name, deed := range map[string]struct {
		do  func(*testing.T, *session) error
		may []string
	}{
		"see runs":                         {reads(updateRun, ""), []string{"hub-agent-viewer", "hub-agent-runner", "hub-agent-approver", "hub-agent-administrator"}},
		"see bindings":                     {reads(resourceBinding, ""), []string{"hub-agent-viewer", "hub-agent-administrator"}},
		"see what snapshots hold":          {reads(secretive, ""), []string{"hub-agent-administrator"}},
		"see what Works hold":              {reads(work, box), []string{"hub-agent-administrator"}},
		"change a placement":               {changes(placement, "", "guarded", `{metadata: {labels: {a: b}}}`), []string{"hub-agent-placer", "hub-agent-administrator"}},
		"make an envelope":                 {creates(envelope), []string{"hub-agent-placer", "hub-agent-administrator"}},
		"make a run":                       {creates(newRun), []string{"hub-agent-runner", "hub-agent-administrator"}},
		"stop a run":                       {changes(updateRun, "", "guarded", `{spec: {state: Stop}}`), []string{"hub-agent-runner", "hub-agent-administrator"}},
		"approve":                          {approve, []string{"hub-agent-approver", "hub-agent-administrator"}},
		"pass a gate in the status":        {changes(updateRun, "", "guarded", `{status: {conditions: []}}`, "status"), nil},
		"make an approval request":         {creates(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterApprovalRequest, metadata: {name: x}, spec: {parentStageRollout: x, targetStage: x}}`), nil},
		"make a strategy":                  {creates(strategy), []string{"hub-agent-administrator"}},
		"disable a kind":                   {creates(disabledKind), []string{"hub-agent-administrator"}},
		"see which kinds are held":         {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: PropagatedType}`, ""), []string{"hub-agent-viewer", "hub-agent-administrator"}},
		"stop the line":                    {creates(hold), []string{"hub-agent-hold", "hub-agent-administrator"}},
		"see what stops it":                {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold}`, ""), []string{"hub-agent-viewer", "hub-agent-gates-viewer", "hub-agent-hold", "hub-agent-break-glass", "hub-agent-administrator"}},
		"write a hold as typed clients do": {changes(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold}`, "", stopped, `{metadata: {labels: {a: b}}}`), []string{"hub-agent-hold", "hub-agent-administrator"}},
		"see what can be measured":         {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis}`, ""), []string{"hub-agent-viewer", "hub-agent-gates-viewer", "hub-agent-analysis-author", "hub-agent-analysis-admin", "hub-agent-administrator"}},
		"see where it is measured":         {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource}`, ""), []string{"hub-agent-viewer", "hub-agent-analysis-author", "hub-agent-analysis-admin", "hub-agent-administrator"}},
		"see who is told what":             {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: NotificationRule}`, ""), []string{"hub-agent-viewer", "hub-agent-administrator"}},
		"see where they are told":          {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: NotificationChannel}`, ""), []string{"hub-agent-viewer", "hub-agent-administrator"}},
		"have people told":                 {creates(`{apiVersion: fleetflow.io/v1alpha1, kind: NotificationRule, metadata: {generateName: people-}, spec: {types: [run.failed], channelRefs: [{name: ops}]}}`), []string{"hub-agent-administrator"}},
		"break the glass":                  {createsExemption, []string{"hub-agent-break-glass", "hub-agent-administrator"}},
		"see who did":                      {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutExemption}`, ""), []string{"hub-agent-viewer", "hub-agent-gates-viewer", "hub-agent-break-glass", "hub-agent-administrator"}},
		"say when rollouts start":          {creates(window), []string{"hub-agent-window-admin", "hub-agent-administrator"}},
		"see when they may":                {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: RolloutWindow}`, ""), []string{"hub-agent-viewer", "hub-agent-gates-viewer", "hub-agent-window-admin", "hub-agent-break-glass", "hub-agent-administrator"}},
		"write a template":                 {creates(template), []string{"hub-agent-analysis-author", "hub-agent-administrator"}},
		"measure at a source":              {creates(measuring), []string{"hub-agent-administrator"}}, // an author with hub-agent-analysis-sources, too
		"look at objects":                  {creates(looking), []string{"hub-agent-administrator"}},   // an author with hub-agent-analysis-objects, too
		"say where it measures":            {creates(source), []string{"hub-agent-analysis-admin", "hub-agent-administrator"}},
		"say who gets records":             {creates(sink), []string{"hub-agent-administrator"}},
		"see who gets records":             {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: AuditSink}`, ""), []string{"hub-agent-viewer", "hub-agent-administrator"}},
		"see what was measured":            {reads(`{apiVersion: fleetflow.io/v1alpha1, kind: ClusterStageAnalysisRun}`, ""), []string{"hub-agent-viewer", "hub-agent-gates-viewer", "hub-agent-break-glass", "hub-agent-analysis-author", "hub-agent-analysis-admin", "hub-agent-administrator"}},
		"label a member":                   {changes(memberCluster, "", "unmanaged", `{metadata: {labels: {a: b}}}`), []string{"hub-agent-administrator"}},
		"change a binding":                 {changes(resourceBinding, "", "web-guarded", `{spec: {state: Unscheduled}}`), nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, role := range fleetRoles {
				err := deed.do(t, users[role])
				if slices.Contains(deed.may, role) {
					assert.NoError(t, err, role)
					continue
				}
				assert.True(t, apierrors.IsForbidden(err), "%s: %v", role, err)
			}
		})
	}
}

// Records say of a run with one of these annotations that the fleet has created it.
func TestOnlyAgentsSayThatTheFleetHasCreatedARun(t *testing.T) {
	const refused = "say that the fleet has created the run, and only its agents write them: leave them out, or as they are"
	const noted = `{metadata: {annotations: {note: x}}}`
	for annotation, name := range map[string]string{"fleetflow.io/triggered-by": "triggered", "fleetflow.io/rollback-of-uid": "rolls-back"} {
		for kind, in := range map[string]string{"ClusterStagedUpdateRun": "", "StagedUpdateRun": "namespace: default, "} {
			t.Run(kind+" "+name, func(t *testing.T) {
				run := func(annotations string) string {
					return "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: " + kind + ", metadata: {name: " + name + ", " + in + "annotations: {" + annotations +
						"}}, spec: {placementName: none, stagedRolloutStrategyName: none}}"
				}
				for _, user := range []*session{as(t, "jane"), granted(t, "root", "system:masters")} {
					_, err := user.try(t.Context(), parse(t, run(annotation+": uid")))
					requireRefusal(t, err, refused)
				}
				stored := as(t, "fleet-hub-agent").create(t, run(annotation+": uid"))
				jane := as(t, "jane")
				require.NoError(t, jane.update(t.Context(), current(t, stored), parsePatch(t, noted)))
				requireRefusal(t, jane.update(t.Context(), current(t, stored), parsePatch(t, "{metadata: {annotations: {"+annotation+": other}}}")), refused)
				require.NoError(t, jane.update(t.Context(), current(t, stored), parsePatch(t, "{metadata: {annotations: {"+annotation+": null}}}")))
				requireRefusal(t, jane.update(t.Context(), current(t, stored), parsePatch(t, "{metadata: {annotations: {"+annotation+": uid}}}")), refused)
			})
		}
	}
}

func TestTheCreatorOfARunIsNotedByTheHub(t *testing.T) {
	const run = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: created}, spec: {placementName: none, stagedRolloutStrategyName: none}}`
	const namedRun = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: named, annotations: {fleetflow.io/creator: ada}},
		spec: {placementName: none, stagedRolloutStrategyName: none}}`
	const refused = "the annotation fleetflow.io/creator says who has created the run or the exemption: leave it out, the hub writes it, or leave it as it is"
	jane := as(t, "jane")
	stored := jane.create(t, run)
	assert.Equal(t, "jane", stored.GetAnnotations()["fleetflow.io/creator"])
	_, err := jane.try(t.Context(), parse(t, namedRun))
	requireRefusal(t, err, refused)
	named := as(t, "ada").create(t, namedRun)
	assert.Equal(t, "ada", named.GetAnnotations()["fleetflow.io/creator"])

	requireRefusal(t, jane.update(t.Context(), current(t, stored), parsePatch(t, `{metadata: {annotations: {fleetflow.io/creator: ada}}}`)), refused)
	require.NoError(t, jane.update(t.Context(), current(t, stored), parsePatch(t, `{metadata: {annotations: null}}`)), "then it cannot be approved where that matters")
	requireRefusal(t, jane.update(t.Context(), current(t, stored), parsePatch(t, `{metadata: {annotations: {fleetflow.io/creator: ada}}}`)), refused)
}

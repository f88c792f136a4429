//go:build integration

package security

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/control"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

// TestTextsOfOthers is about texts that one user, or a member, has written and that another sees.
func TestTextsOfOthers(t *testing.T) {
	attempt(t, attacks{
		"an author of templates has a source repeat the credential that it is asked with":             credentialIsNotRepeated,
		"an author of templates writes expressions that take memory, or time, from the hub agent":     costlyExpressions,
		"a user who stops the line writes images, links and cells into what Temporal shows of others": holdIsInertInTemporal,
		"a member writes what terminals carry out into conditions, properties and events of the hub":  terminalsObeyNoMember,
		"a viewer of placements reads what is in Secrets from what differs on a member":               differencesShowNoSecret,
		"a viewer tries what may be in a Secret against the hashes that are shown":                    hashesOfContentAreShownNowhere,
		"a team names its placement so that one of the cluster would have Works of the same names":    worksDoNotCollide,
		"a thief with the token of an account of a member makes one that holds longer than it has to": tokensEnd,
	})
}

// measure has stage staging of a run of a placement measured by a template, and returns what became of it once every metric has been
// measured, or has been tried.
func (s *spec) measure(name, metrics string) *fleetflowv1alpha1.ClusterStageAnalysisRun {
	s.Helper()
	s.createAs(author.session(s), `{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: `+name+`}, spec: {metrics: [`+metrics+`]}}`)
	s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateStrategy, metadata: {name: ` + name + `}, spec: {stages: [{name: staging,
		labelSelector: {matchLabels: {environment: staging}}, beforeStageTasks: [{type: Analysis, analysis: {templates: [{name: ` + name + `}]}}]}]}}`)
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(strings.Replace(placementManifest(name, "External"), "placementType: PickAll", "placementType: PickAll, "+stagingOnly, 1))
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementScheduled"))
	s.createAs(runner.session(s), `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: `+name+`}, spec: {placementName: `+name+`, stagedRolloutStrategyName: `+name+`}}`)
	measured, err := access.Await(ctx, s.hub, client.ObjectKey{Name: fleetflowv1alpha1.AnalysisRunName(name, "staging", "before")}, func(a *fleetflowv1alpha1.ClusterStageAnalysisRun) string {
		if a == nil || len(a.Status.Metrics) == 0 {
			return "no analysis of the run"
		}
		for _, m := range a.Status.Metrics {
			if m.Measured+m.Errors == 0 {
				return fmt.Sprintf("metric %s is not measured yet", m.Name)
			}
		}
		return ""
	})
	require.NoError(s, err)
	return measured
}

// credentialIsNotRepeated measures at servers that answer with what they are asked with: in words, and as a value that expressions see.
func credentialIsNotRepeated(s *spec) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		answer := any(map[string]any{"headers": r.Header, sent: []string{sent}})
		if r.URL.Path == "/words" {
			answer = map[string]string{"outcome": "Failure", "message": "\x1b[2Jyou said " + sent + "\u202e"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	s.Cleanup(echo.Close)
	basic := base64.StdEncoding.EncodeToString([]byte("jane:" + password))
	var metrics []string
	for kind, user := range map[string]string{"bearer": "", "basic": ", username: {name: echo-basic, key: username}"} {
		s.create(`{apiVersion: v1, kind: Secret, metadata: {namespace: fleet-system, name: echo-` + kind + `, labels: {fleetflow.io/metric-source: echo-` + kind + `},
			annotations: {fleetflow.io/metric-source-url: "` + echo.URL + `"}}, stringData: {username: jane, token: "` + password + `"}}`)
		s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: echo-` + kind + `}, spec: {type: Webhook, url: "` + echo.URL + `", allowPlainText: true,
			auth: {type: ` + strings.ToUpper(kind[:1]) + kind[1:] + `, secret: {name: echo-` + kind + `, key: token}` + user + `}}}`)
		source := `webhook: {sourceRef: {name: echo-` + kind + `}, path: /`
		metrics = append(metrics, `{name: `+kind+`-words, `+source+`words}}`,
			fmt.Sprintf(`{name: %s-guess, failure: %q, %svalue}}`, kind, `[`+split(password)+`, `+split(basic)+`].exists(t, response.headers.Authorization[0].endsWith(t) || response.exists(k, k.endsWith(t)))`, source))
	}
	measured := s.measure("echoed", strings.Join(metrics, ", "))
	for _, m := range measured.Status.Metrics {
		require.NotEmpty(s, m.Last, "%+v", m)
		if strings.HasSuffix(m.Name, "-guess") {
			assert.Equal(s, fleetflowv1alpha1.OutcomeSuccess, m.Last[0].Outcome, "an expression tells what the credential is: %+v", m)
			continue
		}
		assert.Regexp(s, `^\[2Jyou said (Basic|Bearer) \[redacted\]$`, m.Last[0].Message)
	}
	s.requireShownNowhere(password, basic)
}

// split is a text as an expression that does not have it in one piece.
func split(text string) string { return fmt.Sprintf("%q + %q", text[:3], text[3:]) }

// requireShownNowhere asserts that no object that a viewer sees, and no event, has a text in it.
func (s *spec) requireShownNowhere(texts ...string) {
	s.Helper()
	for _, list := range []client.ObjectList{
		&fleetflowv1alpha1.ClusterStageAnalysisRunList{}, &fleetflowv1alpha1.StageAnalysisList{}, &fleetflowv1alpha1.MetricSourceList{}, &corev1.EventList{},
		&placementv1beta1.ClusterStagedUpdateRunList{}, &placementv1beta1.ClusterResourcePlacementList{}, &placementv1beta1.ClusterResourceBindingList{},
		&clusterv1beta1.MemberClusterList{},
	} {
		require.NoError(s, s.hub.List(s.Context(), list))
		var out strings.Builder
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		require.NoError(s, encoder.Encode(list))
		for _, text := range texts {
			assert.False(s, strings.Contains(out.String(), text), "%T has %q", list, text)
		}
	}
}

// costlyExpressions has an author call what makes texts of any length, which no template may, and evaluate what has no end: other
// metrics of the same analysis are measured.
func costlyExpressions(s *spec) {
	answering := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"text":"`+strings.Repeat("a", 10_000)+`"}`)
	}))
	s.Cleanup(answering.Close)
	s.create(`{apiVersion: fleetflow.io/v1alpha1, kind: MetricSource, metadata: {name: answering}, spec: {type: Webhook, url: "` + answering.URL + `", allowPlainText: true}}`)
	for i, expression := range []string{
		`"aaaa".replace("a", response.text).size() > 0`,
		`["a", "b"].map(t, t.replace("a", "bb")).size() > 0`,
		`[response.a, response.b].join(response.c).size() > 0`,
		`true ? ["a"].exists(t, [t].join() == "a") : false`,
	} {
		name := fmt.Sprintf("costly-%d", i)
		s.createAs(author.session(s), fmt.Sprintf(`{apiVersion: fleetflow.io/v1alpha1, kind: StageAnalysis, metadata: {name: %s}, spec: {metrics: [{name: a, success: %q, webhook: {sourceRef: {name: answering}}}]}}`, name, expression))
		s.awaitTemplate(name, "which may take any amount of memory before its cost is known: leave it out")
	}
	var metrics []string
	for name, expression := range map[string]string{
		"levels": `lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, lists.range(1000).all(d, a + b + c + d >= 0))))`,
		"range":  `lists.range(100000000).size() > 0`,
		"format": `lists.range(100000).all(i, "%s%s%s%s".format([response.text, response.text, response.text, response.text]).size() > 0)`,
		"cheap":  `response.text.size() > 0`,
	} {
		metrics = append(metrics, fmt.Sprintf(`{name: %s, success: %q, consecutiveErrorLimit: 0, webhook: {sourceRef: {name: answering}}}`, name, expression))
	}
	for _, m := range s.measure("endless", strings.Join(metrics, ", ")).Status.Metrics {
		if m.Name == "cheap" {
			assert.EqualValues(s, 1, m.Succeeded, "%+v", m)
			continue
		}
		assert.Positive(s, m.Errors, "%+v", m)
		require.NotEmpty(s, m.Last, "%+v", m)
		assert.Contains(s, m.Last[0].Message, "gives an error", m.Name)
	}
}

// awaitTemplate waits until a template says why it cannot be used.
func (s *spec) awaitTemplate(name, sentence string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: name}, func(a *fleetflowv1alpha1.StageAnalysis) string {
		if a == nil {
			return "missing"
		}
		if valid := meta.FindStatusCondition(a.Status.Conditions, fleetflowv1alpha1.ConditionTypeAccepted); valid == nil || valid.Status != metav1.ConditionFalse || !strings.Contains(valid.Message, sentence) {
			return fmt.Sprintf("it does not say %q: %+v", sentence, a.Status.Conditions)
		}
		return ""
	})
	require.NoError(s, err)
}

// holdIsInertInTemporal holds a placement, for reasons that Temporal's pages would show as more than text.
func holdIsInertInTemporal(s *spec) {
	for name, message := range map[string]string{
		"inert-images": "![a](https://evil.example/a.png) [log in](https://evil.example) <img src=x> **done**",
		"inert-cells":  "storm |\n\n| all is well | https://evil.example www.evil.example @all |\n|---|---|\n# Approved\n```",
	} {
		held, err := json.Marshal(message)
		require.NoError(s, err)
		s.createAs(holder.session(s), `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: `+name+`}, spec: {message: `+string(held)+`,
			placementSelector: {matchLabels: {fleetflow.io/placement-name: `+name+`}}}}`)
		s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
		s.create(placementManifest(name, "RollingUpdate"))
		var details string
		require.Eventually(s, func() bool {
			details = s.detailsInTemporal(wf.PlacementID("", name))
			return strings.Contains(details, "**Held**")
		}, patience, probeEvery)
		_, reason, _ := strings.Cut(details, "**Held**")
		assert.Contains(s, reason, "evil.example", "it is shown")
		for _, live := range []string{"[", "]", "<", "*", "|", "_", "`", "://", "www.", "@", "\n"} {
			assert.NotContains(s, escaped.ReplaceAllString(reason, ""), live, "%s", reason)
		}
	}
}

// escaped is a character that Markdown shows as it is.
var escaped = regexp.MustCompile(`\\[[:punct:]]`)

// detailsInTemporal are what Temporal's pages show of a workflow first; empty if there is none yet.
func (s *spec) detailsInTemporal(id string) string {
	answer, err := s.temporal.QueryWorkflow(s.Context(), id, "", "__temporal_workflow_metadata")
	var metadata sdkpb.WorkflowMetadata
	if err != nil || answer.Get(&metadata) != nil {
		return ""
	}
	return metadata.GetCurrentDetails()
}

// terminalsObeyNoMember has a thief report, for a member, texts that clear the screen, turn the direction of writing and end a line.
func terminalsObeyNoMember(s *spec) {
	const (
		name = "redrawn"
		evil = "\x1b[2J\x1b]0;owned\x07 all is well\u202e\u009b31m\r"
		// shown is evil as everyone may see it.
		shown = `\x1b[2J\x1b]0;owned\a all is well\u202e\u009b31m\r`
	)
	s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	s.create(strings.Replace(placementManifest(name, "RollingUpdate"), "placementType: PickAll", "placementType: PickFixed, clusterNames: [member-1]", 1))
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementAvailable"))
	agent := controlplane.MemberAgent("member-1")
	require.NoError(s, s.order(ctx, control.Stop, agent)) // the thief reports in its place
	defer func() {
		ctx := context.WithoutCancel(s.Context())
		require.NoError(s, s.order(ctx, control.Start, agent))
		s.awaitMember(func(m *clusterv1beta1.MemberCluster) bool {
			return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy) && !strings.Contains(m.Status.Properties["example.com/shown"].Value, "all is well")
		})
	}()
	stolen := thief.session(s)
	box := &clusterv1beta1.InternalMemberCluster{}
	require.NoError(s, stolen.Get(ctx, client.ObjectKey{Namespace: "fleet-member-member-1", Name: "member-1"}, box))
	ill := metav1.Condition{Type: clusterv1beta1.ConditionTypeHealthy, Status: metav1.ConditionFalse, Reason: "Ill", Message: evil, LastTransitionTime: metav1.Now()}
	box.Status.Properties["example.com/shown"] = clusterv1beta1.PropertyValue{Value: evil, ObservationTime: metav1.Now()}
	meta.SetStatusCondition(&box.Status.AgentStatus[0].Conditions, ill)
	ill.Type = "Redrawn"
	meta.SetStatusCondition(&box.Status.Conditions, ill)
	require.NoError(s, stolen.Status().Update(ctx, box))
	s.reportFailure(ctx, stolen, name, evil)
	s.awaitMember(func(m *clusterv1beta1.MemberCluster) bool {
		redrawn := meta.FindStatusCondition(m.Status.Conditions, "Redrawn")
		healthy := meta.FindStatusCondition(m.Status.Conditions, clusterv1beta1.ConditionTypeHealthy)
		return redrawn != nil && redrawn.Message == shown && healthy != nil && healthy.Message == "Member cluster is not healthy: "+shown && m.Status.Properties["example.com/shown"].Value == shown
	})
	told, err := json.Marshal(shown)
	require.NoError(s, err)
	s.awaitFailure(name, strings.Trim(string(told), `"`))
	_, err = access.AwaitAll(ctx, s.hub, func(events []*corev1.Event) string {
		if slices.ContainsFunc(events, func(e *corev1.Event) bool {
			return e.InvolvedObject.Name == "member-1" && strings.Contains(e.Message, shown)
		}) {
			return ""
		}
		return "no event says what the member has said"
	})
	require.NoError(s, err)
	s.requireShownNowhere(`\u001b`, `\u0007`, "\u202e", "\u009b", `31m\r`)
}

// awaitMember waits until member-1 is as it should be.
func (s *spec) awaitMember(ok func(*clusterv1beta1.MemberCluster) bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Context()), 2*patience)
	defer cancel()
	_, err := access.Await(ctx, s.hub, client.ObjectKey{Name: "member-1"}, func(m *clusterv1beta1.MemberCluster) string {
		if m == nil || !ok(m) {
			told, _ := json.Marshal(m)
			return "it is not as wanted: " + string(told)
		}
		return ""
	})
	require.NoError(s, err)
}

// reportFailure reports, with the token of member-1, that nothing of a placement could be applied, and why.
func (s *spec) reportFailure(ctx context.Context, stolen client.Client, placement, message string) {
	s.Helper()
	works := &placementv1beta1.WorkList{}
	require.NoError(s, stolen.List(ctx, works, client.InNamespace("fleet-member-member-1")))
	at := slices.IndexFunc(works.Items, func(w placementv1beta1.Work) bool {
		return w.Labels[placementv1beta1.ParentPlacementLabel] == placement
	})
	require.GreaterOrEqual(s, at, 0, "the Work of the placement")
	work := &works.Items[at]
	before := work.DeepCopy()
	failed := metav1.Condition{
		Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Reason: "ManifestApplyFailed", Message: message,
		ObservedGeneration: work.Generation, LastTransitionTime: metav1.Now(),
	}
	meta.SetStatusCondition(&work.Status.Conditions, failed)
	for i := range work.Status.ManifestConditions {
		meta.SetStatusCondition(&work.Status.ManifestConditions[i].Conditions, failed)
	}
	require.NoError(s, stolen.Status().Patch(ctx, work, client.MergeFrom(before)))
}

// hashesOfContentAreShownNowhere looks for the hash of what a placement selects, Secrets included, where users read who may not read that:
// on other objects than its snapshots, and in Temporal.
func hashesOfContentAreShownNowhere(s *spec) {
	s.awaitMarker(other)
	snapshots := &placementv1beta1.ClusterResourceSnapshotList{}
	require.NoError(s, s.hub.List(s.Context(), snapshots))
	hashes := make([]string, 0, len(snapshots.Items))
	for i := range snapshots.Items {
		if hash := snapshots.Items[i].Annotations[placementv1beta1.ResourceGroupHashAnnotation]; hash != "" {
			hashes = append(hashes, hash)
		}
	}
	require.NotEmpty(s, hashes)
	s.requireShownNowhere(hashes...)
	events := s.temporal.GetWorkflowHistory(s.Context(), wf.PlacementID("", other), "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(s, err)
		for _, hash := range hashes {
			assert.NotContains(s, event.String(), hash)
		}
	}
}

// differencesShowNoSecret changes a Secret and a ConfigMap on a member, and reads what the placement says of it as a viewer does.
func differencesShowNoSecret(s *spec) {
	const (
		name   = "differing"
		secret = `{apiVersion: v1, kind: Secret, metadata: {namespace: ` + name + `, name: vault}}`
		config = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + name + `, name: marker}}`
	)
	for manifest := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(teamOf(name)), "---"), "\n---\n") {
		s.create(manifest)
	}
	s.create(`{apiVersion: v1, kind: Secret, metadata: {namespace: ` + name + `, name: vault}, stringData: {password: ` + password + `}}`)
	s.create(strings.Replace(placementManifest(name, "RollingUpdate"), "strategy: {", "strategy: {applyStrategy: {comparisonOption: FullComparison, whenToApply: IfNotDrifted}, ", 1))
	ctx, cancel := context.WithTimeout(s.Context(), 2*patience)
	defer cancel()
	require.NoError(s, s.awaitPlacement(ctx, name, "ClusterResourcePlacementAvailable"))
	const theirs = "open-sesame-on-the-member"
	encoded := base64.StdEncoding.EncodeToString([]byte(theirs))
	for manifest, patch := range map[string]string{
		secret: `{stringData: {password: ` + theirs + `, added: ` + theirs + `}, metadata: {annotations: {copy: "` + password + `"}}}`,
		config: `{data: {round: visible}}`,
	} {
		_, err := patches(manifest, patch)(ctx, s.members["member-1"])
		require.NoError(s, err)
	}
	viewed := func(details func(placementv1beta1.PerClusterPlacementStatus) []string) {
		s.Helper()
		seen, err := access.Await(ctx, viewer.session(s), client.ObjectKey{Name: name}, func(p *placementv1beta1.ClusterResourcePlacement) string {
			if p == nil {
				return "missing"
			}
			for _, cluster := range p.Status.PerClusterPlacementStatuses {
				if kinds := details(cluster); slices.Contains(kinds, "Secret") && slices.Contains(kinds, "ConfigMap") {
					return ""
				}
			}
			return fmt.Sprintf("it does not say that both differ: %+v", p.Status.PerClusterPlacementStatuses)
		})
		require.NoError(s, err)
		told, err := json.Marshal(seen)
		require.NoError(s, err)
		assert.Contains(s, string(told), "/data/password", "it says which value differs")
		assert.Contains(s, string(told), "visible", "and values of what is no Secret")
	}
	viewed(func(c placementv1beta1.PerClusterPlacementStatus) (kinds []string) {
		for _, d := range c.DriftedPlacements {
			kinds = append(kinds, d.Kind)
		}
		return kinds
	})
	_, err := patches(fmt.Sprintf(ofFleet, "ClusterResourcePlacement", name), `{spec: {strategy: {applyStrategy: {type: ReportDiff, whenToApply: null}}}}`)(ctx, s.hub)
	require.NoError(s, err)
	viewed(func(c placementv1beta1.PerClusterPlacementStatus) (kinds []string) {
		for _, d := range c.DiffedPlacements {
			kinds = append(kinds, d.Kind)
		}
		return kinds
	})
	s.requireShownNowhere(password, encodedPassword, theirs, encoded)
	for _, holding := range []string{"ClusterResourceSnapshot", "Work"} {
		s.requireRefusal(viewer, lists(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: `+holding+`}`, ""), notAllowed)
	}
	s.requireRefusal(viewer, lists(`{apiVersion: v1, kind: Secret}`, name), notAllowed)
}

// worksDoNotCollide has the Works of a ResourcePlacement and of a ClusterResourcePlacement want one name: the later one says so, and the
// earlier one keeps what it has placed.
func worksDoNotCollide(s *spec) {
	const config = `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: crew, name: %s}}`
	team := crewMember.session(s)
	places := func(name string) {
		s.createAs(team, fmt.Sprintf(config, name))
		s.createAs(team, teamPlacement(crew, name, `{group: "", version: v1, kind: ConfigMap, name: `+name+`}`))
	}
	platformPlaces := func(name string) {
		s.create(`{apiVersion: v1, kind: Namespace, metadata: {name: collided-` + name + `}}`)
		s.create(`{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacement, metadata: {name: crew.` + name + `},
			spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: collided-` + name + `}], policy: {placementType: PickAll}}}`)
	}
	arrived := func(key client.ObjectKey, empty client.Object) {
		for member, c := range s.members {
			require.Eventually(s, func() bool { return c.Get(s.Context(), key, empty) == nil }, patience, probeEvery, "%s on %s", key, member)
		}
	}
	places("first")
	arrived(client.ObjectKey{Namespace: crew, Name: "first"}, &corev1.ConfigMap{})
	platformPlaces("first")
	s.awaitFailure("crew.first", "belongs to ResourcePlacement crew/first, which had the name first: rename one of the two placements")
	platformPlaces("second")
	arrived(client.ObjectKey{Name: "collided-second"}, &corev1.Namespace{})
	places("second")
	s.awaitTeamFailure("second", "belongs to ClusterResourcePlacement crew.second, which had the name first: rename one of the two placements")
	s.requireAbsent(`{apiVersion: v1, kind: Namespace, metadata: {name: collided-first}}`)
	s.requireAbsent(fmt.Sprintf(config, "second"))
	arrived(client.ObjectKey{Namespace: crew, Name: "first"}, &corev1.ConfigMap{})
	arrived(client.ObjectKey{Name: "collided-second"}, &corev1.Namespace{})
}

// tokensEnd renews the token of a member's account as the member may, and for longer than that.
func tokensEnd(s *spec) {
	for _, manifest := range []string{
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {namespace: connect-to-fleet, name: ` + memberAccount + `},
			rules: [{apiGroups: [""], resources: [serviceaccounts/token], resourceNames: [` + memberAccount + `], verbs: [create]}]}`,
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {namespace: connect-to-fleet, name: ` + memberAccount + `},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ` + memberAccount + `},
			subjects: [{kind: ServiceAccount, namespace: connect-to-fleet, name: ` + memberAccount + `}]}`,
	} {
		s.create(manifest)
	}
	require.Eventually(s, func() bool { // once the API server knows the role
		_, err := mintsToken("connect-to-fleet", memberAccount)(s.Context(), renewer.session(s))
		return err == nil
	}, patience, probeEvery)
	for _, seconds := range []int64{48*3600 + 1, 365 * 24 * 3600, 10 * 365 * 24 * 3600} {
		s.requireRefusal(renewer, mintsTokenFor(memberAccount, seconds), fmt.Sprintf("a member renews its token for 48 hours at most, and asks for %d seconds", seconds))
	}
	s.requireRefusal(renewer, creates(`{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {namespace: connect-to-fleet, name: `+memberAccount+`-token,
		annotations: {kubernetes.io/service-account.name: `+memberAccount+`}}}`), notAllowed)
	s.requireRefusal(renewer, mintsTokenFor("default", 3600), notAllowed)
}

//go:build integration

package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementrules "github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

const changedRun = `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterStagedUpdateRun, metadata: {name: changed-by},
  spec: {placementName: none, stagedRolloutStrategyName: none, state: Run}}`

// merge changes an object by a merge patch.
func (s *session) merge(t testing.TB, object *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()
	resource, err := s.resource(object)
	require.NoError(t, err)
	changed, err := resource.Patch(t.Context(), object.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	return changed
}

// changerOf prints who has asked for something that an object asks for.
func changerOf(object *unstructured.Unstructured, wanted string) string {
	change, known := placementrules.ChangedBy(object, wanted)
	if !known {
		return "unknown"
	}
	return strings.TrimSpace(change.Channel + " " + change.Username)
}

func TestTheHubNotesWhoHasAskedForWhat(t *testing.T) {
	jane, joe := as(t, "jane"), as(t, "joe with a space")
	stopped, running := placementrules.WantedState(placementv1beta1.StateStop), placementrules.WantedState(placementv1beta1.StateRun)
	skip := placementrules.WantedOf(placementv1beta1.ClusterAction{Cluster: "member-7", Action: placementv1beta1.ClusterActionSkip})
	again := placementrules.WantedOf(placementv1beta1.ClusterAction{Cluster: "member-8", Action: placementv1beta1.ClusterActionRetry, Attempt: 2})

	run := jane.create(t, changedRun)
	assert.Equal(t, "Kubectl jane", changerOf(run, running))
	run = joe.merge(t, run, `{"spec":{"state":"Stop"}}`)
	assert.Equal(t, "Kubectl joe with a space", changerOf(run, stopped))
	assert.Equal(t, "unknown", changerOf(run, running))
	run = jane.merge(t, run, `{"spec":{"clusterActions":[{"cluster":"member-7","action":"Skip"}]}}`)
	assert.Equal(t, "Kubectl joe with a space", changerOf(run, stopped), "he still is who has stopped it")
	assert.Equal(t, "Kubectl jane", changerOf(run, skip))
	run = joe.merge(t, run, `{"spec":{"state":"Run","clusterActions":[{"cluster":"member-7","action":"Skip"},{"cluster":"member-8","action":"Retry","attempt":2}]}}`)
	assert.Equal(t, "Kubectl jane", changerOf(run, skip))
	assert.Equal(t, "Kubectl joe with a space", changerOf(run, again))
	assert.Equal(t, "Kubectl joe with a space", changerOf(run, running))

	said := run.GetAnnotations()[placementv1beta1.ChangedByAnnotation]
	run = jane.merge(t, run, `{"metadata":{"labels":{"a":"b"},"annotations":{"`+placementv1beta1.ChangedByAnnotation+`":null}}}`)
	assert.Equal(t, said, run.GetAnnotations()[placementv1beta1.ChangedByAnnotation], "what loses it gets it back")
	run = jane.merge(t, run, `{"spec":{"clusterActions":null}}`)
	assert.Equal(t, "unknown", changerOf(run, skip))
	assert.Equal(t, "Kubectl jane", changerOf(run, placementrules.ChangedSpec))
}

func TestNobodyNamesAnotherAsWhoHasChangedAnObject(t *testing.T) {
	forged := placementv1beta1.ChangedByAnnotation + `":"spec 1 Kubectl ada\nstate/Run 1 Kubectl ada"`
	for name, session := range map[string]*session{"jane": as(t, "jane"), "root": granted(t, "root", "system:masters")} {
		t.Run(name, func(t *testing.T) {
			run := session.create(t, strings.Replace(changedRun, "name: changed-by", `name: changed-by, annotations: {"`+strings.Replace(forged, `":"`, `": "`, 1)+`}`, 1))
			assert.Equal(t, "Kubectl "+name, changerOf(run, placementrules.ChangedSpec), "the hub says who it was")
			run = session.merge(t, run, `{"metadata":{"annotations":{"`+forged+`}}}`)
			assert.Equal(t, "Kubectl "+name, changerOf(run, placementrules.ChangedSpec))
			run = session.merge(t, run, `{"metadata":{"annotations":{"`+strings.ReplaceAll(forged, " 1 ", " 2 ")+`}},"spec":{"state":"Stop"}}`)
			assert.Equal(t, "Kubectl "+name, changerOf(run, placementrules.ChangedSpec))
			assert.Equal(t, "Kubectl "+name, changerOf(run, placementrules.WantedState(placementv1beta1.StateStop)))
		})
	}
}

// A note has lines and words: what users write freely is none of them.
func TestNobodyNamesAnotherInWhatIsAskedForOfACluster(t *testing.T) {
	jane := as(t, "jane")
	run := jane.create(t, strings.Replace(changedRun, "name: changed-by", "name: changed-in-words", 1))
	skip := placementrules.WantedOf(placementv1beta1.ClusterAction{Cluster: "member-7", Action: placementv1beta1.ClusterActionSkip})
	for _, cluster := range []string{`x\nSkip/member-7/1 2 Kubectl bob\nz`, `member-7/1 2 Kubectl bob`, `x\nSkip/member-7/1`} {
		run = jane.merge(t, run, `{"spec":{"clusterActions":[{"cluster":"`+cluster+`","action":"Skip"}]}}`)
		assert.Equal(t, "unknown", changerOf(run, skip))
		assert.NotContains(t, run.GetAnnotations()[placementv1beta1.ChangedByAnnotation], "Skip/")
		assert.Equal(t, "Kubectl jane", changerOf(run, placementrules.ChangedSpec))
	}
}

// Before Kubernetes 1.36 nothing notes it, so it is not known, and what users say of it is refused.
func TestWhoHasChangedAnObjectIsUnknownOnAnOlderHub(t *testing.T) {
	h := startOlderHub(t)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	run.Name = "changed-by"
	run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: "none", StagedUpdateStrategyName: "none"}
	forged := run.DeepCopy()
	forged.Annotations = map[string]string{placementv1beta1.ChangedByAnnotation: "spec 1 Kubectl ada"}
	var refusal error
	require.Eventually(t, func() bool {
		refusal = h.admin.Create(t.Context(), forged.DeepCopy(), client.DryRunAll)
		return refusal != nil
	}, 30*time.Second, 100*time.Millisecond, "until the server has read the policy")
	requireRefusal(t, refusal, "the annotation fleetflow.io/changed-by says who has changed the object, and the hub writes it")
	forged.Annotations[placementv1beta1.ChangedByAnnotation] = "spec 3 Kubectl ada" // two changes that nobody notes would make it current
	requireRefusal(t, h.admin.Create(t.Context(), forged), "leave it out, also of what you restore")
	require.NoError(t, h.admin.Create(t.Context(), run))
	_, known := placementrules.ChangedBy(run, placementrules.ChangedSpec)
	assert.False(t, known)
	run.Annotations = map[string]string{placementv1beta1.ChangedByAnnotation: "spec 1 Kubectl ada"}
	requireRefusal(t, h.admin.Update(t.Context(), run), "the annotation fleetflow.io/changed-by says who has changed the object")
}

// What a policy may cost is bounded: a run with as many actions as it may have is changed like any other.
func TestARunWithManyActionsIsChangedLikeAnyOther(t *testing.T) {
	jane := as(t, "jane")
	run := jane.create(t, strings.Replace(changedRun, "name: changed-by", "name: changed-often", 1))
	for _, many := range []int{100, 1000} {
		var actions []string
		for i := range many {
			actions = append(actions, fmt.Sprintf(`{"cluster":"member-%d-of-a-fleet-with-clusters-of-long-names","action":"Skip"}`, i))
		}
		run = jane.merge(t, run, `{"spec":{"clusterActions":[`+strings.Join(actions, ",")+`]}}`)
		assert.Equal(t, "Kubectl jane", changerOf(run, placementrules.ChangedSpec))
		for _, state := range []placementv1beta1.UpdateRunState{placementv1beta1.StateStop, placementv1beta1.StateRun} {
			run = as(t, "joe").merge(t, run, `{"spec":{"state":"`+string(state)+`"}}`)
			assert.Equal(t, "Kubectl joe", changerOf(run, placementrules.ChangedSpec))
			assert.Equal(t, "Kubectl joe", changerOf(run, placementrules.WantedState(state)), "who has stopped it is known of any run")
		}
		last := placementrules.WantedOf(placementv1beta1.ClusterAction{Cluster: "member-99-of-a-fleet-with-clusters-of-long-names", Action: placementv1beta1.ClusterActionSkip})
		assert.Equal(t, map[int]string{100: "Kubectl jane", 1000: "unknown"}[many], changerOf(run, last))
	}
}

func TestTheHubNotesWhoHasMadeAndChangedOtherObjects(t *testing.T) {
	jane, joe := as(t, "jane"), as(t, "joe")
	for kind, manifest := range map[string]string{
		"RolloutHold":                      `{apiVersion: fleetflow.io/v1alpha1, kind: RolloutHold, metadata: {name: changed-by}, spec: {message: one, placementSelector: {matchLabels: {none: has}}}}`,
		"MemberCluster":                    `{apiVersion: cluster.kubernetes-fleet.io/v1beta1, kind: MemberCluster, metadata: {name: changed-by}, spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: changed-by}}}`,
		"ClusterResourcePlacementEviction": `{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourcePlacementEviction, metadata: {name: changed-by}, spec: {placementName: none, clusterName: none}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			object := jane.create(t, manifest)
			assert.Equal(t, "Kubectl jane", changerOf(object, placementrules.ChangedSpec))
			if kind == "RolloutHold" {
				object = joe.merge(t, object, `{"spec":{"message":"two"}}`)
				assert.Equal(t, "Kubectl joe", changerOf(object, placementrules.ChangedSpec))
			}
			object = joe.merge(t, object, `{"metadata":{"labels":{"a":"b"}}}`)
			assert.Equal(t, map[bool]string{true: "Kubectl joe", false: "Kubectl jane"}[kind == "RolloutHold"], changerOf(object, placementrules.ChangedSpec), "a label is no change of the spec")
		})
	}
}

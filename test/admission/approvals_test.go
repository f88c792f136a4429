//go:build integration

package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	approvalRequest = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: recorded}
spec: {parentStageRollout: run, targetStage: canary}
`
	namespacedApprovalRequest = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ApprovalRequest
metadata: {name: recorded, namespace: default}
spec: {parentStageRollout: run, targetStage: canary}
`
	approved = `{type: Approved, status: "True", reason: lgtm, message: looks good, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1}`
	accepted = `{type: ApprovalAccepted, status: "True", reason: ok, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	// takenBack leaves what was noted of the approval, as a merge patch of the conditions does.
	takenBack = `{type: Approved, status: "False", reason: wait, message: not yet, lastTransitionTime: "2026-01-02T00:00:00Z", observedGeneration: 1}`
)

// recordBy is what a status says of an approval that a user has given.
func recordBy(user string) string {
	return `approval: {username: ` + user + `, at: "2026-01-01T00:00:00Z", channel: Kubectl, verified: true, comment: looks good}`
}

// writeStatus writes the status of an approval request as a user.
func (s *session) writeStatus(t testing.TB, request *unstructured.Unstructured, status string, dryRun ...string) error {
	t.Helper()
	resource, err := s.resource(request)
	require.NoError(t, err)
	changed := current(t, request)
	changed.Object["status"] = parsePatch(t, status)
	_, err = resource.UpdateStatus(t.Context(), changed, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
	return err
}

// approve approves a request as a user. The API server mutates objects of a kind only once it knows their schema, some
// seconds after the kind was defined.
func (s *session) approve(t testing.TB, request *unstructured.Unstructured) {
	t.Helper()
	var err error
	require.Eventually(t, func() bool {
		err = s.writeStatus(t, request, "{conditions: ["+approved+"]}")
		return err == nil || !strings.Contains(err.Error(), "There can be a delay")
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, err)
}

func approverOf(t testing.TB, request *unstructured.Unstructured) string {
	t.Helper()
	by, _, err := unstructured.NestedString(current(t, request).Object, "status", "approval", "username")
	require.NoError(t, err)
	return by
}

func TestWhoApprovedIsToldByTheHub(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			jane := as(t, "jane")
			ada := as(t, "ada")
			agent := as(t, "fleet-hub-agent")
			request := admin.create(t, manifest)

			err := jane.writeStatus(t, request, `{conditions: [], `+recordBy("alice")+`}`)
			requireRefusal(t, err, "status.approval says who approved and is written together with the condition Approved: set that condition, and leave status.approval as it is")
			requireRefusal(t, jane.writeStatus(t, request, `{conditions: [], `+recordBy("jane")+`}`), "is written together with the condition Approved")
			requireRefusal(t, jane.writeStatus(t, request, "{conditions: ["+accepted+"]}"), "the condition ApprovalAccepted is written by the agents of the fleet when they take up an approval: set the condition Approved")

			jane.approve(t, request)
			assert.Equal(t, "jane", approverOf(t, request))
			require.NoError(t, ada.writeStatus(t, request, "{conditions: ["+strings.Replace(approved, "looks good", "me too", 1)+"], "+recordBy("jane")+"}"))
			assert.Equal(t, "jane", approverOf(t, request), "the approver, not who wrote last")
			requireRefusal(t, ada.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("ada")+"}"), "leave status.approval as it is")

			require.NoError(t, jane.writeStatus(t, request, "{conditions: ["+takenBack+"], "+recordBy("jane")+"}"))
			assert.Empty(t, approverOf(t, request), "an approval that was taken back leaves nothing")
			ada.approve(t, request)
			assert.Equal(t, "ada", approverOf(t, request))

			require.NoError(t, agent.writeStatus(t, request, "{conditions: ["+approved+", "+accepted+"], "+recordBy("ada")+"}"))
			changed := strings.Replace(recordBy("ada"), "2026-01-01", "2026-02-02", 1)
			requireRefusal(t, ada.writeStatus(t, request, "{conditions: ["+approved+", "+accepted+"], "+changed+"}"), "cannot change once the approval is accepted: leave it as it is")
			requireRefusal(t, ada.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("ada")+"}"), "once it is True, nothing is left to approve")
		})
	}
}

func TestAnApprovalNamesThePlanThatItIsFor(t *testing.T) {
	const plan = "sha256:0123456789ab"
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			jane := as(t, "jane")
			ada := as(t, "ada")
			agent := as(t, "fleet-hub-agent")
			request := admin.create(t, manifest)
			probe := admin.create(t, strings.Replace(manifest, "name: recorded", "name: probed", 1))
			jane.approve(t, probe) // the API server knows the schema then
			named := func() string {
				hash, _, err := unstructured.NestedString(current(t, request).Object, "status", "approval", "planHash")
				require.NoError(t, err)
				return hash
			}

			require.ErrorContains(t, jane.writeStatus(t, request, "{conditions: ["+approved+"], approval: {planHash: 'sha256:0123'}}"), "status.approval.planHash")
			require.NoError(t, jane.writeStatus(t, request, "{conditions: ["+approved+"], approval: {planHash: '"+plan+"'}}"))
			assert.Equal(t, "jane", approverOf(t, request))
			assert.Equal(t, plan, named())
			other := strings.Replace(recordBy("jane"), "}", ", planHash: 'sha256:ba9876543210'}", 1)
			for _, user := range []*session{jane, ada} {
				requireRefusal(t, user.writeStatus(t, request, "{conditions: ["+approved+"], "+other+"}"), "leave status.approval as it is")
			}

			refused := strings.NewReplacer(`"True"`, `"False"`, "reason: ok", "reason: PlanChanged").Replace(accepted)
			require.NoError(t, agent.writeStatus(t, request, "{conditions: ["+takenBack+", "+refused+"]}"))
			requireRefusal(t, ada.writeStatus(t, request, "{conditions: ["+takenBack+", "+strings.Replace(refused, "PlanChanged", "Mine", 1)+"]}"), "the condition ApprovalAccepted is written by the agents")
			require.NoError(t, ada.writeStatus(t, request, "{conditions: ["+approved+"]}"), "a patch of the condition alone, which takes the note of the hub off")
			assert.Equal(t, "ada", approverOf(t, request))
			assert.Empty(t, named())
		})
	}
}

// channelOf is the channel that the record of an approval names.
func channelOf(t testing.TB, request *unstructured.Unstructured) string {
	t.Helper()
	channel, _, err := unstructured.NestedString(current(t, request).Object, "status", "approval", "channel")
	require.NoError(t, err)
	return channel
}

func TestTheHubNotesThatAnApprovalCameThroughTheDashboard(t *testing.T) {
	for channel, want := range map[string]string{"Dashboard": "Dashboard", "TemporalSignal": "Kubectl"} {
		request := admin.create(t, approvalRequest)
		through(t, channel, "jane").approve(t, request)
		assert.Equal(t, "jane", approverOf(t, request))
		assert.Equal(t, want, channelOf(t, request))
		remove(t, request)
	}
	probed := parse(t, approvalRequest)
	probed.SetName("probed")
	defer withoutNotes(t, admin.createObject(t, probed))()
	request := admin.create(t, approvalRequest)
	throughDashboard := strings.Replace(recordBy("jane"), "Kubectl", "Dashboard", 1)
	requireRefusal(t, as(t, "jane").writeStatus(t, request, "{conditions: ["+approved+"], "+throughDashboard+"}"), `"channel":"Kubectl"`)
	requireRefusal(t, through(t, "Dashboard", "jane").writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("jane")+"}"), `"channel":"Dashboard"`)
	require.NoError(t, through(t, "Dashboard", "jane").writeStatus(t, request, "{conditions: ["+approved+"], "+throughDashboard+"}"))
	assert.Equal(t, "Dashboard", channelOf(t, request))
}

// withoutNotes has the API server not note who approves, as one before Kubernetes 1.36, until it is restored.
func withoutNotes(t *testing.T, request *unstructured.Unstructured) (restore func()) {
	t.Helper()
	const name = "hub-agent-approver"
	binding := &admissionv1.MutatingAdmissionPolicyBinding{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Name: name}, binding))
	require.NoError(t, admin.Delete(t.Context(), binding))
	isNoted := func() bool {
		return admin.writeStatus(t, request, "{conditions: ["+approved+"]}", metav1.DryRunAll) == nil
	}
	require.Eventually(t, func() bool { return !isNoted() }, 30*time.Second, 50*time.Millisecond)
	return func() {
		again := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: binding.Labels}, Spec: binding.Spec}
		require.NoError(t, admin.Create(t.Context(), again))
		require.Eventually(t, isNoted, 30*time.Second, 50*time.Millisecond)
	}
}

func TestWhereTheHubCannotNoteWhoApprovesTheApproverDoes(t *testing.T) {
	for kind, manifest := range map[string]string{"ClusterApprovalRequest": approvalRequest, "ApprovalRequest": namespacedApprovalRequest} {
		t.Run(kind, func(t *testing.T) {
			jane := as(t, "jane")
			ada := as(t, "ada")
			request := parse(t, manifest)
			request.SetName("probed")
			defer withoutNotes(t, admin.createObject(t, request))()
			request = admin.create(t, manifest)

			err := jane.writeStatus(t, request, "{conditions: ["+approved+"]}")
			requireRefusal(t, err, "an approval has to say who gives it, and this API server cannot note that by itself (Kubernetes 1.36 can): approve with kubectl fleet approve, or send")
			requireRefusal(t, err, fmt.Sprintf(`status.approval {"username":%q,`, "jane"))
			requireRefusal(t, jane.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("ada")+"}"), `{"username":"jane",`)
			requireRefusal(t, jane.writeStatus(t, request, "{conditions: [], "+recordBy("jane")+"}"), "is written together with the condition Approved")
			require.NoError(t, jane.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("jane")+"}"))

			require.NoError(t, jane.writeStatus(t, request, "{conditions: ["+takenBack+"], "+recordBy("jane")+"}"))
			requireRefusal(t, ada.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("jane")+"}"), `{"username":"ada",`)
			later := strings.Replace(approved, "2026-01-01", "2026-01-03", 1)
			requireRefusal(t, jane.writeStatus(t, request, "{conditions: ["+later+"], "+recordBy("jane")+"}"), `"at":"<lastTransitionTime of the condition>"`)
			require.NoError(t, ada.writeStatus(t, request, "{conditions: ["+approved+"], "+recordBy("ada")+"}"))
			assert.Equal(t, "ada", approverOf(t, request))
		})
	}
}

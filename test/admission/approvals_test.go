//go:build integration

package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const approvalRequest = `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterApprovalRequest
metadata: {name: recorded}
spec: {parentStageRollout: run, targetStage: canary}
`

const approved = `{type: Approved, status: "True", reason: lgtm, message: looks good, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1}`

func TestWhoApprovedIsToldByTheHub(t *testing.T) {
	admin.create(t, approvalRequest)
	request := current(t, parse(t, approvalRequest))

	err := setStatus(t, request, `{conditions: [], approval: {by: alice, at: "2026-01-01T00:00:00Z", door: kubectl, verified: true}}`)
	requireRefusal(t, err, "status.approval says who approved and is written by the hub: set the condition Approved and leave status.approval out")

	// The API server mutates objects of a kind only once it knows their schema, some seconds after the kind was defined.
	require.Eventually(t, func() bool {
		err = setStatus(t, current(t, request), "{conditions: ["+approved+"]}")
		return err == nil || !strings.Contains(err.Error(), "There can be a delay")
	}, 30*time.Second, 100*time.Millisecond)
	require.NoError(t, err)
	by, _, err := unstructured.NestedString(current(t, request).Object, "status", "approval", "by")
	require.NoError(t, err)
	assert.NotEmpty(t, by, "the hub has written down who it was")

	const accepted = `{type: ApprovalAccepted, status: "True", reason: ok, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}`
	require.NoError(t, setStatus(t, current(t, request), "{conditions: ["+approved+", "+accepted+"], approval: {by: "+by+
		`, at: "2026-01-01T00:00:00Z", door: kubectl, verified: true, comment: looks good}}`))
	err = setStatus(t, current(t, request), "{conditions: ["+approved+", "+accepted+"], approval: {by: "+by+
		`, at: "2026-02-02T00:00:00Z", door: kubectl, verified: true, comment: looks good}}`)
	requireRefusal(t, err, "cannot change once the approval is accepted: leave it as it is")
}

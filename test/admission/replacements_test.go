//go:build integration

package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The right to cordon or to label a cluster is not enough to move all that is placed there to another one.
func TestAnOperatorOfAMemberDoesNotMoveWhatIsPlacedThere(t *testing.T) {
	const (
		lacks = "to change it takes the verb replace on memberclusters.cluster.kubernetes-fleet.io, for both clusters, which the user lacks: have an " +
			"administrator of the hub grant it, or leave the annotation as it is"
		replaced = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: replaced, annotations: {fleetflow.io/replaced-by: replacing}}
spec: {identity: {kind: ServiceAccount, namespace: connect-to-fleet, name: replaced, apiGroup: ""}}
`
		stays = `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: stays}
spec: {identity: {kind: ServiceAccount, namespace: connect-to-fleet, name: stays, apiGroup: ""}}
`
	)
	admin.create(t, replaced)
	admin.create(t, stays)
	replaces := func(name, patch string) func(*testing.T, *session) error {
		return changes(memberCluster, "", name, patch)
	}
	move := replaces("stays", `{metadata: {annotations: {fleetflow.io/replaced-by: replacing}}}`)
	operator := mayOnly(t, "system:serviceaccount:fleet-system:cordoner", onMembers(operators))
	for sentence, try := range map[string]func(*testing.T, *session) error{
		"move it":            move,
		"move it elsewhere":  replaces("replaced", `{metadata: {annotations: {fleetflow.io/replaced-by: another}}}`),
		"give its move up":   replaces("replaced", `{metadata: {annotations: {fleetflow.io/replaced-by: null}}}`),
		"move it through v1": changes("{apiVersion: cluster.kubernetes-fleet.io/v1, kind: MemberCluster}", "", "stays", `{metadata: {annotations: {fleetflow.io/replaced-by: replacing}}}`),
	} {
		t.Run(sentence, func(t *testing.T) {
			err := try(t, operator)
			require.ErrorContains(t, err, lacks)
			assert.True(t, apierrors.IsForbidden(err), "%v", err)
		})
	}
	for sentence, patch := range map[string]string{
		"cordon it": `{spec: {taints: [{key: k, value: v, effect: NoSchedule}]}}`, "annotate it": `{metadata: {annotations: {a: b}}}`, "apply it unchanged": `{}`,
	} {
		t.Run("but "+sentence, func(t *testing.T) {
			assert.NoError(t, replaces("replaced", patch)(t, operator))
			assert.NoError(t, replaces("stays", patch)(t, operator))
		})
	}
	t.Run("nor does a user who may replace the old one only", func(t *testing.T) {
		half := mayOnly(t, "half", onMembers(operators), onMembers([]string{"replace"}, "stays"))
		assert.ErrorContains(t, move(t, half), lacks)
		assert.NoError(t, replaces("stays", `{metadata: {annotations: {fleetflow.io/replaced-by: stays}}}`)(t, half))
	})
	t.Run("with the verb for both it is done", func(t *testing.T) {
		both := mayOnly(t, "both", onMembers(operators), onMembers([]string{"replace"}, "stays", "replacing"))
		assert.NoError(t, move(t, both))
	})
}

package command

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/cmd/version"
)

// ofVersions is a fleet whose agents have noted their versions; the agent of the last member has not.
func ofVersions() []client.Object {
	renewed := metav1.NewMicroTime(now.Add(-time.Second))
	objects := []client.Object{&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: migration.HubAgentLease.Name, Labels: map[string]string{version.Label: "v0.3.0"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("hub-agent-0"), RenewTime: &renewed, LeaseDurationSeconds: new(int32(15))},
	}}
	for name, of := range map[string]string{"member-1": "v0.3.0", "member-2": "v0.2.0", "member-3": "v0.3.0", "member-4": ""} {
		m := member(name, time.Second)
		if of != "" {
			m.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.AgentVersionProperty: {Value: of}}
		}
		objects = append(objects, m)
	}
	return objects
}

func TestVersionTellsThoseOfTheAgents(t *testing.T) {
	c := newConsole(t, ofVersions()...)
	require.NoError(t, c.run("version"))
	lines := strings.Split(strings.TrimSpace(c.Out.String()), "\n")
	assert.Regexp(t, `^kubectl-fleet \S+ \(go`, lines[0])
	assert.Equal(t, []string{"hub agent v0.3.0", "1 member agent of unknown version: member-4", "1 member agent v0.2.0: member-2", "2 member agents v0.3.0: member-1, member-3"}, lines[1:])

	require.NoError(t, c.run("version", "-o", "json"))
	var told versions
	require.NoError(t, json.Unmarshal(c.Out.Bytes(), &told))
	assert.NotEmpty(t, told.Client.Version)
	assert.Equal(t, "v0.3.0", told.HubAgent)
	assert.Equal(t, []memberAgentVersion{{"member-1", "v0.3.0"}, {"member-2", "v0.2.0"}, {"member-3", "v0.3.0"}, {"member-4", ""}}, told.MemberAgents)

	require.NoError(t, c.run("version", "-o", "yaml", "--client"))
	assert.Regexp(t, `^clientVersion:\n  gitVersion: `, c.Out.String())
	assert.NotContains(t, c.Out.String(), "hubAgentVersion")
}

func TestVersionWithoutAHubIsThatOfTheProgram(t *testing.T) {
	c := newConsole(t)
	c.Hub = untouched(c.Hub)
	require.NoError(t, c.run("version", "-o", "json"))
	assert.Contains(t, c.Out.String(), "clientVersion")
	assert.Contains(t, c.Err.String(), "Warning: the versions of the agents are not known")
}

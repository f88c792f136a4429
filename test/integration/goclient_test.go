//go:build integration

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// sampleProgramRollsOut builds the sample of a Go program and has it place the spec's namespace.
func sampleProgramRollsOut(s *spec) {
	s.namespaceWithConfigMap()
	program := filepath.Join(s.TempDir(), "go-client")
	built, err := exec.CommandContext(s.Context(), "go", "build", "-o", program, "../../deploy/samples/go-client").CombinedOutput()
	require.NoError(s, err, string(built))

	sample := exec.CommandContext(s.Context(), program, "-name", s.name, "-namespace", s.name)
	sample.Env = append(os.Environ(), s.Fleet.Environment()...)
	var complaints strings.Builder
	sample.Stderr = &complaints
	out, err := sample.Output()
	require.NoError(s, err, "%s%s", out, &complaints)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(s, lines, 6, string(out))
	require.Equal(s, []string{"the placement has picked clusters", "approved " + s.name + "-run-before-all"}, lines[:2])
	require.ElementsMatch(s, []string{"updated member-1", "updated member-2", "updated member-3"}, lines[2:5])
	require.Equal(s, []string{"the run has succeeded"}, lines[5:])

	s.awaitValue(value1, allMembers...)
	request := &placementv1beta1.ClusterApprovalRequest{}
	require.NoError(s, s.hub.Get(s.Context(), client.ObjectKey{Name: s.name + "-run-before-all"}, request))
	require.Equal(s, administrator, request.Status.Approval.Username)
	require.True(s, request.Status.Approval.Verified)

	again := exec.CommandContext(s.Context(), program, "-name", s.name, "-namespace", s.name)
	again.Env = sample.Env
	out, err = again.CombinedOutput()
	require.Error(s, err)
	require.Contains(s, string(out), "go-client: creating *v1beta1.ClusterResourcePlacement "+s.name+": ")
	require.Contains(s, string(out), "already exists")
}

//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/apis/placement/rules"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// inService and drainFinalizer are what the hooks of the specs name; the first is the label of the sample controller.
const (
	inService      = "example.com/in-service"
	drainFinalizer = "example.com/drain"
)

// hooked makes clusters wait for the sample controller before they are updated, one after the other, and for a finalizer before
// they are left.
func hooked(p *placementv1beta1.PlacementSpec) {
	p.Strategy = &placementv1beta1.RolloutStrategy{
		RollingUpdate: &placementv1beta1.RollingUpdateConfig{MaxUnavailable: new(intstr.FromInt32(1))},
		Lifecycle: &placementv1beta1.ClusterLifecycle{
			PreUpdate: &placementv1beta1.ClusterDrainHook{
				ClusterHook:    placementv1beta1.ClusterHook{LabelsHandler: map[string]placementv1beta1.HookLabelValue{inService: "yes"}},
				MarkNotServing: true,
			},
			PreRemove: &placementv1beta1.ClusterDrainHook{ClusterHook: placementv1beta1.ClusterHook{FinalizersHandler: []string{drainFinalizer}}},
		},
	}
}

// drain runs the sample controller for the placement until the returned function is called. Each line of the file says what it
// has done to traffic.
func (s *spec) drain(file string) (stop func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	sample := filepath.Join("..", "..", "deploy", "samples", "lifecycle-hooks", "drain.sh")
	controller := exec.CommandContext(ctx, "bash", sample, s.name, "bash", "-c", `echo "$1 $2" >>"`+file+`"`, "traffic")
	controller.Env = append(append(os.Environ(), s.Fleet.Environment()...), "PATH="+s.Fleet.Path("bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := os.Create(file + ".log")
	require.NoError(s, err)
	controller.Stdout = output
	controller.Stderr = output
	controller.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its kubectl ends with it
	controller.Cancel = func() error { return syscall.Kill(-controller.Process.Pid, syscall.SIGKILL) }
	require.NoError(s, controller.Start())
	return func() {
		cancel()
		_ = controller.Wait() // it was killed
		_ = output.Close()
	}
}

// awaitBindings waits until every binding of the placement is as ok says.
func (s *spec) awaitBindings(what string, ok func(*placementv1beta1.ClusterResourceBinding) bool) {
	s.Helper()
	awaitAll(s, s.hub, what, func(all []*placementv1beta1.ClusterResourceBinding) error {
		if len(all) != len(allMembers) {
			return fmt.Errorf("there are %d", len(all))
		}
		for _, b := range all {
			if !ok(b) {
				return errors.New(b.Spec.TargetCluster + " is not")
			}
		}
		return nil
	}, s.mine())
}

// sampleControllerDrainsBeforeUpdates updates clusters one after the other, none of which has traffic meanwhile; without the
// controller they wait, which keeps nothing from being deleted.
func sampleControllerDrainsBeforeUpdates(s *spec) {
	file := filepath.Join(s.TempDir(), "traffic")
	s.namespaceWithConfigMap()
	s.place(hooked)
	stop := s.drain(file)
	defer func() { stop() }()
	s.awaitAvailable("0")
	isServing := func(b *placementv1beta1.ClusterResourceBinding) bool { return b.Labels[inService] == "yes" }
	s.awaitBindings("to be in service", isServing)

	s.changeTo("value2")
	s.awaitAvailable("1")
	s.awaitBindings("to be back in service", func(b *placementv1beta1.ClusterResourceBinding) bool {
		state, _ := rules.LifecycleStateOf(b)
		return isServing(b) && state == placementv1beta1.LifecycleNormal && b.Spec.ResourceSnapshotName == s.name+"-1-snapshot"
	})
	content, err := os.ReadFile(file)
	require.NoError(s, err)
	off := map[string]bool{}
	drained := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		traffic, member, _ := strings.Cut(strings.TrimSpace(line), " ")
		if delete(off, member); traffic == "off" {
			off[member] = true
			drained[member] = true
		}
		require.LessOrEqual(s, len(off), 1, "more than maxUnavailable are without traffic:\n%s", content)
	}
	require.Len(s, drained, len(allMembers), "every cluster was drained:\n%s", content)

	stop()
	stop = func() {}
	s.changeTo("value3")
	const says = "waits for label " + inService + "=yes to be taken off binding "
	await(s, s.hub, s.placement(), "to say what it waits for", func(p *placementv1beta1.ClusterResourcePlacement) error {
		for _, entry := range p.Status.PerClusterPlacementStatuses {
			for _, c := range entry.Conditions {
				if c.Reason == placementv1beta1.ReasonWaitingForHook && strings.Contains(c.Message, says) && strings.Contains(c.Message, "since ") {
					return nil
				}
			}
		}
		return errors.New("no entry does")
	})
	for _, b := range awaitAll(s, s.hub, "to be there", func([]*placementv1beta1.ClusterResourceBinding) error { return nil }, s.mine()) {
		before := b.DeepCopy()
		b.Finalizers = append(b.Finalizers, drainFinalizer)
		require.NoError(s, s.hub.Patch(s.Context(), b, client.MergeFrom(before)))
	}
	require.NoError(s, s.hub.Delete(s.Context(), s.placement()))
	awaitGone(s, s.hub, s.placement())
}

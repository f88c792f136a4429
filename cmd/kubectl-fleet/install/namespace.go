package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
)

// makeNamespace makes the namespace of an agent, which admits restricted Pods only. One that is there keeps its labels, as other Pods
// may run in it; the user is told what is missing.
func (s *installing) makeNamespace(ctx context.Context, cluster client.WithWatch) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentNamespace,
		Labels: map[string]string{diagnosis.PodSecurityLabel: diagnosis.PodSecurity}}}
	err := s.Writer(cluster).Create(ctx, namespace)
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", agentNamespace, err)
	}
	if err := cluster.Get(ctx, client.ObjectKey{Name: agentNamespace}, namespace); err != nil {
		return fmt.Errorf("reading namespace %s: %w", agentNamespace, err)
	}
	if namespace.Labels[diagnosis.PodSecurityLabel] == "" {
		cli.Printf(s.Streams.ErrOut, "Warning: namespace %s was there and lacks the label %s, so it admits privileged Pods; the agent needs none: kubectl label namespace %s %s=%s\n",
			agentNamespace, diagnosis.PodSecurityLabel, agentNamespace, diagnosis.PodSecurityLabel, diagnosis.PodSecurity)
	}
	return nil
}

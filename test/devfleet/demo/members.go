package demo

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// membersHave looks at every member, once: a run that has succeeded has nothing left to wait for.
func (s *story) membersHave(ctx context.Context, r rollout) error {
	for _, member := range s.Fleet.MemberNames() {
		statement := fmt.Sprintf("%s has %s=%s and %d available pods of Deployment %s", member, configKey, r.value, replicas, deploymentName)
		if finding := s.notOn(ctx, member, r.value); finding != "" {
			return s.failure(ctx, r.object(), statement, finding, nil)
		}
	}
	return s.holds(ctx, r.object(), fmt.Sprintf("every member has %s=%s and %d of %d pods of Deployment %s available",
		configKey, r.value, replicas, replicas, deploymentName), "")
}

// notOn returns what is missing on a member.
func (s *story) notOn(ctx context.Context, member, value string) string {
	cm := &corev1.ConfigMap{}
	app := &appsv1.Deployment{}
	if err := s.Members[member].Get(ctx, client.ObjectKey{Namespace: namespaceName, Name: configMapName}, cm); err != nil {
		return err.Error()
	}
	if got := cm.Data[configKey]; got != value {
		return fmt.Sprintf("%s=%s", configKey, got)
	}
	if err := s.Members[member].Get(ctx, client.ObjectKey{Namespace: namespaceName, Name: deploymentName}, app); err != nil {
		return err.Error()
	}
	if got := app.Status.AvailableReplicas; got != replicas {
		return fmt.Sprintf("%d of %d pods are available", got, replicas)
	}
	return ""
}

package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// Names of the act in which a version crashes on a real node.
const (
	guardedStrategyName = "example-guarded-strategy"
	restStage           = "rest"
	lastWords           = "no database"
	// realMember is the member that has a real node, if one has: the first.
	realMember = "member-1"
	// progressDeadline is after how many seconds the Deployment says that it makes no progress: long enough for kubelet to find that a
	// container crashes again and again.
	progressDeadline = 20
)

// hasRealNode reports whether Pods of the demo run on a real node.
func (s *story) hasRealNode() bool { return s.Fleet.IsReal(realMember) }

// crashLoop has a version that crashes stopped on the first cluster, whose Pods are real, and taken back.
func (s *story) crashLoop(ctx context.Context) error {
	if err := s.Hub.Create(ctx, guardedStrategy()); err != nil {
		return fmt.Errorf("creating the strategy: %w", err)
	}
	s.screen.did("created ClusterStagedUpdateStrategy %s: %s has %s alone, and goes back if a cluster of it stalls; then %s",
		guardedStrategyName, canaryStage, realMember, restStage)
	if err := s.edit(ctx, "value6", 6); err != nil {
		return err
	}
	if err := s.crash(ctx, 7); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := s.recordWrites(watching)
	if err != nil {
		return err
	}
	run := updateRun(runName(7), "")
	run.Spec.StagedUpdateStrategyName = guardedStrategyName
	if err := s.Hub.Create(ctx, run); err != nil {
		return fmt.Errorf("creating run %s: %w", run.Name, err)
	}
	s.screen.did("created ClusterStagedUpdateRun %s: the latest snapshot of %s by %s", run.Name, placementName, guardedStrategyName)
	began := time.Now()
	f := s.follow(watching, run.Name)
	if err := allBecome(ctx, s, s.Hub, "the hub is told why: a container crashes again and again, and its last words", notCrashing,
		ofPlacement, client.InNamespace(clusterv1beta1.MemberNamespace(realMember))); err != nil {
		return err
	}
	if _, err := f.until(ctx, waitLimit, "fails in "+canaryStage, isFailed); err != nil {
		return err
	}
	back := placementv1beta1.RollbackName(run.Name, run.UID)
	if _, err := s.follow(watching, back).until(ctx, waitLimit, "takes the cluster back by itself", succeeded); err != nil {
		return err
	}
	s.note = "crashed for " + seconds(time.Since(began)) + ", on one cluster"
	return s.checkTakenBack(ctx, seen, lapse{n: 7, cluster: realMember, given: 7, before: 4, value: "value6", valueBefore: "value5"})
}

// crash gives the Deployment a version that ends at once, and waits for the snapshot of it.
func (s *story) crash(ctx context.Context, index int) error {
	app := &appsv1.Deployment{}
	if err := s.Hub.Get(ctx, client.ObjectKey{Namespace: namespaceName, Name: deploymentName}, app); err != nil {
		return fmt.Errorf("reading the Deployment: %w", err)
	}
	app.Spec.Template.Spec.Containers[0].Args = []string{"crash", "--code", "3", "--say", lastWords}
	if err := s.Hub.Update(ctx, app); err != nil {
		return fmt.Errorf("changing the Deployment: %w", err)
	}
	s.screen.did("changed Deployment %s on the hub: its container ends with code 3 and the words %q", deploymentName, lastWords)
	return s.latestIs(ctx, index)
}

// guardedStrategy has the cluster with the real node alone in its first stage, which goes back when the cluster stalls.
func guardedStrategy() *placementv1beta1.ClusterStagedUpdateStrategy {
	const place = "2" // the real member's, in the order of canaries
	return &placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: named(guardedStrategyName),
		Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{
			{
				Name:          canaryStage,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{environment: canaryStage, orderLabel: place}},
				FailureBudget: &placementv1beta1.FailureBudget{
					OnExceeded: placementv1beta1.FailureBudgetRollback, FailOn: []placementv1beta1.ClusterFailure{placementv1beta1.ClusterFailureStalled},
				},
			},
			{
				Name: restStage,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
					{Key: orderLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{place}},
				}},
			},
		}},
	}
}

// notCrashing returns what is missing until the Works of a cluster report a container that crashes. It is pure.
func notCrashing(works []*placementv1beta1.Work) string {
	found := "no manifest has the condition " + placementv1beta1.ConditionTypeFailing
	for _, work := range works {
		for i := range work.Status.ManifestConditions {
			c := placementv1beta1.FindTrue(work.Status.ManifestConditions[i].Conditions, placementv1beta1.ConditionTypeFailing)
			if c == nil {
				continue
			}
			if c.Reason == placementv1beta1.ReasonCrashLoop && strings.Contains(c.Message, lastWords) {
				return ""
			}
			found = c.Reason + ": " + c.Message
		}
	}
	return found
}

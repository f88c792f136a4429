// Command go-client is a Go program against the API of fleetflow. It places a namespace of the hub on all clusters in one stage: it
// creates a placement, a strategy and a run, waits until the run asks for an approval, approves, and waits for the end of the run.
//
//	go run ./deploy/samples/go-client -name shop -namespace shop
//
// The hub is that of the kubeconfig that KUBECONFIG names. Who approves is the user of that kubeconfig.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"

	placementv1beta1apply "github.com/fleetflow/fleetflow/apis/placement/applyconfiguration/placement/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func main() {
	name := flag.String("name", "", "name of the placement and its strategy; that of the run has -run behind it")
	namespace := flag.String("namespace", "", "namespace of the hub to place")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := rollOut(ctx, *name, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, "go-client:", err)
		os.Exit(1)
	}
}

// rollOut takes a namespace to all clusters.
func rollOut(ctx context.Context, name, namespace string) error {
	hub, err := connect()
	if err != nil {
		return err
	}
	placement := placementOf(name, namespace)
	for _, object := range []client.Object{placement, strategyOf(name)} {
		if err := hub.Create(ctx, object); err != nil {
			return fmt.Errorf("creating %T %s: %w", object, name, err)
		}
	}
	// A run takes the clusters and the resources that the placement has picked when the run begins.
	scheduled := placementv1beta1.Scope{}.PlacementConditionType(placementv1beta1.ConditionTypeScheduled)
	_, err = await(ctx, hub, &placementv1beta1.ClusterResourcePlacementList{}, placement,
		func(p *placementv1beta1.ClusterResourcePlacement) bool {
			return meta.IsStatusConditionTrue(p.Status.Conditions, scheduled) && p.Status.ObservedResourceIndex != ""
		})
	if err != nil {
		return fmt.Errorf("waiting until placement %s has picked clusters: %w", name, err)
	}
	fmt.Println("the placement has picked clusters")

	run := runOf(name)
	if err := hub.Create(ctx, run); err != nil {
		return fmt.Errorf("creating run %s: %w", run.Name, err)
	}
	if err := approve(ctx, hub, run); err != nil {
		return err
	}
	return awaitEnd(ctx, hub, run)
}

// connect returns a client of the hub that knows the kinds of the group placement.kubernetes-fleet.io.
func connect() (client.WithWatch, error) {
	kubeconfig, err := config.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	// The hub warns of what it takes and is rarely meant.
	kubeconfig.WarningHandler = rest.NewWarningWriter(os.Stderr, rest.WarningWriterOptions{})
	scheme := runtime.NewScheme()
	if err := placementv1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("adding the kinds to the scheme: %w", err)
	}
	hub, err := client.NewWithWatch(kubeconfig, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return hub, nil
}

// placementOf returns a placement of a namespace, and of all that is in it, on every cluster. It changes clusters by runs only.
func placementOf(name, namespace string) *placementv1beta1.ClusterResourcePlacement {
	return &placementv1beta1.ClusterResourcePlacement{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.PlacementSpec{
			ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Namespace", Name: namespace}},
			Policy:            &placementv1beta1.PlacementPolicy{PlacementType: placementv1beta1.PickAllPlacementType},
			Strategy:          &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType},
		},
	}
}

// strategyOf returns a strategy of one stage, which waits for an approval before its first cluster.
func strategyOf(name string) *placementv1beta1.ClusterStagedUpdateStrategy {
	return &placementv1beta1.ClusterStagedUpdateStrategy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: placementv1beta1.UpdateStrategySpec{Stages: []placementv1beta1.StageConfig{{
			Name:             "all",
			LabelSelector:    &metav1.LabelSelector{},
			BeforeStageTasks: []placementv1beta1.StageTask{{Type: placementv1beta1.StageTaskTypeApproval}},
		}}},
	}
}

// runOf returns a run of the placement. Without an index, it takes the latest snapshot of the resources.
func runOf(name string) *placementv1beta1.ClusterStagedUpdateRun {
	return &placementv1beta1.ClusterStagedUpdateRun{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-run"},
		Spec: placementv1beta1.UpdateRunSpec{
			PlacementName: name, StagedUpdateStrategyName: name, State: placementv1beta1.StateRun,
		},
	}
}

// approve waits until a run asks for an approval, and gives it.
func approve(ctx context.Context, hub client.WithWatch, run *placementv1beta1.ClusterStagedUpdateRun) error {
	asked := &placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: run.Name + "-before-all"}}
	// A request that was left over by an earlier run of the same name has the UID of that one.
	request, err := await(ctx, hub, &placementv1beta1.ClusterApprovalRequestList{}, asked,
		func(r *placementv1beta1.ClusterApprovalRequest) bool {
			return r.Annotations[placementv1beta1.ApprovalRunUIDAnnotation] == string(run.UID)
		})
	if err != nil {
		return fmt.Errorf("waiting until run %s asks for an approval: %w", run.Name, err)
	}
	// The hub agent writes this status, too: only what is said here is written.
	approved := metav1apply.Condition().WithType(placementv1beta1.ConditionTypeApproved).WithStatus(metav1.ConditionTrue).
		WithObservedGeneration(request.Generation).WithLastTransitionTime(metav1.Now()).
		WithReason("Approved").WithMessage("approved by a program")
	said := placementv1beta1apply.ClusterApprovalRequest(request.Name).WithUID(request.UID).
		WithStatus(placementv1beta1apply.ApprovalRequestStatus().WithConditions(approved))
	if err := hub.Status().Apply(ctx, said, client.FieldOwner("go-client")); err != nil {
		return fmt.Errorf("approving %s: %w", request.Name, err)
	}
	fmt.Println("approved", request.Name)
	return nil
}

// awaitEnd waits until a run is over, and returns an error unless it has succeeded.
func awaitEnd(ctx context.Context, hub client.WithWatch, run *placementv1beta1.ClusterStagedUpdateRun) error {
	ended, err := await(ctx, hub, &placementv1beta1.ClusterStagedUpdateRunList{}, run, func(r *placementv1beta1.ClusterStagedUpdateRun) bool {
		return verdict(r) != nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the end of run %s: %w", run.Name, err)
	}
	if is := verdict(ended); is.Status != metav1.ConditionTrue {
		return fmt.Errorf("run %s: %s: %s", run.Name, is.Reason, is.Message)
	}
	for _, stage := range ended.Status.StagesStatus {
		for _, cluster := range stage.Clusters {
			fmt.Println("updated", cluster.ClusterName)
		}
	}
	fmt.Println("the run has succeeded")
	return nil
}

// verdict returns the condition that tells how a run has ended: Succeeded, or Initialized if it could not begin; nil before.
func verdict(run *placementv1beta1.ClusterStagedUpdateRun) *metav1.Condition {
	if is := meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeInitialized); is != nil &&
		is.Status == metav1.ConditionFalse {
		return is
	}
	return meta.FindStatusCondition(run.Status.Conditions, placementv1beta1.ConditionTypeSucceeded)
}

// await watches one object of a kind until it is as wanted, and returns it. The list tells the kind.
func await[T client.Object](ctx context.Context, hub client.WithWatch, list client.ObjectList, object T, isWanted func(T) bool) (T, error) {
	named := fields.OneTermEqualSelector("metadata.name", object.GetName()).String()
	options := func(raw metav1.ListOptions) *client.ListOptions {
		raw.FieldSelector = named
		return &client.ListOptions{Raw: &raw}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, raw metav1.ListOptions) (runtime.Object, error) {
			found := list.DeepCopyObject().(client.ObjectList)
			return found, hub.List(ctx, found, options(raw))
		},
		WatchFuncWithContext: func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
			return hub.Watch(ctx, list.DeepCopyObject().(client.ObjectList), options(raw))
		},
	}
	// The watch goes on from where it was after the connection or the API server was away.
	event, err := watchtools.UntilWithSync(ctx, source, object, nil, func(event watch.Event) (bool, error) {
		found, is := event.Object.(T)
		return is && event.Type != watch.Deleted && isWanted(found), nil
	})
	if err != nil {
		return object, err
	}
	return event.Object.(T), nil
}

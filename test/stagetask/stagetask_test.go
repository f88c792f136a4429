package stagetask_test

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fleetflow/fleetflow/activities/clusterwait"
	"github.com/fleetflow/fleetflow/activities/override"
	acts "github.com/fleetflow/fleetflow/activities/stagedupdate"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/command"
	"github.com/fleetflow/fleetflow/controllers/hub/telemetry"
	"github.com/fleetflow/fleetflow/test/fixture"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/stagedupdate"
)

// begin is when every test starts, on all clocks.
var begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var runRef = wf.Ref{Kind: wf.KindClusterStagedUpdateRun, Name: "web", UID: "uid-web"}

// fleet is a run with its workflow and its activities over an API server in memory. Clusters are updated at once.
type fleet struct {
	client.WithWatch
	t      *testing.T
	env    *testsuite.TestWorkflowEnvironment
	clock  *clocktesting.FakeClock
	acts   *acts.Activities
	phases []string
	events events
	// noQuestions says that the API server does not serve MemberQuestions.
	noQuestions bool
	// refuse refuses the creation of a rehearsal, if it says so.
	refuse func() error
}

// Create implements client.Writer.
func (f *fleet) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if _, is := object.(*fleetflowv1alpha1.ClusterRehearsal); is && f.refuse != nil {
		if err := f.refuse(); err != nil {
			return err
		}
	}
	return f.WithWatch.Create(ctx, object, options...)
}

// Get implements client.Reader.
func (f *fleet) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if _, is := into.(*fleetflowv1alpha1.MemberQuestion); is && f.noQuestions {
		return &meta.NoKindMatchError{GroupKind: fleetflowv1alpha1.GroupVersion.WithKind("MemberQuestion").GroupKind()}
	}
	return f.WithWatch.Get(ctx, key, into, options...)
}

// newFleet has a run of one stage with one cluster and a ticket after it.
func newFleet(t *testing.T) *fleet {
	t.Helper()
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "crp", UID: "uid-crp", Generation: 1}}
	placement.Spec.Strategy = &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	policy := &placementv1beta1.ClusterSchedulingPolicySnapshot{ObjectMeta: metav1.ObjectMeta{Name: "crp-0", Generation: 1, Labels: map[string]string{
		placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.IsLatestSnapshotLabel: "true", placementv1beta1.PolicyIndexLabel: "0",
	}}}
	policy.Status.ObservedCRPGeneration = 1
	policy.Status.ClusterDecisions = []placementv1beta1.ClusterDecision{{ClusterName: "member1", Selected: true}}
	policy.Status.Conditions = []metav1.Condition{{
		Type: placementv1beta1.ConditionTypeScheduled, Status: metav1.ConditionTrue,
		Reason: placementv1beta1.ReasonSchedulingPolicyFulfilled, ObservedGeneration: 1, LastTransitionTime: metav1.NewTime(begin),
	}}
	binding := fixture.Binding("member1", 1)
	binding.Name = placementv1beta1.BindingName("crp", "uid-crp", "member1")
	binding.Labels = map[string]string{placementv1beta1.ParentPlacementLabel: "crp"}
	binding.Spec.SchedulingPolicySnapshotName = "crp-0"
	snapshot := &placementv1beta1.ClusterResourceSnapshot{ObjectMeta: metav1.ObjectMeta{
		Name:   placementv1beta1.ResourceSnapshotName("crp", 0, 0),
		Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "crp", placementv1beta1.ResourceIndexLabel: "0"},
	}}
	strategy := &placementv1beta1.ClusterStagedUpdateStrategy{ObjectMeta: metav1.ObjectMeta{Name: "strategy"}}
	strategy.Spec.Stages = []placementv1beta1.StageConfig{{Name: "canary", AfterStageTasks: []placementv1beta1.StageTask{{Type: ticketType}}}}
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "uid-web", Generation: 1, CreationTimestamp: metav1.NewTime(begin),
	}}
	run.Spec = placementv1beta1.UpdateRunSpec{PlacementName: "crp", ResourceSnapshotIndex: "0", StagedUpdateStrategyName: "strategy"}
	cluster := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}}

	f := &fleet{t: t, clock: clocktesting.NewFakeClock(begin)}
	f.WithWatch = fixture.APIServer(t, placement, policy, binding, snapshot, strategy, run, cluster)
	f.acts = &acts.Activities{Client: f, Live: f, Snapshots: noOverrides{}, Notifier: clusterwait.NewNotifier(), Events: &f.events, Clock: f.clock}
	f.startWorkflow()
	return f
}

func (f *fleet) startWorkflow() {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	f.env = suite.NewTestWorkflowEnvironment()
	f.env.SetStartTime(begin)
	f.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	f.env.RegisterWorkflowWithOptions(stagedupdate.Workflow, workflow.RegisterOptions{Name: wf.UpdateRunWorkflow})
	f.env.RegisterWorkflowWithOptions(stagedupdate.StageWorkflow, workflow.RegisterOptions{Name: wf.StageWorkflow})
	for name, activityFunc := range map[string]any{
		wf.LoadRun: f.acts.LoadRun, wf.InitializeRun: f.acts.InitializeRun, wf.PauseRun: f.acts.PauseRun, wf.LoadStage: f.acts.LoadStage,
		wf.AdvanceStage: f.updateClusters, wf.CheckGates: f.checkGates,
		wf.AdvanceDeletion: func(context.Context, wf.Ref) (wf.DeletionResult, error) { return wf.DeletionResult{Done: true}, nil },
	} {
		f.env.RegisterActivityWithOptions(activityFunc, activity.RegisterOptions{Name: name})
	}
	f.env.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		if attributes, ok := args.Get(0).(temporal.SearchAttributes); ok {
			phase, _ := attributes.GetKeyword(temporal.NewSearchAttributeKeyKeyword(wf.PhaseAttribute))
			f.phases = append(f.phases, phase)
		}
	}).Return(nil).Maybe()
}

// updateClusters records that the clusters which were to start have been updated.
func (f *fleet) updateClusters(ctx context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
	run := f.run()
	recorder := updaterun.Recorder{Run: run, Now: f.env.Now()}
	recorder.ClustersStarted(recorder.Stage(in.Index), in.Start)
	recorder.ClustersSucceeded(recorder.Stage(in.Index), in.Start)
	return wf.StageDelta{Recorded: in.Start}, f.Status().Update(ctx, run)
}

func (f *fleet) checkGates(ctx context.Context, in wf.GateRequest) (wf.GateState, error) {
	f.clock.SetTime(f.env.Now())
	return f.acts.CheckGates(ctx, in)
}

func (f *fleet) run() *placementv1beta1.ClusterStagedUpdateRun {
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: "web"}, run))
	return run
}

// details are what the Temporal UI shows of the workflow.
func (f *fleet) details() string {
	value, err := f.env.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(f.t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(f.t, value.Get(&metadata))
	return metadata.GetCurrentDetails()
}

// gatesWaiting are the labels of the series that tell what runs wait for.
func (f *fleet) gatesWaiting() []string {
	leading := make(chan struct{})
	close(leading)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(&telemetry.Collector{Cache: f, Leading: leading, Clock: f.clock, Log: logr.Discard()})
	families, err := registry.Gather()
	require.NoError(f.t, err)
	var series []string
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "fleetflow_update_run_task_begun_timestamp_seconds" {
				series = append(series, metric.GetLabel()[2].GetValue()+" "+metric.GetLabel()[3].GetValue())
			}
		}
	}
	return series
}

// kubectl returns what a command of the plugin prints.
func (f *fleet) kubectl(args ...string) string {
	f.t.Setenv("KUBECONFIG", f.t.TempDir()+"/none")
	factory := cli.NewFactory()
	factory.Clock = clocktesting.NewFakeClock(f.env.Now())
	factory.Configure = func(string) (*rest.Config, error) { return &rest.Config{}, nil }
	factory.Connect = func(*rest.Config) (client.WithWatch, error) { return f, nil }
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root := command.NewRoot(factory, streams)
	root.SetArgs(args)
	require.NoError(f.t, root.ExecuteContext(f.t.Context()))
	return out.String()
}

func TestATaskOfANewTypeIsWaitedForShownAndPassed(t *testing.T) {
	t.Cleanup(stagetask.Register(ticketType, ticket{}))
	f := newFleet(t)
	f.env.RegisterDelayedCallback(func() {
		assert.Contains(t, f.details(), "Waits for ticket of web-canary-ticket.")
		assert.Contains(t, f.kubectl("get", "runs"), "ticket of web-canary-ticket")
		assert.Contains(t, f.kubectl("status", "run/web"), "◷ ticket after")
		assert.Equal(t, []string{"canary afterStageTicket"}, f.gatesWaiting())

		opened := &corev1.ConfigMap{}
		require.NoError(t, f.Get(t.Context(), types.NamespacedName{Namespace: ticketNamespace, Name: "web-canary-ticket"}, opened))
		opened.Data = map[string]string{"state": "closed"}
		require.NoError(t, f.Update(t.Context(), opened))
	}, 10*time.Second)
	f.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(t, f.env.IsWorkflowCompleted())
	require.NoError(t, f.env.GetWorkflowError())

	stage := f.run().Status.StagesStatus[0]
	assert.True(t, meta.IsStatusConditionTrue(stage.AfterStageTaskStatus[0].Conditions, ticketClosed))
	assert.True(t, meta.IsStatusConditionTrue(stage.Conditions, placementv1beta1.ConditionTypeSucceeded))
	assert.Equal(t, []string{"Initializing", "Updating", "WaitingTicket", "Deleting", "Succeeded"}, f.phases)
	assert.Empty(t, f.gatesWaiting())
	assert.WithinDuration(t, begin.Add(ticketInterval), f.clock.Now(), time.Second, "it is checked again when it asks for that")
}

func TestATaskOfATypeThatIsNotRegisteredIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	f := newFleet(t)
	f.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(t, f.env.IsWorkflowCompleted())
	require.NoError(t, f.env.GetWorkflowError())
	initialized := meta.FindStatusCondition(f.run().Status.Conditions, placementv1beta1.ConditionTypeInitialized)
	require.NotNil(t, initialized)
	assert.Equal(t, metav1.ConditionFalse, initialized.Status)
	assert.Contains(t, initialized.Message, "task 0 of stage `canary`: there is no type Ticket; the types are Analysis, Approval, PrePull, Rehearsal, TimedWait")
	assert.Equal(t, []string{"Initializing", "Failed"}, f.phases)
}

// noOverrides are the snapshots of a placement that nothing overrides.
type noOverrides struct{ acts.Snapshotter }

func (noOverrides) Overrides(context.Context, placementv1beta1.PlacementObject, string) (*override.Matcher, error) {
	return nil, nil
}

// events are the types and reasons of those that were recorded.
type events struct {
	mu  sync.Mutex
	all []string
}

// Eventf implements the recorder of the activities.
func (e *events) Eventf(_, _ runtime.Object, eventType, reason, _, _ string, _ ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, eventType+" "+reason)
}

func (e *events) told() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

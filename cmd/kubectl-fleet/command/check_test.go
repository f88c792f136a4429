package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	"github.com/fleetflow/fleetflow/apis/kubefleet"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/definitions"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/diagnosis"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// reporting is a member that joined and reported a while ago.
func reporting(name, agent string, reported time.Duration) *clusterv1beta1.MemberCluster {
	member := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: ago(time.Hour)},
		Spec:       clusterv1beta1.MemberClusterSpec{HeartbeatPeriodSeconds: 15},
	}
	member.Status.Conditions = []metav1.Condition{condition(clusterv1beta1.ConditionTypeJoined, metav1.ConditionTrue, "Joined", time.Hour)}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: ago(reported)}}
	member.Status.Properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{
		clusterv1beta1.AgentVersionProperty: {Value: agent}, clusterv1beta1.KubernetesVersionProperty: {Value: "v1.34.1"},
	}
	return member
}

// runCheck runs check as a plugin of a version, beside a kubectl of another.
func (c *console) runCheck(plugin, kubectl string, args ...string) error {
	c.T.Helper()
	f, streams := c.Factory()
	f.Lacking = func(context.Context) ([]definitions.Gap, error) { return c.lacking, nil }
	cmd := newCheck(f, streams, plugin, func(context.Context) string { return kubectl })
	cmd.SetArgs(args)
	cmd.SilenceErrors = true
	cmd.SilenceUsage = true
	return cmd.ExecuteContext(c.T.Context())
}

// kindsServed is how many kinds the hub serves: there are more with each that is added.
var kindsServed = regexp.MustCompile(`serves (all )?\d+ kinds`)

// goldenCheck compares what check printed with testdata/<name>, whatever the number of kinds.
func (c *console) goldenCheck(name string) {
	c.T.Helper()
	printed := kindsServed.ReplaceAllString(c.Out.String(), "serves ${1}N kinds")
	c.Out.Reset()
	c.Out.WriteString(printed)
	c.Golden(name)
}

func TestCheckOfAFleetThatIsAsItShouldBe(t *testing.T) {
	c := newConsole(t, terminal.Versioned(leaseOf(migration.HubAgentLease, "hub-agent-7f"), "v0.2.0"), temporalNote(""), reporting("member-1", "v0.2.0", time.Second), reporting("member-2", "v0.1.4", time.Second))
	c.Discover = terminal.EveryKind()
	require.NoError(t, c.runCheck("v0.3.0", "v1.36.3", "--strict"))
	c.goldenCheck("check-well.txt")
}

func TestCheckNamesWhatIsWrongAndTheRemedy(t *testing.T) {
	silent := reporting("silent", "v0.2.0", 5*time.Minute)
	unhealthy := reporting("unhealthy", "v0.4.0", time.Second)
	token := reporting("token", "v0.2.0", time.Second)
	never := reporting("never", "", time.Second)
	leaving := reporting("leaving", "v0.2.0", time.Second)
	meta.SetStatusCondition(&unhealthy.Status.Conditions, condition(clusterv1beta1.ConditionTypeHealthy, metav1.ConditionFalse, "APIServerNotReady", time.Minute))
	meta.SetStatusCondition(&token.Status.Conditions, condition(clusterv1beta1.ConditionTypeHubTokenRenewed, metav1.ConditionFalse, "RenewalFailed", time.Minute))
	never.Status = clusterv1beta1.MemberClusterStatus{}
	at := ago(10 * time.Minute)
	leaving.DeletionTimestamp = &at
	leaving.Finalizers = []string{"example.com/stays"}
	token.Status.Properties[clusterv1beta1.KubernetesVersionProperty] = clusterv1beta1.PropertyValue{Value: "v1.23.9"}
	waiting := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	waiting.Status.Conditions = []metav1.Condition{{Type: placementv1beta1.ConditionTypeEngineReachable, Status: metav1.ConditionFalse, Reason: "EngineUnreachable", Message: "dial tcp: connection refused"}}
	agent := terminal.Versioned(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent"}}, "v0.2.0")
	agent.(*appsv1.Deployment).Spec.Replicas = new(int32(2))
	pod := terminal.Versioned(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent-7f"}}, "v0.2.0").(*corev1.Pod)
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hub-agent", Image: "ghcr.io/fleetflow/hub-agent:v0.2.0", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off pulling image"},
	}}}
	creating := terminal.Versioned(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent-8a", CreationTimestamp: ago(3 * time.Minute)}}, "v0.2.0").(*corev1.Pod)
	creating.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hub-agent", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}}
	c := newConsole(t, silent, unhealthy, token, never, leaving, waiting, agent, pod, creating, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-system"}})
	c.Discover = terminal.EveryKind("RolloutHold", "Work")
	c.Kubernetes = "v1.29.4"
	exit := &cli.Exit{}
	require.ErrorAs(t, c.runCheck("v0.1.0", "v1.28.0"), &exit)
	assert.Equal(t, cli.CodeFailed, exit.Code)
	c.goldenCheck("check-ill.txt")
}

func TestCheckNamesWhatMessagesDoNotArriveIn(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason, message string) []metav1.Condition {
		return []metav1.Condition{{Type: fleetflowv1alpha1.ConditionTypeReady, Status: status, Reason: reason, Message: message}}
	}
	chat := &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}
	chat.Status.Conditions = ready(metav1.ConditionFalse, fleetflowv1alpha1.ReasonRefused, "The last message did not arrive: Slack answers channel_not_found")
	mail := &fleetflowv1alpha1.NotificationChannel{ObjectMeta: metav1.ObjectMeta{Name: "mail"}}
	mail.Status.Conditions = ready(metav1.ConditionUnknown, fleetflowv1alpha1.ReasonNotTried, "not known yet")
	rule := &fleetflowv1alpha1.NotificationRule{ObjectMeta: metav1.ObjectMeta{Name: "people"}}
	rule.Status.Conditions = ready(metav1.ConditionFalse, fleetflowv1alpha1.ReasonTooManyDestinations, "what is for chat waits")
	sink := &fleetflowv1alpha1.AuditSink{ObjectMeta: metav1.ObjectMeta{Name: "siem"}}
	well := []client.Object{terminal.Versioned(leaseOf(migration.HubAgentLease, "hub-agent-7f"), "v0.3.0"), temporalNote(""), reporting("member-1", "v0.3.0", time.Second), mail, sink}
	for sentence, test := range map[string]struct {
		objects []client.Object
		says    []string
		code    int
	}{
		"none fails": {well, []string{"none of 2 channels, rules and sinks fails; of 2 of them nothing is known yet"}, 0},
		"some fail": {append(slices.Clone(well), chat, rule), []string{
			"channel chat: The last message did not arrive: Slack answers channel_not_found", "once it is corrected: kubectl fleet notify test chat",
			"rule people: what is for chat waits", "kubectl edit notificationrule people",
		}, cli.CodeFailed},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, test.objects...)
			c.Discover = terminal.EveryKind()
			err := c.runCheck("v0.3.0", "v1.36.3", "--strict")
			exit := &cli.Exit{}
			assert.Equal(t, test.code != 0, errors.As(err, &exit))
			assert.Equal(t, test.code, exit.Code)
			for _, want := range test.says {
				assert.Contains(t, c.Out.String(), want)
			}
			assert.NotContains(t, c.Out.String(), "mail:")
		})
	}
}

func TestCheckOfDefinitionsThatLackFields(t *testing.T) {
	const theirs, ours = "hub-agent-7d", "hub-agent-7f"
	lacking := []definitions.Gap{{Kind: placementv1beta1.GroupVersion.WithKind("ClusterResourcePlacement"), Fields: []string{"spec.priority", "spec.strategy.suspension"}}}
	working := []client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote(""), reporting("member-1", "devel", time.Second)}
	older := []client.Object{terminal.Versioned(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent"}}, "v8.0.0")}
	for sentence, test := range map[string]struct {
		objects []client.Object
		plugin  string
		weight  diagnosis.Weight
	}{
		"an agent of the version of the plugin":           {working, "devel", diagnosis.Error},
		"an older agent, which may not know these fields": {slices.Concat(working, older), "v9.0.0", diagnosis.Warning},
		"no agent": {nil, "devel", diagnosis.Error},
		"KubeFleet's agent, which knows none of them": {[]client.Object{leaseOf(kubefleet.HubAgentLease, theirs)}, "devel", ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, test.objects...)
			c.Discover = terminal.EveryKind()
			c.lacking = lacking
			_ = c.runCheck(test.plugin, "", "-o", "json") // what it ends with is asserted above
			report := &diagnosis.Report{}
			require.NoError(t, json.Unmarshal(c.Out.Bytes(), report))
			var weight diagnosis.Weight
			for _, finding := range report.Findings {
				if finding.Reason == "FieldsMissing" {
					weight = finding.Weight
					assert.Contains(t, finding.Message, "ClusterResourcePlacement.placement.kubernetes-fleet.io v1beta1: spec.priority, spec.strategy.suspension")
					assert.Contains(t, finding.Remedy, "helm show crds <chart hub-agent> | kubectl apply --server-side --force-conflicts -f -")
				}
			}
			assert.Equal(t, test.weight, weight)
		})
	}
}

func TestCheckOf(t *testing.T) {
	const theirs, ours = "hub-agent-7d", "hub-agent-7f"
	second := migration.HubAgentLease
	second.Namespace = "fleet"
	var manyMembers []client.Object
	for i := range 501 {
		manyMembers = append(manyMembers, reporting(fmt.Sprint("member-", i), "devel", time.Second))
	}
	for sentence, test := range map[string]struct {
		objects []client.Object
		served  func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
		strict  bool
		reasons []string
		fails   bool
	}{
		"a cluster that is no hub":                        {nil, terminal.Discovered, false, []string{"NoHub"}, true},
		"a hub without an agent":                          {nil, terminal.EveryKind(), false, []string{"NoHubAgent", "NoHubAgent", "NoMembers"}, true},
		"two releases in one cluster":                     {[]client.Object{leaseOf(migration.HubAgentLease, ours), leaseOf(second, ours), temporalNote("")}, terminal.EveryKind(), false, []string{"TwoHubAgents", "NotReported", "NoMembers"}, true},
		"a hub of KubeFleet":                              {[]client.Object{leaseOf(kubefleet.HubAgentLease, theirs)}, terminal.EveryKind("fleetflow.io"), false, []string{"NoMembers"}, false},
		"agents of both":                                  {[]client.Object{leaseOf(kubefleet.HubAgentLease, theirs), leaseOf(migration.HubAgentLease, ours), temporalNote("")}, terminal.EveryKind(), false, []string{"KubeFleetRuns", "NoMembers"}, true},
		"definitions of an older version":                 {[]client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote("")}, terminal.EveryKind("RolloutHold"), false, []string{"KindsMissing", "NoMembers"}, true},
		"warnings, which do not count":                    {[]client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote("")}, terminal.EveryKind(), false, []string{"NoMembers"}, false},
		"warnings, which count with --strict":             {[]client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote("")}, terminal.EveryKind(), true, []string{"NoMembers"}, true},
		"Temporal that is down, and nothing waits for it": {[]client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote("connection refused"), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), false, []string{"EngineUnreachable"}, true},
		"approvals that Temporal cannot verify":           {[]client.Object{leaseOf(migration.HubAgentLease, ours), unverifiedNote(""), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), false, []string{"ApprovalsNotVerified"}, false},
		"approvals that it cannot verify, with --strict":  {[]client.Object{leaseOf(migration.HubAgentLease, ours), unverifiedNote(""), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), true, []string{"ApprovalsNotVerified"}, true},
		"Temporal that is down, which could verify none":  {[]client.Object{leaseOf(migration.HubAgentLease, ours), unverifiedNote("connection refused"), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), false, []string{"EngineUnreachable"}, true},
		"a fleet for which the bundled Temporal is small": {append(manyMembers, leaseOf(migration.HubAgentLease, ours), bundledNote()), terminal.EveryKind(), false, []string{"BundledTemporalOutgrown"}, false},
		"a member that does not report":                   {[]client.Object{leaseOf(migration.HubAgentLease, ours), temporalNote(""), reporting("member-1", "devel", time.Hour)}, terminal.EveryKind(), false, []string{"Silent"}, true},
		"an agent that says nothing of Temporal":          {[]client.Object{leaseOf(migration.HubAgentLease, ours), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), true, []string{"NotReported"}, true},
		"an agent that said it long ago":                  {[]client.Object{leaseOf(migration.HubAgentLease, ours), staleNote(), reporting("member-1", "devel", time.Second)}, terminal.EveryKind(), true, []string{"NotReported"}, true},
		"members that nobody hears, as no agent works":    {[]client.Object{staleLease(), staleNote(), reporting("member-1", "devel", time.Hour)}, terminal.EveryKind(), false, []string{"NoLeader", "NoHubAgent", "NotReported"}, true},
		"a lease that is not renewed any more":            {[]client.Object{staleLease()}, terminal.EveryKind(), false, []string{"NoLeader", "NoHubAgent", "NoMembers"}, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			c := newConsole(t, test.objects...)
			c.Discover = test.served
			args := []string{"-o", "json"}
			if test.strict {
				args = append(args, "--strict")
			}
			err := c.runCheck("devel", "", args...)
			assert.Equal(t, test.fails, err != nil, "%v", err)
			report := &diagnosis.Report{}
			require.NoError(t, json.Unmarshal(c.Out.Bytes(), report))
			var reasons []string
			for _, finding := range report.Findings {
				if finding.Weight == diagnosis.OK {
					continue
				}
				reasons = append(reasons, finding.Reason)
				if finding.Weight != diagnosis.Unknown {
					assert.NotEmpty(t, finding.Remedy, finding.Message)
				}
			}
			assert.Equal(t, test.reasons, reasons)
		})
	}
}

// temporalNote is the note of a hub agent that it reaches Temporal, or why it does not.
func temporalNote(problem string) client.Object {
	of := migration.HubAgentLease
	of.Name = clusterv1beta1.TemporalLease
	note := leaseOf(of, "hub-agent-7f").(*coordinationv1.Lease)
	since := metav1.NewMicroTime(now.Add(-5 * time.Minute))
	note.Spec.AcquireTime = &since
	if problem != "" {
		note.Annotations = map[string]string{clusterv1beta1.TemporalProblemAnnotation: problem}
	}
	return note
}

// bundledNote is its note that it reaches the Temporal beside it.
func bundledNote() client.Object {
	note := temporalNote("")
	note.SetAnnotations(map[string]string{clusterv1beta1.TemporalModeAnnotation: string(clusterv1beta1.TemporalBundled)})
	return note
}

// unverifiedNote is its note that no approval through Temporal is taken, too.
func unverifiedNote(problem string) client.Object {
	note := temporalNote(problem)
	annotations := note.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[clusterv1beta1.ApprovalsProblemAnnotation] = "it names no senders"
	note.SetAnnotations(annotations)
	return note
}

func staleNote() client.Object {
	note := temporalNote("").(*coordinationv1.Lease)
	at := metav1.NewMicroTime(now.Add(-time.Hour))
	note.Spec.RenewTime = &at
	return note
}

func staleLease() client.Object {
	lease := leaseOf(migration.HubAgentLease, "hub-agent-7f").(*coordinationv1.Lease)
	at := metav1.NewMicroTime(now.Add(-time.Hour))
	lease.Spec.RenewTime = &at
	return lease
}

func TestCheckSaysWhatTheUserMayNotRead(t *testing.T) {
	c := newConsole(t, reporting("member-1", "v0.2.0", time.Second))
	c.Discover = terminal.EveryKind()
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*coordinationv1.LeaseList); is {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", nil)
			}
			return hub.List(ctx, list, options...)
		},
	})
	require.NoError(t, c.runCheck("devel", ""))
	assert.Contains(t, c.Out.String(), "? hub agent  whether a hub agent works is not known, as you may not read its lease")
	assert.Contains(t, c.Out.String(), "? temporal   whether Temporal can be reached is not known")
	assert.NotContains(t, c.Out.String(), "no hub agent")
}

func TestCheckOfAUserWithoutRightsIsNotGreen(t *testing.T) {
	c := newConsole(t, leaseOf(migration.HubAgentLease, "hub-agent-7f"), temporalNote(""), reporting("member-1", "v0.2.0", time.Second))
	c.Discover = terminal.EveryKind()
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", nil)
		},
	})
	exit := &cli.Exit{}
	require.ErrorAs(t, c.runCheck("devel", "", "--strict"), &exit)
	out := c.Out.String()
	for _, want := range []string{"? hub agent  whether", "? temporal   whether", "? members    how the members are is not known", "hub-agent-viewer"} {
		assert.Contains(t, out, want)
	}
	assert.NotContains(t, out, "no cluster is a member")
	assert.NotRegexp(t, "✓ (temporal|members|hub agent)", out)
}

func TestCheckNamesTheInitContainerThatAPodWaitsFor(t *testing.T) {
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	failed := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "no schema"}}
	done := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}
	always := corev1.ContainerRestartPolicyAlways
	for sentence, test := range map[string]struct {
		temporal corev1.ContainerStatus
		sidecar  bool
		age      time.Duration
		want     string
	}{
		"a sidecar that is not started":     {corev1.ContainerStatus{State: running, Started: new(bool)}, true, time.Hour, "has not started for 60m: its init container temporal runs, and has not passed its startup probe"},
		"a sidecar that is":                 {corev1.ContainerStatus{State: running, Started: new(true)}, true, time.Hour, "has not started for 60m"},
		"one that does not end":             {corev1.ContainerStatus{State: running, Started: new(true)}, false, time.Hour, "has not started for 60m: its init container temporal has not ended"},
		"one that has ended":                {corev1.ContainerStatus{State: done}, false, time.Hour, "has not started for 60m"},
		"one that has failed":               {corev1.ContainerStatus{State: failed}, false, time.Hour, "has not started for 60m: its init container temporal has ended with exit code 3, Error: no schema"},
		"one that waits for a volume":       {corev1.ContainerStatus{State: waiting("PodInitializing")}, true, time.Hour, "has not started for 60m: its init container temporal waits with PodInitializing"},
		"one that crashes":                  {corev1.ContainerStatus{State: waiting("CrashLoopBackOff")}, true, time.Hour, "has init container temporal, which waits with CrashLoopBackOff"},
		"one that is given the time it has": {corev1.ContainerStatus{State: running, Started: new(bool)}, true, time.Minute, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			test.temporal.Name = "temporal"
			pod := terminal.Versioned(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "hub-agent-7f", CreationTimestamp: ago(test.age)}}, "v0.2.0").(*corev1.Pod)
			pod.Spec.InitContainers = []corev1.Container{{Name: "temporal"}}
			if test.sidecar {
				pod.Spec.InitContainers[0].RestartPolicy = &always
			}
			pod.Status.InitContainerStatuses = []corev1.ContainerStatus{test.temporal}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "hub-agent", State: waiting("PodInitializing")}}
			c := newConsole(t, leaseOf(migration.HubAgentLease, "hub-agent-7f"), pod)
			c.Discover = terminal.EveryKind()
			_ = c.runCheck("v0.2.0", "", "-o", "json") // what it ends with is asserted above
			report := &diagnosis.Report{}
			require.NoError(t, json.Unmarshal(c.Out.Bytes(), report))
			said := ""
			for _, finding := range report.Findings {
				if finding.Weight == diagnosis.Error && finding.Part == "hub agent" {
					said += finding.Message
				}
			}
			want := test.want
			if want != "" {
				want = "Pod fleet-system/hub-agent-7f " + want
			}
			assert.Equal(t, want, said)
		})
	}
}

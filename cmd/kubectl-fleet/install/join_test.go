package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/internal/steer"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// recordedHelm keeps the arguments that Helm is run with.
type recordedHelm struct {
	missing bool
	// refuses is an argument with which it fails.
	refuses string
	args    []string
	// runs are the arguments of all times.
	runs []string
	// chart are the files of the chart it is given.
	chart []string
	// definitions are what it says that the chart at a path has.
	definitions map[string]string
}

func (r *recordedHelm) helm() helm {
	shows := func(_ context.Context, chart string) ([]byte, error) { return []byte(r.definitions[chart]), nil }
	return helm{there: func() bool { return !r.missing }, definitions: shows, run: func(_ context.Context, args ...string) error {
		r.args, r.runs = args, append(r.runs, strings.Join(args, " "))
		if r.refuses != "" && slices.Contains(args, r.refuses) {
			return errors.New("pods run on this cluster")
		}
		if args[0] == "uninstall" {
			return nil
		}
		return fs.WalkDir(os.DirFS(args[3]), ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				r.chart = append(r.chart, path)
			}
			return err
		})
	}}
}

// console runs commands that install a fleet between clusters in memory.
type console struct{ *terminal.Console }

func newConsole(t *testing.T, objects ...client.Object) *console {
	t.Helper()
	return &console{terminal.New(t, objects...)}
}

// bound is a binding of placement web on a cluster, and that placement.
func bound(cluster string) []client.Object {
	return []client.Object{
		&placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + cluster, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
			Spec:       placementv1beta1.ResourceBindingSpec{State: placementv1beta1.BindingStateBound, TargetCluster: cluster},
		},
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web"},
			Spec:       placementv1beta1.PlacementSpec{Strategy: &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}},
		},
	}
}

// runWithHelm runs init, or join or unjoin between two clusters in memory.
func (c *console) runWithHelm(h *recordedHelm, args ...string) error {
	c.T.Helper()
	f := cli.NewFactory()
	f.Clock = testingclock.NewFakeClock(terminal.Now)
	f.Configure = func(kubeContext string) (*rest.Config, error) {
		return &rest.Config{Host: "https://hub.example.com", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}, Username: kubeContext}, nil
	}
	f.Connect = func(config *rest.Config) (client.WithWatch, error) {
		if config.Username == "" {
			return c.Hub, nil
		}
		return c.Contexts[config.Username], nil
	}
	c.Out.Reset()
	streams := genericiooptions.IOStreams{In: strings.NewReader(c.Stdin), Out: &c.Out, ErrOut: &c.Err}
	f.ServerVersion = func() (string, error) { return c.Kubernetes, nil }
	f.Discover = c.Discover
	commands := map[string]func(*cli.Factory, genericiooptions.IOStreams, helm) *cobra.Command{
		"init": newInit, "join": newJoin, "uninstall": newUninstall, "unjoin": newUnjoin,
	}
	cmd := commands[args[0]](f, streams, h.helm())
	cmd.SetArgs(args[1:])
	return cmd.ExecuteContext(c.T.Context())
}

// joinedIdentity is the identity that join gives a member.
func joinedIdentity(member string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: "connect-to-fleet", Name: member + "-hub-cluster-access"}
}

// hubThatIssuesTokens issues tokens, each with the number of its account, as a hub does.
func hubThatIssuesTokens(c *console) {
	accounts := 0
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if _, is := object.(*corev1.ServiceAccount); is {
				accounts++
			}
			return hub.Create(ctx, object, options...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, answer client.Object, _ ...client.SubResourceCreateOption) error {
			request := answer.(*authenticationv1.TokenRequest)
			request.Status.Token = fmt.Sprintf("s3cret-%d-for-%ds", accounts, *request.Spec.ExpirationSeconds)
			return nil
		},
	})
}

// hubThatWorks issues tokens, and lets members join.
func hubThatWorks(c *console) {
	hubThatIssuesTokens(c)
	members, err := c.Hub.Watch(c.T.Context(), &clusterv1beta1.MemberClusterList{})
	require.NoError(c.T, err)
	c.T.Cleanup(members.Stop)
	go func() {
		for event := range members.ResultChan() {
			if member := event.Object.(*clusterv1beta1.MemberCluster).DeepCopy(); len(member.Status.Conditions) == 0 {
				member.Status.Conditions = []metav1.Condition{{
					Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue, Reason: "Ok", LastTransitionTime: terminal.Ago(time.Hour),
				}}
				_ = c.Hub.Update(c.T.Context(), member)
			}
		}
	}()
}

// clusterWith is what a cluster is told by.
func clusterWith(uid types.UID) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: uid}}
}

func TestJoin(t *testing.T) {
	t.Run("gives the cluster an identity and an agent, and waits; a second time makes earlier tokens worthless", func(t *testing.T) {
		c := newConsole(t)
		h := &recordedHelm{}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		hubThatWorks(c)
		eternal := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "connect-to-fleet", Name: "member-4-hub-cluster-access-token"}}
		require.NoError(t, c.Hub.Create(t.Context(), eternal))
		for range 2 {
			require.NoError(t, c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4", "--set", "a=b", "--values", "members.yaml"))
			assert.Contains(t, c.Out.String(), "waiting until member-4 has joined (0s)")
			assert.NotContains(t, c.Out.String(), "s3cret")
		}
		assert.True(t, apierrors.IsNotFound(c.Hub.Get(t.Context(), client.ObjectKeyFromObject(eternal), eternal)), "a token without end does not outlive it")
		role := &rbacv1.Role{}
		require.NoError(t, c.Hub.Get(t.Context(), client.ObjectKey{Namespace: "connect-to-fleet", Name: "member-4-hub-cluster-access"}, role))
		assert.Equal(t, []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"member-4-hub-cluster-access"}, Verbs: []string{"create"},
		}}, role.Rules)
		assert.Equal(t, joinedIdentity("member-4"), c.member("member-4").Spec.Identity)
		secret := &corev1.Secret{}
		require.NoError(t, c.Contexts["kind-4"].Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "hub-kubeconfig-secret"}, secret))
		assert.Equal(t, "s3cret-2-for-86400s", string(secret.Data["token"]), "of the second account, for a day")
		text := strings.Join(h.args, " ")
		for _, want := range []string{"upgrade --install member-agent", "--reset-then-reuse-values", "--kube-context kind-4", "config.hubURL=https://hub.example.com", "config.memberClusterName=member-4", "config.hubCA=YXV0aG9yaXR5", "--values members.yaml --set a=b"} {
			assert.Contains(t, text, want)
		}
		assert.NotContains(t, text, "s3cret", "arguments can be read by everybody on the machine")
		assert.Contains(t, h.chart, "Chart.yaml")
		assert.Contains(t, h.chart, filepath.Join("templates", "deployment.yaml"))
	})
	t.Run("says which Pod of the agent does not start", func(t *testing.T) {
		c := newConsole(t)
		hubThatIssuesTokens(c)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-agent-7f", Labels: map[string]string{"app.kubernetes.io/name": "member-agent"}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Image: "member-agent:dev", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}}}}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(pod)}
		err := c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4", "--timeout", "10ms")
		require.ErrorContains(t, err, "on kind-4: Pod fleet-system/member-agent-7f waits with ImagePullBackOff; the cluster does not get the image member-agent:dev: push it there, or name another with --set image.repository=")
	})
	t.Run("changes nothing on a dry run", func(t *testing.T) {
		c := newConsole(t)
		h := &recordedHelm{missing: true}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		require.NoError(t, c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4", "--dry-run"))
		assert.Contains(t, c.Out.String(), "inviting member-4 (dry run)")
		assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "member-4"}, &clusterv1beta1.MemberCluster{}))
	})
	t.Run("refuses another cluster under the same name, before anything is changed", func(t *testing.T) {
		c := newConsole(t)
		h := &recordedHelm{}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(clusterWith("four")), "kind-5": terminal.InMemory(clusterWith("five"))}
		hubThatWorks(c)
		for range 2 {
			require.NoError(t, c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4"))
		}
		h.args = nil
		err := c.runWithHelm(h, "join", "member-4", "--member-context", "kind-5")
		assert.ErrorContains(t, err, "member/member-4 is another cluster: that one has uid four, this one five")
		assert.Empty(t, h.args)
		assert.Error(t, c.Contexts["kind-5"].Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "hub-kubeconfig-secret"}, &corev1.Secret{}))
	})
	t.Run("refuses a cluster that has another name, before anything is changed, and moves it on demand", func(t *testing.T) {
		c := newConsole(t)
		h := &recordedHelm{}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(clusterWith("four")), "kind-5": terminal.InMemory(clusterWith("five"))}
		hubThatWorks(c)
		require.NoError(t, c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4"))
		h.args = nil
		err := c.runWithHelm(h, "join", "member-9", "--member-context", "kind-4")
		assert.ErrorContains(t, err, "kind-4 is the cluster of member/member-4, which has the same uid four")
		assert.Empty(t, h.args)
		assert.True(t, apierrors.IsNotFound(c.Hub.Get(t.Context(), client.ObjectKey{Name: "member-9"}, &clusterv1beta1.MemberCluster{})))

		require.NoError(t, c.runWithHelm(h, "join", "member-9", "--member-context", "kind-4", "--move"))
		uidOf := func(name string) string {
			return c.member(name).Annotations[clusterv1beta1.ClusterUIDAnnotation]
		}
		assert.Equal(t, []string{"", "four"}, []string{uidOf("member-4"), uidOf("member-9")})
		require.NoError(t, c.runWithHelm(h, "join", "member-9", "--member-context", "kind-5", "--move"), "a cluster that was built anew")
		assert.Equal(t, "five", uidOf("member-9"))
		require.NoError(t, c.runWithHelm(h, "join", "member-9", "--member-context", "kind-5"))
		require.NoError(t, c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4"), "a member of which nothing was noted")
		assert.Equal(t, "four", uidOf("member-4"), "notes it")
	})
	t.Run("looks before it says what it would do", func(t *testing.T) {
		leaving := terminal.Member("member-4", 0)
		leaving.Finalizers = []string{"x/y"}
		leaving.DeletionTimestamp = &metav1.Time{Time: terminal.Now}
		c := newConsole(t, leaving)
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		assert.ErrorContains(t, c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4", "--dry-run"), "is leaving")
	})
	t.Run("has the hub check the member on a dry run of the server", func(t *testing.T) {
		refusing := interceptor.NewClient(terminal.InMemory(), interceptor.Funcs{Create: func(_ context.Context, _ client.WithWatch, object client.Object, options ...client.CreateOption) error {
			asked := &client.CreateOptions{}
			asked.ApplyOptions(options)
			assert.Equal(t, []string{metav1.DryRunAll}, asked.DryRun)
			return fmt.Errorf("%s: the name is too long", object.GetName())
		}})
		c := newConsole(t)
		c.Hub = refusing
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		assert.ErrorContains(t, c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4", "--dry-run=server"), "inviting member-4: creating membercluster \"member-4\": member-4: the name is too long")
	})
	t.Run("refuses", func(t *testing.T) {
		other := terminal.Member("member-4", 0)
		leaving := terminal.Member("member-4", 0)
		other.Spec.Identity.Name = "somebody"
		leaving.Finalizers = []string{"x/y"}
		leaving.DeletionTimestamp = &metav1.Time{Time: terminal.Now}
		for sentence, try := range map[string]struct {
			hub  []client.Object
			helm recordedHelm
			args []string
			want string
		}{
			"without a context":                {nil, recordedHelm{}, []string{"member-4"}, "--member-context is missing"},
			"without helm":                     {nil, recordedHelm{missing: true}, []string{"member-4", "--member-context", "kind-4"}, "helm is not installed"},
			"an address that is none":          {nil, recordedHelm{}, []string{"member-4", "--member-context", "kind-4", "--hub-address", "hub"}, "--hub-address"},
			"a token that is too short":        {nil, recordedHelm{}, []string{"member-4", "--member-context", "kind-4", "--token-duration", "1m"}, "--token-duration 1m0s is too short"},
			"a name that another identity has": {[]client.Object{other}, recordedHelm{}, []string{"member-4", "--member-context", "kind-4"}, "another identity"},
			"a member that is leaving":         {[]client.Object{leaving}, recordedHelm{}, []string{"member-4", "--member-context", "kind-4"}, "is leaving"},
		} {
			t.Run(sentence, func(t *testing.T) {
				c := newConsole(t, try.hub...)
				c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
				assert.ErrorContains(t, c.runWithHelm(&try.helm, append([]string{"join"}, try.args...)...), try.want)
			})
		}
	})
	t.Run("refuses a cluster from which Helm would delete the definition of what is placed", func(t *testing.T) {
		c := newConsole(t)
		h := &recordedHelm{}
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(terminal.DefinitionOfRelease("appliedworks.placement.kubernetes-fleet.io", "member-agent"))}
		err := c.runWithHelm(h, "join", "member-4", "--member-context", "kind-4")
		require.ErrorContains(t, err, "kubectl --context kind-4 annotate crd --overwrite appliedworks.placement.kubernetes-fleet.io helm.sh/resource-policy=keep")
		assert.Empty(t, h.args)
		assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKey{Name: "member-4"}, &clusterv1beta1.MemberCluster{}))
	})
	t.Run("says what is missing if the cluster does not join", func(t *testing.T) {
		half := terminal.Member("member-4", 0)
		half.Spec.Identity = joinedIdentity("member-4")
		half.Status.Conditions = []metav1.Condition{{Type: "ReadyToJoin", Status: metav1.ConditionTrue, Message: "all there"}}
		c := newConsole(t, half)
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		hubThatWorks(c)
		err := c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4", "--timeout", (50 * time.Millisecond).String())
		assert.ErrorContains(t, err, "ReadyToJoin is True: all there. The agent's log says more")
	})
}

func TestJoinWarnsOfANamespaceThatNoGuardRailKnows(t *testing.T) {
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public", Name: "fleetflow-placed"},
		Data:       map[string]string{"skippedPropagatingNamespaces": "monitoring,connect-to-fleet"},
	}
	for namespace, warns := range map[string]bool{"connect-to-fleet": false, "fleet-system": false, "mine": true} {
		c := newConsole(t, published)
		c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
		hubThatWorks(c)
		require.NoError(t, c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4", "--access-namespace", namespace))
		assert.Equal(t, warns, strings.Contains(c.Err.String(), "namespace mine is not among accessNamespaces"), namespace)
	}
}

func TestAMemberThatJoinsAgainHasJoinedOnceItReportsByItsNewToken(t *testing.T) {
	member := &clusterv1beta1.MemberCluster{}
	member.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionTypeJoined, Status: metav1.ConditionTrue}}
	member.Status.AgentStatus = []clusterv1beta1.AgentStatus{{Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: terminal.Ago(time.Minute)}}
	for sentence, test := range map[string]struct {
		heard time.Time
		there bool
		want  bool
	}{
		"one that never reported before":   {time.Time{}, true, true},
		"one that is not there":            {time.Time{}, false, false},
		"one that has reported before":     {terminal.Ago(time.Minute).Time, true, false},
		"one that has reported since then": {terminal.Ago(2 * time.Minute).Time, true, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Equal(t, test.want, (&joinOptions{heard: test.heard}).hasJoined(member, test.there))
		})
	}
}

func TestJoinWaitsForNoAgentThatIsGone(t *testing.T) {
	in := metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-agent"}
	for sentence, there := range map[string][]client.Object{"it was uninstalled": nil, "it is there": {&appsv1.Deployment{ObjectMeta: in}}} {
		t.Run(sentence, func(t *testing.T) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-agent.fleetflow.io"}}
			c := newConsole(t)
			c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(append(there, lease)...)}
			hubThatWorks(c)
			require.NoError(t, c.runWithHelm(&recordedHelm{}, "join", "member-4", "--member-context", "kind-4"))
			err := c.Contexts["kind-4"].Get(t.Context(), client.ObjectKeyFromObject(lease), lease)
			assert.Equal(t, len(there) == 0, apierrors.IsNotFound(err), "%v", err)
		})
	}
}

func TestUnjoin(t *testing.T) {
	leaver := terminal.Member("member-4", 0)
	leaver.Spec.Identity = joinedIdentity("member-4")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: accessNamespace, Name: "member-4-hub-cluster-access"}}
	c := newConsole(t, append(bound("member-4"), leaver, account)...)
	h := &recordedHelm{}
	c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory()}
	c.Stdin = "n\n"
	require.ErrorIs(t, c.runWithHelm(h, "unjoin", "member-4"), cli.ErrDeclined)
	assert.Contains(t, c.Err.String(), "will be removed from it. Have member-4 (1 placement) leave the fleet?")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-agent.fleetflow.io"}}
	require.NoError(t, c.Contexts["kind-4"].Create(t.Context(), lease))
	require.NoError(t, c.runWithHelm(h, "unjoin", "member-4", "--member-context", "kind-4", "--yes"))
	assert.Equal(t, "uninstall", h.args[0])
	assert.Error(t, c.Contexts["kind-4"].Get(t.Context(), client.ObjectKeyFromObject(lease), lease), "the next agent would wait until it has run out")
	assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(leaver), &clusterv1beta1.MemberCluster{}))
	assert.Error(t, c.Hub.Get(t.Context(), client.ObjectKeyFromObject(account), &corev1.ServiceAccount{}))

	assert.ErrorContains(t, c.runWithHelm(h, "unjoin"), "needs one member")
	assert.ErrorContains(t, c.runWithHelm(h, "unjoin", "--all", "member-4"), "--all takes neither names")
}

func TestUnjoinDoesNotUninstallTheAgentOfAnotherCluster(t *testing.T) {
	leaver := terminal.Member("member-4", 0)
	leaver.Annotations = map[string]string{clusterv1beta1.ClusterUIDAnnotation: "four"}
	c := newConsole(t, leaver)
	h := &recordedHelm{}
	c.Contexts = map[string]client.WithWatch{"kind-4": terminal.InMemory(clusterWith("four")), "kind-5": terminal.InMemory(clusterWith("five"))}
	require.EqualError(t, c.runWithHelm(h, "unjoin", "member-4", "--member-context", "kind-5", "--yes"), "kind-5 is not member/member-4 but another cluster: nothing was changed")
	assert.Empty(t, h.args)
	c.member("member-4")
	require.NoError(t, c.runWithHelm(h, "unjoin", "member-4", "--member-context", "kind-4", "--yes"))
	assert.Equal(t, "uninstall", h.args[0])
}

func TestJoinWarnsOfAnAddressThatMeansThisMachine(t *testing.T) {
	for address, warns := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://localhost:6443": true, "https://[::1]:6443": true, "https://10.0.0.1:6443": false, "https://hub.example.com": false,
	} {
		var said strings.Builder
		o := &joinOptions{address: address}
		o.Streams.ErrOut = &said
		o.warnOfLoopback()
		assert.Equal(t, warns, strings.HasPrefix(said.String(), "Warning: the hub's address in the kubeconfig is "+address), address)
	}
}

func TestUnjoinAll(t *testing.T) {
	c := newConsole(t, append(bound("member-1"), terminal.Member("member-1", 0), terminal.Member("member-2", 0))...)
	lists := map[string]int{}
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		lists[fmt.Sprintf("%T", list)]++
		return c.List(ctx, list, options...)
	}})
	require.ErrorContains(t, c.runWithHelm(&recordedHelm{}, "unjoin", "--all"), "no terminal to ask on")
	assert.Contains(t, c.Err.String(), "Have member-1 (1 placement), member-2 (0 placements) leave the fleet?")
	for kind, times := range lists {
		assert.Equal(t, 1, times, "%s: a fleet has tens of thousands of bindings", kind)
	}
	require.NoError(t, c.runWithHelm(&recordedHelm{}, "unjoin", "--all", "--yes"))
	left := &clusterv1beta1.MemberClusterList{}
	require.NoError(t, c.Hub.List(t.Context(), left))
	assert.Empty(t, left.Items)
}

func TestWaitingGoesOnWhenTheHubEndsAWatch(t *testing.T) {
	watches := 0
	hub := interceptor.NewClient(terminal.InMemory(terminal.Member("member-4", 0)), interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
		watcher, err := c.Watch(ctx, list, options...)
		if watches++; watches == 1 {
			watcher.Stop()
		} else {
			require.NoError(t, c.Delete(ctx, terminal.Member("member-4", 0)))
		}
		return watcher, err
	}})
	gone := func(_ *clusterv1beta1.MemberCluster, there bool) bool { return !there }
	require.NoError(t, steer.Await(t.Context(), hub, terminal.Member("member-4", 0), &clusterv1beta1.MemberClusterList{}, time.Minute, gone))
	assert.Equal(t, 2, watches)
}

package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/base"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/live"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// noAnswer is what a command says of what the hub does not answer.
const noAnswer = "the API server has not answered for 500ms (--request-timeout), and nothing that it was asked since "

// withoutEtcd serves a hub that says of which version it is and which kinds it serves, as an API server does that has lost its etcd, and
// answers nothing else but what is below a path, and nothing of which kinds some groups have.
func withoutEtcd(t *testing.T, answered string, untold ...string) *cli.Factory {
	t.Helper()
	ended := make(chan struct{})
	_, lists, err := terminal.EveryKind()()
	require.NoError(t, err)
	served := map[string]any{"/version": version.Info{GitVersion: "v1.36.3"}, "/api": metav1.APIVersions{Versions: []string{"v1"}}}
	versions := map[string][]metav1.GroupVersionForDiscovery{}
	for _, list := range lists {
		of, err := schema.ParseGroupVersion(list.GroupVersion)
		require.NoError(t, err)
		for i := range list.APIResources {
			plural, _ := meta.UnsafeGuessKindToResource(of.WithKind(list.APIResources[i].Kind))
			list.APIResources[i].Name = plural.Resource
		}
		if of.Group == "" {
			served["/api/"+list.GroupVersion] = list
			continue
		}
		if !slices.Contains(untold, of.Group) {
			served["/apis/"+list.GroupVersion] = list
		}
		versions[of.Group] = append(versions[of.Group], metav1.GroupVersionForDiscovery{GroupVersion: list.GroupVersion, Version: of.Version})
	}
	groups := &metav1.APIGroupList{}
	for name, of := range versions {
		groups.Groups = append(groups.Groups, metav1.APIGroup{Name: name, Versions: of, PreferredVersion: of[0]})
	}
	served["/apis"] = groups
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, is := served[r.URL.Path]; is {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
			return
		}
		if answered != "" && strings.Contains(r.URL.Path, answered) {
			answerAsHub(w, r.URL.Path)
			return
		}
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: hub,
clusters: [{name: hub, cluster: {server: %q}}], contexts: [{name: hub, context: {cluster: hub}}]}`, server.URL), 0o600))
	factory := cli.NewFactory()
	*factory.Flags.KubeConfig = kubeconfig
	*factory.Flags.CacheDir = t.TempDir()
	return factory
}

// onTheLine runs a command line of the plugin, and returns all that it says.
func onTheLine(t *testing.T, f *cli.Factory, line string) (said string, err error) {
	t.Helper()
	streams, _, out, problems := genericiooptions.NewTestIOStreams()
	root := NewRoot(f, streams)
	root.SetArgs(append(strings.Fields(line), "--request-timeout=500ms"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = root.ExecuteContext(t.Context())
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		require.Fail(t, "the command waits without end", line)
	}
	text, readErr := io.ReadAll(io.MultiReader(out, problems))
	require.NoError(t, readErr)
	return string(text), err
}

func TestNoObserverWaitsWithoutEndForAHubThatDoesNotAnswer(t *testing.T) {
	for _, line := range []string{
		"get", "get members", "get placements", "get runs -o json", "get approvals", "get strategies", "get windows", "get holds",
		"get placements --watch", "status placement/web", "status run/web-1", "status run/web-1 --watch", "status run/web-1 --until done",
		"why member-1 --placement web", "plan placement/web", "plan placement/web --no-diff", "history placement/web", "diff placement/web",
		"events placement/web", "events placement/web --watch", "windows", "dashboard",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			_, err := onTheLine(t, withoutEtcd(t, ""), line)
			require.ErrorContains(t, err, noAnswer)
			assert.ErrorContains(t, err, `Get "http://127.0.0.1:`, "the API server is not named")
		})
	}
}

func TestCheckSaysWhatAHubDoesNotAnswer(t *testing.T) {
	said, err := onTheLine(t, withoutEtcd(t, ""), "check")
	require.Error(t, err)
	assert.Regexp(t, `\A✗ hub +reading the leases of hub agents: .*`+noAnswer[:40], said, "the cause comes first")
	assert.Equal(t, 1, strings.Count(said, noAnswer[:40]), "what every read says is said once: %s", said)
	assert.Contains(t, said, "; nor has it answered 8 further read(s): the lease of KubeFleet's hub agent, Deployments of hub agents, ")
	assert.Contains(t, said, ", members, placements, runs, channels, rules and sinks, the definitions of the hub\n")
	assert.Contains(t, said, "? hub agent  whether a hub agent works is not known, as there is no answer about its lease")
	assert.Contains(t, said, "? temporal   whether Temporal can be reached is not known, as there is no answer about")
	assert.Contains(t, said, "? members    how the members are is not known, as there is no answer about them")
	assert.Contains(t, said, "? versions   plugin devel; the versions of agents are not all known, as there is no answer about them")
}

func TestKindsThatAHubDoesNotTellOfAreNotTakenForMissing(t *testing.T) {
	f := withoutEtcd(t, "", "fleetflow.io")
	said, err := onTheLine(t, f, "check")
	require.Error(t, err)
	assert.Regexp(t, `\A✗ hub +asking the hub which kinds it serves: .* fleetflow.io/v1alpha1: .*`+noAnswer[:40], said)
	assert.NotContains(t, said, "is no hub")
	assert.NotContains(t, said, "kinds of the fleet")
	for _, part := range []string{"hub agent ", "temporal  ", "members   "} {
		assert.Contains(t, said, "? "+part+" not known, as the hub does not answer")
	}
}

func TestCheckOfAHubThatIsDown(t *testing.T) {
	f := withoutEtcd(t, "")
	*f.Flags.APIServer = "http://127.0.0.1:1"
	said, err := onTheLine(t, f, "check")
	exit := &cli.Exit{}
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, cli.CodeFailed, exit.Code)
	assert.Regexp(t, `✗ hub +asking the hub's API server for its version: .*connection refused`, said)
	for _, part := range []string{"hub agent ", "temporal  ", "members   "} {
		assert.Contains(t, said, "? "+part+" not known, as the hub does not answer")
	}
}

func TestGetShowsWhatIsAnsweredAndFailsForWhatIsNot(t *testing.T) {
	said, err := onTheLine(t, withoutEtcd(t, "memberclusters"), "get")
	require.ErrorContains(t, err, "listing placements: ")
	require.ErrorContains(t, err, noAnswer)
	assert.Contains(t, said, "No members.")
	assert.NotContains(t, said, "No placements.")
	assert.Contains(t, said, "Warning: what is shown may be old, as the hub does not answer: reading the leases")
	said, err = onTheLine(t, withoutEtcd(t, "memberclusters"), "get -o json")
	require.ErrorContains(t, err, noAnswer)
	assert.Empty(t, said, "a program would take a part for the whole")
}

// What follows a hub keeps its connections while the hub has no etcd: nothing changes.
func TestWhoFollowsAHubIsToldThatItDoesNotAnswer(t *testing.T) {
	c := newConsole(t, reporting("member-1", "v0.2.0", time.Second))
	var away atomic.Bool
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*coordinationv1.LeaseList); is && away.Load() {
				return errors.New("its etcd is away")
			}
			return hub.List(ctx, list, options...)
		},
	})
	f, streams := c.Factory()
	clock := f.Clock.(*testingclock.FakeClock)
	viewing := &base.Viewing{Factory: f, Streams: streams}
	feed, err := viewing.Follow(t.Context(), c.Hub, hub.FleetSources([]hub.Kind{hub.KindMember}, ""), "reading")
	require.NoError(t, err)
	assert.Empty(t, feed.Trouble())
	shown := 0
	show := showWithNotes(viewing, func(live.Picture) error {
		shown++
		return nil
	})
	for _, test := range []struct {
		away bool
		want string
	}{{true, "what is shown may be old, as the hub does not answer: .*its etcd is away"}, {false, "^$"}} {
		away.Store(test.away)
		require.Eventually(t, func() bool {
			clock.Step(time.Second)
			return regexp.MustCompile(test.want).MatchString(feed.Trouble())
		}, time.Minute, time.Millisecond)
		for range 2 {
			require.NoError(t, show(live.Picture{Note: feed.Trouble()}))
		}
	}
	assert.Equal(t, 4, shown)
	assert.Regexp(t, `\Awhat is shown may be old[^\n]*\nwhat is shown is up to date again\n\z`, c.Err.String(), "once each")
}

func TestAFeedOfWhatIsNeverReadSaysWhy(t *testing.T) {
	c := newConsole(t)
	c.Hub = interceptor.NewClient(c.Hub, interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("its etcd is away")
		},
	})
	_, err := hub.Follow(t.Context(), c.Hub, hub.FleetSources([]hub.Kind{hub.KindMember}, ""))
	assert.EqualError(t, err, "listing member clusters: its etcd is away")
}

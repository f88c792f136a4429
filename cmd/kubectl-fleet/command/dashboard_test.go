package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/cli"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/migration"
	"github.com/fleetflow/fleetflow/test/terminal"
)

// script is what must never be part of a page.
const script = `<script>alert("1")</script>`

// browser is a user with a browser at a dashboard of a hub in memory.
type browser struct {
	t       testing.TB
	hub     client.WithWatch
	handler http.Handler
	session *session.Local
	// host is what the browser calls the dashboard.
	host    string
	cookies []*http.Cookie
	log     bytes.Buffer
}

const dashboardAddress = "127.0.0.1:8080"

// newBrowser opens a dashboard.
func newBrowser(t testing.TB, hub client.WithWatch, clock clock.WithTicker) *browser {
	t.Helper()
	b := &browser{t: t, hub: hub, host: dashboardAddress}
	f := cli.NewFactory()
	f.Clock = clock
	f.Discover = terminal.Discovered
	f.Configure = func(string) (*rest.Config, error) { return &rest.Config{}, nil }
	f.Connect = func(*rest.Config) (client.WithWatch, error) { return hub, nil }
	name := "test-hub"
	f.Flags.Context = &name
	d := &dashboard{factory: f, streams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: &b.log}, temporal: "http://temporal.example/namespaces/default"}
	fleet, err := feed.Start(t.Context(), hub, clock, "")
	require.NoError(t, err)
	b.session, err = session.New(dashboardAddress)
	require.NoError(t, err)
	server := d.newServer(hub, fleet, b.session)
	server.Key = func() string { return "key" }
	b.handler = server.Handler()
	opened := b.get(strings.TrimPrefix(b.session.Link("/"), "http://"+dashboardAddress))
	require.Equal(t, http.StatusSeeOther, opened.Code)
	b.cookies = opened.Result().Cookies()
	require.Len(t, b.cookies, 1)
	return b
}

// send sends a request as the browser does.
func (b *browser) send(method, path string, form url.Values, changes ...func(*http.Request)) *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(b.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Host = b.host
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

func (b *browser) get(path string, changes ...func(*http.Request)) *httptest.ResponseRecorder {
	b.t.Helper()
	return b.send(http.MethodGet, path, nil, changes...)
}

// approvalFleet is a fleet with a run that waits for an approval, one in a namespace that soaks, a hold, and texts that
// would like to be HTML.
func approvalFleet() []client.Object {
	run := soakingRun()
	run.Status.PlanHash = "sha256:" + strings.Repeat("0123456789abcdef", 4)
	stages := run.Status.StagesStatus
	ended := ago(2 * time.Minute)
	stages[0].EndTime = &ended
	stages[0].Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, placementv1beta1.ReasonStageUpdatingSucceeded, 2*time.Minute)}
	stages[0].AfterStageTaskStatus[0].Conditions = []metav1.Condition{condition("AfterStageTaskWaitTimeElapsed", metav1.ConditionTrue, "TimedWaitElapsed", 2*time.Minute)}
	begun := ago(2 * time.Minute)
	stages[1].StartTime = &begun
	stages[1].Clusters = []placementv1beta1.ClusterUpdatingStatus{updated("member-2", 2*time.Minute, time.Minute), updated("member-3", 2*time.Minute, time.Minute)}
	stages[1].Conditions = []metav1.Condition{inStage(placementv1beta1.ReasonStageUpdatingWaiting, time.Minute)}
	stages[1].AfterStageTaskStatus[0].Conditions = []metav1.Condition{condition("ApprovalRequestCreated", metav1.ConditionTrue, "Created", time.Minute)}
	strategy := run.Status.UpdateStrategySnapshot
	strategy.Stages = append(strategy.Stages, placementv1beta1.StageConfig{Name: "rest"})
	run.Status.StagesStatus = append(stages, placementv1beta1.StageUpdatingStatus{StageName: "rest", Clusters: []placementv1beta1.ClusterUpdatingStatus{{ClusterName: "member-4"}}})

	soaking := soakingRun()
	soaking.Status.PlanHash = run.Status.PlanHash
	nightly := &placementv1beta1.StagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop", UID: "nightly-uid", CreationTimestamp: ago(time.Hour)}, Spec: soaking.Spec, Status: soaking.Status}
	nightly.Spec.PlacementName = "db"
	external := &placementv1beta1.RolloutStrategy{Type: placementv1beta1.ExternalRolloutStrategyType}
	objects := []client.Object{
		run, nightly,
		&placementv1beta1.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: "web-5-canary"}, Spec: placementv1beta1.ApprovalRequestSpec{TargetUpdateRun: "web-5", TargetStage: "canary"}},
		&placementv1beta1.ClusterResourcePlacement{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web-uid", CreationTimestamp: ago(time.Hour)}, Spec: placementv1beta1.PlacementSpec{Strategy: external},
			Status: placementv1beta1.PlacementStatus{ObservedResourceIndex: "5", Conditions: []metav1.Condition{
				{Type: "ClusterResourcePlacementScheduled", Status: metav1.ConditionTrue, Reason: "Scheduled", Message: script},
				{Type: "ClusterResourcePlacementRolloutStarted", Status: metav1.ConditionFalse, Reason: "RolloutNotStartedYet", Message: "waits \u202efor " + script},
			}},
		},
		&placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "shop", UID: "db-uid", CreationTimestamp: ago(time.Hour)}, Spec: placementv1beta1.PlacementSpec{Strategy: external}},
		&fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: "incident", UID: "hold-uid"}, Spec: fleetflowv1alpha1.RolloutHoldSpec{Message: "payments " + script}},
		&fleetflowv1alpha1.RolloutWindow{ObjectMeta: metav1.ObjectMeta{Name: "freeze"}, Spec: fleetflowv1alpha1.RolloutWindowSpec{
			Type: fleetflowv1alpha1.WindowDeny, Scope: fleetflowv1alpha1.WindowFleet, TimeZone: "UTC", Message: "the year begins " + script,
			Dates: []fleetflowv1alpha1.DatedOpening{{Start: "2026-01-01T00:00", End: "2026-01-05T00:00"}},
		}},
		&fleetflowv1alpha1.RolloutExemption{
			ObjectMeta: metav1.ObjectMeta{Name: "hotfix", Annotations: map[string]string{placementv1beta1.CreatorAnnotation: "jane"}},
			Spec: fleetflowv1alpha1.RolloutExemptionSpec{
				TargetRef: fleetflowv1alpha1.ExemptRun("", "web-5"), ExemptFrom: []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromWindow}}, Message: "CVE " + script, ExpirationTime: metav1.NewTime(now.Add(time.Hour)),
			},
		},
	}
	for i := range 4 {
		name := fmt.Sprintf("member-%d", i+1)
		objects = append(objects, &clusterv1beta1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"note": "a<b"}, CreationTimestamp: ago(time.Hour)},
			Spec:       clusterv1beta1.MemberClusterSpec{Taints: []clusterv1beta1.Taint{{Key: "k", Value: script, Effect: "NoSchedule"}}},
			Status: clusterv1beta1.MemberClusterStatus{Conditions: []metav1.Condition{
				condition(clusterv1beta1.ConditionTypeJoined, metav1.ConditionTrue, "Joined", time.Hour), condition(clusterv1beta1.ConditionTypeHealthy, metav1.ConditionTrue, "Healthy", time.Hour),
			}},
		}, &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web"}},
			Spec:       placementv1beta1.ResourceBindingSpec{TargetCluster: name, State: placementv1beta1.BindingStateBound, ResourceSnapshotName: "web-5-snapshot"},
			Status: placementv1beta1.ResourceBindingStatus{Conditions: []metav1.Condition{
				condition(placementv1beta1.ConditionTypeRolloutStarted, metav1.ConditionTrue, "RolloutStarted", time.Hour), {Type: placementv1beta1.ConditionTypeApplied, Status: metav1.ConditionFalse, Reason: "No", Message: "told " + script},
			}},
		})
	}
	return objects
}

// goldenPage compares a page with testdata/dashboard/<name>.html; UPDATE_GOLDEN=1 writes that file.
func goldenPage(t *testing.T, name, body string) {
	t.Helper()
	path := filepath.Join("testdata", "dashboard", name+".html")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "write it with UPDATE_GOLDEN=1")
	assert.Equal(t, string(want), body)
}

func TestAnApprovalShowsWhatChangesButNoSecrets(t *testing.T) {
	fleet := approvalFleet()
	b := newBrowser(t, inMemory(append(release(), fleet[0], fleet[2])...), testingclock.NewFakeClock(now))
	page := b.get("/runs/web-5/approve?stage=canary").Body.String()
	goldenPage(t, "approve-diff", page)
	assert.Contains(t, page, "theme: <mark>dark</mark>", "the words that differ stand out")
	for _, secret := range []string{"aHVudGVyMg==", "aHVudGVyMw=="} {
		assert.NotContains(t, page, secret)
	}
}

func TestWhenNothingHappensTheHubIsAskedNothing(t *testing.T) {
	var asked atomic.Int32
	count := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			asked.Add(1)
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			asked.Add(1)
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			asked.Add(1)
			return c.Create(ctx, object, options...)
		},
	}
	b := newBrowser(t, interceptor.NewClient(inMemory(approvalFleet()...), count), testingclock.NewFakeClock(now))
	before := asked.Load()
	for _, path := range []string{"/", "/placements", "/runs", "/clusters", "/clusters/member-1", "/search?q=web"} {
		assert.Equal(t, http.StatusOK, b.get(path).Code)
	}
	assert.Equal(t, before, asked.Load(), "pages come from the watches")
	for _, path := range []string{"/placements/web", "/runs/web-5"} {
		b.get(path)
		once := asked.Load()
		b.get(path)
		assert.Equal(t, once, asked.Load(), "what the user may do is asked once a minute")
	}
}

func TestTheDashboardShowsPages(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for name, page := range map[string]struct {
		path string
		code int
	}{
		"fleet": {"/", 200}, "fleet-filtered": {"/?q=shop&state=running", 200}, "waiting": {"/waiting", 200}, "placements": {"/placements", 200},
		"placement": {"/placements/web", 200}, "placement-namespaced": {"/ns/shop/placements/db", 200}, "runs": {"/runs?page=99", 200}, "run-approval": {"/runs/web-5", 200},
		"run-soaking": {"/ns/shop/runs/nightly", 200}, "run-clusters": {"/runs/web-5/clusters?state=pending", 200}, "clusters": {"/clusters", 200}, "cluster": {"/clusters/member-1", 200},
		"holds": {"/holds", 200}, "hold": {"/hold", 200}, "release": {"/holds/incident/release", 200}, "approve": {"/runs/web-5/approve?stage=canary", 200}, "stop": {"/runs/web-5/stop", 200}, "skip": {"/runs/web-5/skip?cluster=member-4", 200},
		"approve-nothing": {"/ns/shop/runs/nightly/approve", 200}, "evict": {"/placements/web/evict?cluster=member-1", 200}, "history": {"/placements/web/history", 200}, "search": {"/search?q=member-2", 200}, "past": {"/history?span=7d", 200}, "clusters-sorted": {"/clusters?sort=-Cluster", 200}, "gone": {"/runs/web-6", 404},
	} {
		t.Run(name, func(t *testing.T) {
			answer := b.get(page.path)
			assert.Equal(t, page.code, answer.Code)
			body := answer.Body.String()
			goldenPage(t, name, body)
			assert.NotContains(t, body, script, "text of objects stays text")
			assert.NotContains(t, body, "\u202e", "what turns the direction of writing is spelled out")
			assert.NotContains(t, body, b.cookies[0].Value, "no page has the secret of the session")
			ids := regexp.MustCompile(` id="([^"]+)"`).FindAllStringSubmatch(body, -1)
			seen := map[string]bool{}
			for _, id := range ids {
				assert.False(t, seen[id[1]], "id %s is there twice", id[1])
				seen[id[1]] = true
			}
			assert.Equal(t, 1, strings.Count(body, "<h1"), "a page has one heading")
			assert.NotContains(t, body, " style=", "the policy forbids it")
			assert.NotRegexp(t, `<script(>| [^s])| on[a-z]+=`, body, "the policy forbids it")
		})
	}
}

func TestTheDashboardIsForOneBrowser(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	link := b.session.Link("/")
	mine := b.cookies
	b.cookies = nil
	for _, path := range []string{"/", "/runs/web-5", "/live?page=/", "/runs/web-5/approve"} {
		answer := b.get(path)
		assert.Equal(t, http.StatusUnauthorized, answer.Code, path)
		assert.NotContains(t, answer.Body.String(), "web-5", path)
	}
	assert.Equal(t, http.StatusUnauthorized, b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}}).Code)
	assert.Equal(t, http.StatusUnauthorized, b.get(strings.TrimPrefix(link, "http://"+dashboardAddress)).Code, "the link has been used")
	assert.Equal(t, http.StatusUnauthorized, b.get("/open?t=").Code)
	b.cookies = mine
	assert.Equal(t, http.StatusOK, b.get("/").Code)
	for next, want := range map[string]string{"/runs/web-5": "/runs/web-5", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/", "": "/"} {
		assert.Equal(t, want, b.get("/open?next="+url.QueryEscape(next)).Header().Get("Location"), next)
	}
	cookie := mine[0]
	assert.True(t, cookie.HttpOnly)
	assert.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	assert.NotContains(t, b.log.String(), cookie.Value)
}

func TestTheDashboardKeepsOtherSitesOut(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for _, host := range []string{"evil.example", "evil.example:8080", "127.0.0.1", "127.0.0.1:8081", ""} {
		answer := b.get("/", func(r *http.Request) { r.Host = host })
		assert.Equal(t, http.StatusMisdirectedRequest, answer.Code, "a name of the internet that leads here: %q", host)
	}
	assert.Equal(t, http.StatusOK, b.get("/", func(r *http.Request) { r.Host = "localhost:8080" }).Code)
	form := url.Values{"uid": {"run-uid"}}
	for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		answer := b.send(http.MethodPost, "/runs/web-5/stop", form, func(r *http.Request) { r.Header.Set(header, value) })
		assert.Equal(t, http.StatusForbidden, answer.Code, header)
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	assert.Empty(t, run.Spec.State, "nothing was done")
	for _, path := range []string{"/", "/static/app.css", "/open?t=wrong", "/nothing"} {
		header := b.get(path).Header()
		assert.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'", path)
		assert.Contains(t, header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
		assert.Equal(t, "nosniff", header.Get("X-Content-Type-Options"), path)
		assert.Equal(t, "same-origin", header.Get("Referrer-Policy"), path)
		assert.Equal(t, "same-origin", header.Get("Cross-Origin-Opener-Policy"), path)
	}
	assert.Equal(t, "no-store", b.get("/").Header().Get("Cache-Control"))
	large := b.send(http.MethodPost, "/hold", url.Values{"reason": {strings.Repeat("x", 70<<10)}})
	assert.Equal(t, http.StatusBadRequest, large.Code)
}

// planOf is the plan hash in the form of an approval.
func planOf(t *testing.T, page string) string {
	t.Helper()
	found := regexp.MustCompile(`name="plan" value="(sha256:[0-9a-f]{64})"`).FindStringSubmatch(page)
	require.NotNil(t, found, page)
	return found[1]
}

func TestAnApprovalIsHeldToThePlanThatWasShown(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	const path = "/runs/web-5/approve"
	shown := planOf(t, b.get(path+"?stage=canary").Body.String())
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-9", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
	require.NoError(t, b.hub.Update(t.Context(), run))

	form := url.Values{"uid": {"run-uid"}, "plan": {shown}, "stage": {"canary"}, "comment": {"fine " + script}, "key": {"a"}}
	stale := b.send(http.MethodPost, path, form)
	assert.Equal(t, http.StatusConflict, stale.Code)
	assert.Contains(t, stale.Body.String(), "has changed since you looked at it")
	assert.Contains(t, stale.Body.String(), "fine &lt;script&gt;", "what was typed is kept")
	assert.NotContains(t, stale.Body.String(), script)
	request := &placementv1beta1.ClusterApprovalRequest{}
	key := client.ObjectKey{Name: "web-5-canary"}
	require.NoError(t, b.hub.Get(t.Context(), key, request))
	assert.Empty(t, request.Status.Conditions, "nothing was done")

	form.Set("plan", planOf(t, stale.Body.String()))
	form.Set("uid", "another")
	form.Set("key", "b")
	assert.Equal(t, http.StatusConflict, b.send(http.MethodPost, path, form).Code, "the run is another one")
	form.Set("uid", "run-uid")
	form.Set("key", "c")
	for range 2 {
		done := b.send(http.MethodPost, path, form)
		require.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
		assert.Equal(t, "/runs/web-5?done=c", done.Header().Get("Location"))
	}
	assert.Contains(t, b.get("/runs/web-5?done=c").Body.String(), "stage canary of run/web-5 approved")
	require.NoError(t, b.hub.Get(t.Context(), key, request))
	assert.True(t, meta.IsStatusConditionTrue(request.Status.Conditions, placementv1beta1.ConditionTypeApproved))
	require.NotNil(t, request.Status.Approval)
	assert.Equal(t, form.Get("plan"), request.Status.Approval.PlanHash)
	assert.Equal(t, "jane", request.Status.Approval.Username)
	assert.Equal(t, "fine "+script, request.Status.Approval.Comment)
	assert.NotContains(t, b.log.String(), "fine", "comments are not logged")
}

// A run that an earlier hub agent has begun has no hash of its plan.
func TestAnApprovalOfARunWithoutAHashIsHeldToWhatUsersHaveDone(t *testing.T) {
	objects := approvalFleet()
	run, _ := objects[0].(*placementv1beta1.ClusterStagedUpdateRun)
	run.Status.PlanHash = ""
	b := newBrowser(t, inMemory(objects...), testingclock.NewFakeClock(now))
	const path = "/runs/web-5/approve"
	changesIn := func(page string) string {
		found := regexp.MustCompile(`name="changes" value="(sha256:[0-9a-f]{64})"`).FindStringSubmatch(page)
		require.NotNil(t, found, page)
		return found[1]
	}
	form := url.Values{"uid": {"run-uid"}, "plan": {""}, "changes": {changesIn(b.get(path + "?stage=canary").Body.String())}, "stage": {"canary"}, "key": {"a"}}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	run.Spec.ClusterActions = []placementv1beta1.ClusterAction{{Cluster: "member-9", Action: placementv1beta1.ClusterActionSkip, Attempt: 1}}
	require.NoError(t, b.hub.Update(t.Context(), run))
	stale := b.send(http.MethodPost, path, form)
	assert.Equal(t, http.StatusConflict, stale.Code)
	assert.Contains(t, stale.Body.String(), "member-9 is skipped")

	form.Set("changes", changesIn(stale.Body.String()))
	form.Set("key", "b")
	done := b.send(http.MethodPost, path, form)
	assert.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
}

func TestTheDashboardSteers(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), clock.RealClock{})
	run := func() placementv1beta1.UpdateRunSpec {
		found := &placementv1beta1.ClusterStagedUpdateRun{}
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, found))
		return found.Spec
	}
	post := func(path string, form url.Values) {
		t.Helper()
		form.Set("uid", "run-uid")
		answer := b.send(http.MethodPost, path, form)
		require.Equal(t, http.StatusSeeOther, answer.Code, answer.Body.String())
	}
	post("/runs/web-5/stop", url.Values{})
	assert.Equal(t, placementv1beta1.StateStop, run().State)
	post("/runs/web-5/resume", url.Values{})
	assert.Equal(t, placementv1beta1.StateRun, run().State)
	assert.Contains(t, b.send(http.MethodPost, "/runs/web-5/skip", url.Values{"uid": {"run-uid"}, "cluster": {"member-4"}}).Body.String(), "say why")
	post("/runs/web-5/skip", url.Values{"cluster": {"member-4"}, "reason": {"it is being repaired"}})
	annotated := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, annotated))
	assert.Equal(t, "it is being repaired", annotated.Annotations[placementv1beta1.ReasonAnnotation])
	post("/runs/web-5/retry", url.Values{"cluster": {"member-4"}})
	assert.Equal(t, []placementv1beta1.ClusterAction{{Cluster: "member-4", Action: placementv1beta1.ClusterActionRetry, Attempt: 2}}, run().ClusterActions)
	refused := b.send(http.MethodPost, "/runs/web-5/skip", url.Values{"uid": {"run-uid"}, "cluster": {"member-9"}, "reason": {"x"}})
	assert.Equal(t, http.StatusConflict, refused.Code)
	assert.Contains(t, refused.Body.String(), "has no cluster &#34;member-9&#34;")
	post("/hold", url.Values{"reason": {"storm"}, "for": {"2h"}, "clusters": {"region=west"}})
	holds := &fleetflowv1alpha1.RolloutHoldList{}
	require.NoError(t, b.hub.List(t.Context(), holds))
	assert.Len(t, holds.Items, 2)
	assert.Contains(t, b.send(http.MethodPost, "/holds/incident/release", url.Values{}).Body.String(), "say why")
	post("/holds/incident/release", url.Values{"reason": {"payments are back"}})
	require.NoError(t, b.hub.List(t.Context(), holds))
	require.Len(t, holds.Items, 1)
	assert.Equal(t, "storm", holds.Items[0].Spec.Message)
	assert.Contains(t, b.send(http.MethodPost, "/hold", url.Values{"reason": {"x"}, "for": {"soon"}}).Body.String(), "is no duration")
	for range 10 {
		b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}})
	}
	assert.Equal(t, http.StatusTooManyRequests, b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}}).Code)
}

// lookOnly answers as a hub on which the user may look only.
func lookOnly(of client.WithWatch) client.WithWatch {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterstagedupdateruns"}, "web-5", fmt.Errorf("joe may not"))
	return interceptor.NewClient(of, interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
			if _, is := object.(*authorizationv1.SelfSubjectAccessReview); is {
				return nil
			}
			return forbidden
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return forbidden
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*clusterv1beta1.MemberClusterList); is {
				return forbidden
			}
			return c.List(ctx, list, options...)
		},
	})
}

func TestWhoMayOnlyLookIsTold(t *testing.T) {
	b := newBrowser(t, lookOnly(inMemory(approvalFleet()...)), testingclock.NewFakeClock(now))
	page := b.get("/runs/web-5").Body.String()
	assert.Contains(t, page, `<span class="button off" aria-disabled="true">Stop</span> <small>You may not patch clusterstagedupdateruns.</small>`)
	assert.NotContains(t, page, `href="/runs/web-5/stop"`)
	assert.Contains(t, page, "You may not list member clusters: they are left out.")
	form := b.get("/runs/web-5/stop").Body.String()
	assert.NotContains(t, form, "<button class=\"main\"")
	forged := b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}})
	assert.Equal(t, http.StatusForbidden, forged.Code)
	assert.Contains(t, forged.Body.String(), "The hub does not let you")
	assert.Contains(t, b.get("/waiting?may=1").Body.String(), "Nothing waits for a person.")
}

func TestPagesThatDoNotChangeByThemselvesAreNotFollowed(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for _, path := range []string{
		"/runs/web-5/plan", "/runs/web-5/approve", "/placements/web/diff?from=4&to=5", "/placements/web/history", "/placements/web/run", "/search?q=a", "/me", "/hold",
		"/nowhere", "/static/app.css", "/live?page=/",
	} {
		got := b.get("/live?page=" + url.QueryEscape(path))
		assert.Equal(t, http.StatusNotFound, got.Code, path)
		assert.Contains(t, got.Body.String(), "does not change by itself", path)
	}
}

// stream keeps a page up to date, for a browser that has a frame already, and returns what waits for the next frame.
func (b *browser) stream(t *testing.T, page, has string) (next func() string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = dashboardAddress
		b.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live?page="+url.QueryEscape(page), nil)
	require.NoError(t, err)
	request.AddCookie(b.cookies[0])
	if has != "" {
		request.Header.Set("Last-Event-ID", has)
	}
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	frames := make(chan string)
	go func() {
		text := ""
		buffer := make([]byte, 64<<10)
		for {
			n, err := answer.Body.Read(buffer)
			if err != nil {
				close(frames)
				return
			}
			text += string(buffer[:n])
			for {
				frame, rest, whole := strings.Cut(text, "\n\n")
				if !whole {
					break
				}
				select {
				case frames <- frame:
				case <-t.Context().Done():
					return
				}
				text = rest
			}
		}
	}()
	return func() string {
		select {
		case frame := <-frames:
			return frame
		case <-time.After(5 * time.Second):
			require.Fail(t, "no frame came")
			return ""
		}
	}
}

func TestAPageIsKeptUpToDateWithWhatHasChanged(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), clock.RealClock{})
	next := b.stream(t, "/runs/web-5?x=1", "")
	first := next()
	for _, id := range []string{"head", "actions", "stages", "trouble"} {
		assert.Contains(t, first, `data: <div id="`+id+`" hx-swap-oob="outerMorph">`)
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	run.Spec.State = placementv1beta1.StateStop
	require.NoError(t, b.hub.Update(t.Context(), run))
	second := next()
	assert.Contains(t, second, "Resume")
	assert.NotContains(t, second, `id="stages"`, "only what has changed is sent")
	require.NoError(t, b.hub.Delete(t.Context(), run))
	for frame := next(); !strings.Contains(frame, "There is no run/web-5."); frame = next() {
	}
}

// A run that waits for Temporal may be the only one that does: a placement that is rolled out by runs asks nothing of it itself.
func TestPagesSayThatARunWaitsForTemporal(t *testing.T) {
	run := &placementv1beta1.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: "web-6", UID: "web-6", CreationTimestamp: ago(time.Minute)},
		Spec:   placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful"},
		Status: placementv1beta1.UpdateRunStatus{Conditions: []metav1.Condition{condition(placementv1beta1.ConditionTypeEngineReachable, metav1.ConditionFalse, placementv1beta1.ReasonTemporalUnreachable, time.Minute)}}}
	run.Status.Conditions[0].Message = "Temporal does not answer"
	b := newBrowser(t, inMemory(append(approvalFleet(), run)...), testingclock.NewFakeClock(now))
	page := b.get("/").Body.String()
	assert.Contains(t, page, "Rollouts stand still: Temporal does not answer")
	assert.Contains(t, b.get("/runs/web-6").Body.String(), "Run web-6 is stuck: it waits for Temporal, which the hub agent does not reach.")
}

// While no hub agent works nothing changes, and what pages show is what the last one has left.
func TestPagesSayThatNoHubAgentWorks(t *testing.T) {
	clk := testingclock.NewFakeClock(now)
	lease := leaseOf(migration.HubAgentLease, "hub-agent-7f").(*coordinationv1.Lease)
	b := newBrowser(t, inMemory(append(approvalFleet(), lease)...), clk)
	says := func() bool {
		return regexp.MustCompile(`no hub agent has worked for \d+m?s?: this is what the hub knew then, and how it is now is not known`).MatchString(b.get("/").Body.String())
	}
	assert.False(t, says())
	passes := func(until func() bool) {
		t.Helper()
		require.Eventually(t, func() bool {
			clk.Step(5 * time.Second)
			return until()
		}, 10*time.Second, time.Millisecond)
	}
	passes(says)
	renewed := metav1.NewMicroTime(clk.Now().Add(time.Hour))
	lease.Spec.RenewTime = &renewed
	require.NoError(t, b.hub.Update(t.Context(), lease))
	passes(func() bool { return !says() })
}

func TestTheDashboardListensOnThisMachineOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:8080", ":8080", "192.0.2.1:80", "example.com:80", "nonsense"} {
		require.Error(t, newConsole(t).run("dashboard", "--address", address), address)
	}
	require.EqualError(t, newConsole(t).run("dashboard", "--temporal-ui", "javascript:alert(1)"),
		`--temporal-ui "javascript:alert(1)" is no URL such as http://localhost:8233/namespaces/fleetflow`)
}

// fleetOf has clusters, and runs over all of them, at most ten of which are under way.
func fleetOf(members, runs int) []client.Object {
	var objects []client.Object
	var clusters []placementv1beta1.ClusterUpdatingStatus
	for i := range members {
		name := fmt.Sprintf("edge-%04d", i)
		objects = append(objects, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}, &placementv1beta1.ClusterResourceBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "web-" + name, Labels: map[string]string{placementv1beta1.ParentPlacementLabel: "web-0"}},
			Spec:       placementv1beta1.ResourceBindingSpec{TargetCluster: name, State: placementv1beta1.BindingStateBound},
			Status:     placementv1beta1.ResourceBindingStatus{Conditions: []metav1.Condition{{Type: "Applied", Status: metav1.ConditionFalse, Message: "not yet"}}},
		})
		started := condition(placementv1beta1.ConditionTypeStarted, metav1.ConditionTrue, "Started", time.Minute)
		clusters = append(clusters, placementv1beta1.ClusterUpdatingStatus{ClusterName: name, Conditions: []metav1.Condition{started}})
	}
	for i := range runs {
		run := soakingRun()
		run.Name = fmt.Sprintf("web-%d-1", i)
		run.UID = ""
		run.Spec.PlacementName = fmt.Sprintf("web-%d", i)
		run.Status.StagesStatus = []placementv1beta1.StageUpdatingStatus{{StageName: "all", StartTime: &run.CreationTimestamp, Clusters: clusters, Conditions: []metav1.Condition{inStage(placementv1beta1.ReasonStageUpdatingStarted, time.Minute)}}}
		run.Status.UpdateStrategySnapshot.Stages = []placementv1beta1.StageConfig{{Name: "all"}}
		if i >= 10 {
			run.Status.Conditions = append(run.Status.Conditions, condition(placementv1beta1.ConditionTypeSucceeded, metav1.ConditionTrue, "Succeeded", time.Minute))
		}
		objects = append(objects, run, &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: run.Spec.PlacementName}})
	}
	return objects
}

// BenchmarkDashboard is what pages of a fleet of 1,000 clusters and 100 runs cost, and how large they are.
func BenchmarkDashboard(b *testing.B) {
	user := newBrowser(b, inMemory(fleetOf(1000, 100)...), testingclock.NewFakeClock(now))
	for name, path := range map[string]string{"fleet": "/", "run": "/runs/web-0-1", "clusters": "/clusters", "placement": "/placements/web-0"} {
		b.Run(name, func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = user.get(path).Body.Len()
			}
			b.ReportMetric(float64(size)/1000, "kB")
		})
	}
	b.Run("frame", func(b *testing.B) {
		for b.Loop() {
			status, end := user.opened(b, "/")
			require.Equal(b, http.StatusOK, status)
			end()
		}
	})
}

// BenchmarkStreams is what 500 pages that are kept up to date take of memory, beside the fleet itself.
func BenchmarkStreams(b *testing.B) {
	const streams, each = 500, 20
	hub := inMemory(fleetOf(1000, 100)...)
	users := &everyone{persons: make([]*web.Person, streams/each)}
	for i := range users.persons {
		users.persons[i] = personOn(hub, testingclock.NewFakeClock(now), session.Identity{User: "jane@example.com"})
	}
	site, _ := newSite(b, hub, testingclock.NewFakeClock(now), func(server *web.Server, _ *login.SignedIn) { server.Access = users })
	memory := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapInuse+stats.StackInuse) / (1 << 20)
	}
	for b.Loop() {
		before := memory()
		var ends []func()
		for range streams {
			status, end := site.opened(b, "/")
			require.Equal(b, http.StatusOK, status)
			ends = append(ends, end)
		}
		all := memory()
		b.ReportMetric(all, "MB")
		b.ReportMetric(all-before, "MB/500streams")
		for _, end := range ends {
			end()
		}
	}
}

// everyone lets every request in, as one user after the other.
type everyone struct {
	login.Anyone
	persons []*web.Person
	next    atomic.Int32
}

// Meant is everything.
func (e *everyone) Meant(*http.Request) bool { return true }

// Visitor is the next user.
func (e *everyone) Visitor(*http.Request) *web.Visitor {
	return &web.Visitor{Person: e.persons[int(e.next.Add(1))%len(e.persons)]}
}

// A watch goes on after the right to it is withdrawn, and one that was refused does not begin by itself.
func TestTheDashboardFindsOutThatRightsAreWithdrawnAndGiven(t *testing.T) {
	var denied atomic.Value
	denied.Store("")
	of := interceptor.NewClient(inMemory(approvalFleet()...), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if fmt.Sprintf("%T", list) == denied.Load() {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", fmt.Errorf("joe may not"))
			}
			return c.List(ctx, list, options...)
		},
	})
	clock := testingclock.NewFakeClock(now)
	b := newBrowser(t, of, clock)
	const said = "You may not list member clusters: they are left out."
	for _, step := range []struct {
		denied string
		out    bool
	}{{"", false}, {"*v1beta1.MemberClusterList", true}, {"", false}} {
		denied.Store(step.denied)
		require.Eventually(t, func() bool {
			clock.Step(time.Second)
			page := b.get("/clusters").Body.String()
			return strings.Contains(page, said) == step.out && strings.Contains(page, "member-2") != step.out
		}, time.Minute, time.Millisecond)
	}
}

func TestHoldsAreSortedOverAllPages(t *testing.T) {
	var holds []client.Object
	for i := range 150 {
		holds = append(holds, &fleetflowv1alpha1.RolloutHold{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("hold-%03d", i)}})
	}
	b := newBrowser(t, inMemory(holds...), testingclock.NewFakeClock(now))
	assert.Contains(t, b.get("/holds?sort=-Hold").Body.String(), "hold-149")
	assert.NotContains(t, b.get("/holds?sort=-Hold").Body.String(), "hold-000", "the first comes last")
}

package stagetask_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/activities/brake"
	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/test/terminal"
	wf "github.com/fleetflow/fleetflow/workflows/contract"
	"github.com/fleetflow/fleetflow/workflows/rollout"
)

const (
	brakeMoon    = "FullMoon"
	reasonMoon   = "MoonIsFull"
	moonText     = "1 of 1 cluster(s) of stage canary wait for the moon to wane"
	dashboardURL = "127.0.0.1:8080"
)

// moon closes every cluster until it wanes.
type moon struct{ wanes time.Time }

// Closed implements brake.Source.
func (m moon) Closed(_ brake.Cluster, _ brake.Start, now time.Time) (rollout.Wait, bool) {
	return rollout.Wait{Kind: brakeMoon, Reason: reasonMoon, Object: "moon", Why: "the moon to wane", Until: m.wanes}, now.Before(m.wanes)
}

// NextChange implements brake.Source.
func (m moon) NextChange(now time.Time) time.Time {
	if now.Before(m.wanes) {
		return m.wanes
	}
	return time.Time{}
}

// addMoon adds a brake that nobody needs.
func addMoon(t *testing.T, wanes time.Time) {
	t.Helper()
	t.Cleanup(rollout.Register(brakeMoon, rollout.BrakeHold))
	t.Cleanup(brake.Register(brake.Kind{
		IsThere: func(brake.Objects, brake.Subject, time.Time) bool { return true },
		Source:  func(brake.Objects, brake.Subject, time.Time) brake.Source { return moon{wanes} },
	}))
}

// A brake that nobody has thought of yet keeps a run, and every picture of the run says so.
func TestABrakeThatIsMadeUpIsKeptToShownAndOver(t *testing.T) {
	wanes := begin.Add(time.Hour)
	addMoon(t, wanes)
	f := newFleet(t)
	f.prepare(func(strategy *placementv1beta1.ClusterStagedUpdateStrategy) {
		strategy.Spec.Stages = []placementv1beta1.StageConfig{{Name: "canary"}}
	})
	f.env.OnActivity(wf.AdvanceStage, mock.Anything, mock.Anything).Return(func(ctx context.Context, in wf.StageAdvance) (wf.StageDelta, error) {
		f.clock.SetTime(f.env.Now())
		if f.env.Now().Before(wanes) {
			return f.acts.AdvanceStage(ctx, in)
		}
		return f.updateClusters(ctx, in)
	})
	looked := false
	f.env.RegisterDelayedCallback(func() {
		looked = true
		held := meta.FindStatusCondition(f.run().Status.Conditions, fleetflowv1alpha1.ConditionTypeHeld)
		require.NotNil(t, held)
		assert.Equal(t, []string{string(metav1.ConditionTrue), reasonMoon, moonText}, []string{string(held.Status), held.Reason, held.Message})
		assert.Contains(t, f.details(), "Waits for moon until 2026-01-02 04:04:05Z.")
		assert.Contains(t, f.kubectl("status", "run/web"), moonText)
		assert.Contains(t, f.kubectl("get", "runs"), moonText)
		assert.Contains(t, f.kubectl("why", "member1", "--placement", "crp"), "it waits for the moon to wane")
		assert.Contains(t, f.dashboardRow("/", "/runs/web"), moonText)
	}, 10*time.Second)
	f.env.ExecuteWorkflow(wf.UpdateRunWorkflow, runRef)
	require.True(t, f.env.IsWorkflowCompleted())
	require.NoError(t, f.env.GetWorkflowError())

	assert.True(t, looked)
	assert.True(t, meta.IsStatusConditionTrue(f.run().Status.StagesStatus[0].Conditions, placementv1beta1.ConditionTypeSucceeded))
	assert.Equal(t, []string{"Initializing", "Updating", "Held", "Updating", "Deleting", "Succeeded"}, f.phases)
	assert.WithinDuration(t, wanes, f.clock.Now(), time.Minute, "time alone ends it")
}

// dashboardRow returns the row of a page that leads to another one.
func (f *fleet) dashboardRow(page, link string) string {
	clock := clocktesting.NewFakeClock(f.env.Now())
	placement := &placementv1beta1.ClusterResourcePlacement{}
	require.NoError(f.t, f.Get(f.t.Context(), types.NamespacedName{Name: "crp"}, placement))
	hub := terminal.InMemory(placement, f.run())
	fleetFeed, err := feed.Start(f.t.Context(), hub, clock, "")
	require.NoError(f.t, err)
	local, err := session.New(dashboardURL)
	require.NoError(f.t, err)
	person := &web.Person{Reviewer: &as.Reviewer{Client: hub, Clock: clock}, Writes: hub}
	server := &web.Server{Feed: fleetFeed, Access: &login.Local{Session: local, Person: person}, Clock: clock, Hub: "hub", Key: func() string { return "key" }}
	handler := server.Handler()
	get := func(path string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(f.t.Context(), http.MethodGet, path, nil)
		request.Host = dashboardURL
		for _, cookie := range cookies {
			request.AddCookie(cookie)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		return answer
	}
	opened := get(strings.TrimPrefix(local.Link("/"), "http://"+dashboardURL))
	require.Equal(f.t, http.StatusSeeOther, opened.Code)
	html := get(page, opened.Result().Cookies()...)
	require.Equal(f.t, http.StatusOK, html.Code)
	for row := range strings.Lines(html.Body.String()) {
		if strings.Contains(row, `href="`+link+`"`) {
			return row
		}
	}
	require.Fail(f.t, "no row", "%s leads not to %s: %s", page, link, html.Body.String())
	return ""
}

package command

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// secretsOfRelease are the values of the Secret in the snapshots of release.
var secretsOfRelease = []string{"aHVudGVyMg==", "aHVudGVyMw==", "hunter2", "hunter3"}

func TestARunIsCreatedOnceItsPlanIsShown(t *testing.T) {
	b := newBrowser(t, inMemory(release()...), testingclock.NewFakeClock(now))
	assert.Contains(t, b.get("/placements/web").Body.String(), `href="/placements/web/run"`)
	first := b.get("/placements/web/run").Body.String()
	goldenPage(t, "start", first)
	assert.NotContains(t, first, `class="main"`, "nothing can be created before the plan is shown")
	shown := b.get("/placements/web/run?strategy=careful&index=5").Body.String()
	goldenPage(t, "start-plan", shown)
	assert.Contains(t, shown, "theme: <mark>dark</mark>")
	for _, secret := range secretsOfRelease {
		assert.NotContains(t, shown, secret)
	}
	form := url.Values{"uid": {"web-uid"}, "strategy": {"careful"}, "index": {"4"}, "state": {"Initialize"}, "shown": {"careful 5"}, "key": {"stale"}}
	other := b.send(http.MethodPost, "/placements/web/run", form)
	assert.Equal(t, http.StatusConflict, other.Code)
	assert.Contains(t, other.Body.String(), "look at the plan of these first")
	assert.Contains(t, other.Body.String(), `name="shown" value="careful 4"`)
	form.Set("shown", "careful 4")
	form.Set("key", "another strategy")
	form.Set("as", "other-uid/1")
	other = b.send(http.MethodPost, "/placements/web/run", form)
	assert.Equal(t, http.StatusConflict, other.Code)
	assert.Contains(t, other.Body.String(), "strategy careful was changed, or deleted and created anew, since you looked at the plan")
	_, as, found := strings.Cut(other.Body.String(), `name="as" value="`)
	require.True(t, found)
	as, _, _ = strings.Cut(as, `"`)
	form.Set("as", as)
	form.Set("key", "a")
	require.Equal(t, http.StatusSeeOther, b.send(http.MethodPost, "/placements/web/run", form).Code)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-1"}, run))
	assert.Equal(t, placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "careful", ResourceSnapshotIndex: "4", State: placementv1beta1.StateInitialize}, run.Spec)
	assert.Contains(t, b.get("/placements/web?done=a").Body.String(), "run/web-1 created")
	for name, wrong := range map[string]url.Values{
		"another placement": {"uid": {"other"}, "strategy": {"careful"}}, "no strategy": {"uid": {"web-uid"}},
		"a strategy that is not there": {"uid": {"web-uid"}, "strategy": {"none"}, "shown": {"none "}}, "a snapshot that is none": {"uid": {"web-uid"}, "strategy": {"careful"}, "index": {"-1"}},
	} {
		assert.Equal(t, http.StatusConflict, b.send(http.MethodPost, "/placements/web/run", wrong).Code, name)
	}
	runs := &placementv1beta1.ClusterStagedUpdateRunList{}
	require.NoError(t, b.hub.List(t.Context(), runs))
	assert.Len(t, runs.Items, 1)
}

func TestARunIsRolledBackAndDeletedFromItsPage(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	goldenPage(t, "rollback", b.get("/runs/web-5/rollback").Body.String())
	goldenPage(t, "delete", b.get("/runs/web-5/delete").Body.String())
	require.Equal(t, http.StatusSeeOther, b.send(http.MethodPost, "/runs/web-5/rollback", url.Values{"uid": {"run-uid"}, "reason": {"errors"}, "key": {"a"}}).Code)
	back := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5-rollback"}, back))
	assert.Equal(t, "web-5", back.Spec.RollbackOf)
	assert.Equal(t, "errors", back.Annotations[placementv1beta1.ReasonAnnotation])

	run := &placementv1beta1.ClusterStagedUpdateRun{}
	for name, wrong := range map[string]url.Values{
		"another name": {"uid": {"run-uid"}, "name": {"web-4"}, "reason": {"x"}}, "no name": {"uid": {"run-uid"}, "reason": {"x"}}, "another run": {"uid": {"other"}, "name": {"web-5"}, "reason": {"x"}},
		"no reason": {"uid": {"run-uid"}, "name": {"web-5"}}, "a long reason": {"uid": {"run-uid"}, "name": {"web-5"}, "reason": {strings.Repeat("x", 1025)}},
	} {
		assert.Equal(t, http.StatusConflict, b.send(http.MethodPost, "/runs/web-5/delete", wrong).Code, name)
		require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run), name)
	}
	deleted := b.send(http.MethodPost, "/runs/web-5/delete", url.Values{"uid": {"run-uid"}, "name": {"web-5"}, "reason": {"a typing error"}, "key": {"b"}})
	require.Equal(t, http.StatusSeeOther, deleted.Code, deleted.Body.String())
	assert.True(t, apierrors.IsNotFound(b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run)))
}

func TestAnExemptionNamesWhatItIsFrom(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	page := b.get("/runs/web-5/exempt").Body.String()
	goldenPage(t, "exempt", page)
	assert.Contains(t, page, "In force: hold/incident.")
	form := url.Values{"uid": {"run-uid"}, "from": {"hold/incident, analysis/canary"}, "reason": {"CVE"}, "ticket": {"INC-9"}, "for": {"2h"}, "key": {"a"}}
	sent := b.send(http.MethodPost, "/runs/web-5/exempt", form)
	require.Equal(t, http.StatusSeeOther, sent.Code, sent.Body.String())
	exemptions := &fleetflowv1alpha1.RolloutExemptionList{}
	require.NoError(t, b.hub.List(t.Context(), exemptions))
	require.Len(t, exemptions.Items, 2, "the new one, and hotfix, which was there")
	exemptions.Items = slices.DeleteFunc(exemptions.Items, func(e fleetflowv1alpha1.RolloutExemption) bool { return e.Name == "hotfix" })
	require.Len(t, exemptions.Items, 1)
	spec := exemptions.Items[0].Spec
	assert.Equal(t, "web-5", spec.TargetRef.Name)
	assert.Equal(t, []fleetflowv1alpha1.ExemptFrom{{Kind: fleetflowv1alpha1.ExemptFromHold, Name: "incident"}, {Kind: fleetflowv1alpha1.ExemptFromAnalysis, Stage: "canary"}}, spec.ExemptFrom)
	assert.True(t, now.Add(2*time.Hour).Equal(spec.ExpirationTime.Time))
	for name, wrong := range map[string]url.Values{
		"no reason": {"reason": {" "}}, "approvals": {"from": {"approval"}}, "a hold that is not there": {"from": {"hold/none"}}, "too long": {"for": {"48h"}}, "no duration": {"for": {"soon"}}, "another run": {"uid": {"other"}},
	} {
		bad := url.Values{"uid": {"run-uid"}, "from": {"hold/incident"}, "reason": {"CVE"}, "for": {"2h"}}
		maps.Copy(bad, wrong)
		assert.Equal(t, http.StatusConflict, b.send(http.MethodPost, "/runs/web-5/exempt", bad).Code, name)
	}
	require.NoError(t, b.hub.List(t.Context(), exemptions))
	assert.Len(t, exemptions.Items, 2)
}

func TestPlansAndDifferencesHideSecrets(t *testing.T) {
	fleet := approvalFleet()
	b := newBrowser(t, inMemory(append(release(), fleet[0])...), testingclock.NewFakeClock(now))
	for name, path := range map[string]string{
		"plan": "/runs/web-5/plan", "diff-choose": "/placements/web/diff", "diff": "/placements/web/diff?from=4&to=5", "diff-back": "/placements/web/diff?from=5&to=4",
	} {
		page := b.get(path)
		assert.Equal(t, http.StatusOK, page.Code, page.Body.String())
		goldenPage(t, name, page.Body.String())
		for _, secret := range secretsOfRelease {
			assert.NotContains(t, page.Body.String(), secret, path)
		}
	}
	file := b.get("/placements/web/diff?from=4&to=5&format=diff")
	assert.Equal(t, `attachment; filename="web-4-5.diff"`, file.Header().Get("Content-Disposition"))
	assert.Equal(t, "text/plain; charset=utf-8", file.Header().Get("Content-Type"))
	assert.Contains(t, file.Body.String(), "+  theme: dark")
	for _, secret := range secretsOfRelease {
		assert.NotContains(t, file.Body.String(), secret)
	}
	assert.Equal(t, http.StatusNotFound, b.get("/placements/web/diff?from=4&to=5&format=exe").Code)
	assert.Contains(t, b.get("/placements/web/diff?from=4&to=99").Body.String(), "has no snapshot 99")
}

func TestAHistoryIsFilteredAndKept(t *testing.T) {
	fleet := approvalFleet()
	request := fleet[2].(*placementv1beta1.ClusterApprovalRequest)
	request.Status.Conditions = []metav1.Condition{condition(placementv1beta1.ConditionTypeApproved, metav1.ConditionTrue, "Approved", time.Minute)}
	request.Status.Approval = &placementv1beta1.ApprovalRecord{Username: "=HYPERLINK(1)", At: ago(time.Minute), Channel: placementv1beta1.ApprovalChannelKubectl, Verified: true, Comment: "@fine\n\"quoted\""}
	gate := &fleet[0].(*placementv1beta1.ClusterStagedUpdateRun).Status.StagesStatus[1].AfterStageTaskStatus[0]
	gate.Conditions = append(gate.Conditions, condition(placementv1beta1.ConditionTypeApprovalRequestApproved, metav1.ConditionTrue, "Approved", time.Minute))
	b := newBrowser(t, inMemory(fleet...), testingclock.NewFakeClock(now))
	file := b.get("/placements/web/history?format=csv")
	assert.Equal(t, `attachment; filename="web-history.csv"`, file.Header().Get("Content-Disposition"))
	rows, err := csv.NewReader(file.Body).ReadAll()
	require.NoError(t, err)
	assert.Equal(t, []string{"at", "what", "name", "happened", "by", "channel", "verified", "comment"}, rows[0])
	found := false
	for _, row := range rows[1:] {
		if row[1] == "approval" {
			found = true
			assert.Equal(t, []string{"'=HYPERLINK(1)", "Kubectl", "true", "'@fine\n\"quoted\""}, row[4:], "a spreadsheet takes it for text")
		}
	}
	assert.True(t, found)
	lines := strings.Split(strings.TrimSpace(b.get("/placements/web/history?format=jsonl&type=approval").Body.String()), "\n")
	require.Len(t, lines, 1)
	entry := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &entry))
	assert.Equal(t, "=HYPERLINK(1)", entry["by"])
	for query, want := range map[string]bool{"by=somebody": false, "by=%3DHYPERLINK(1)": true, "type=snapshot": false, "run=web-4": false, "run=web-5": true, "from=2999-01-01": false, "from=nonsense": true} {
		assert.Equal(t, want, strings.Contains(b.get("/placements/web/history?format=csv&"+query).Body.String(), "HYPERLINK"), query)
	}
	for from, to := range map[string]string{
		"/history?placement=web&by=jane": "/placements/web/history?by=jane", "/diff?placement=shop/db&from=1&to=2": "/ns/shop/placements/db/diff?from=1&to=2",
		"/runs/new?placement=web": "/placements/web/run", "/runs/new?placement=//evil.example": "/placements/evil.example/run",
	} {
		assert.Equal(t, to, b.get(from).Header().Get("Location"), from)
	}
}

func TestTheHistoryOfTheFleetIsAFileToo(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	lines := strings.Split(strings.TrimSpace(b.get("/history?format=jsonl&type=run").Body.String()), "\n")
	entry := map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &entry))
	assert.Equal(t, []any{"run", "web-5", map[string]any{"kind": "placement", "name": "web"}}, []any{entry["what"], entry["name"], entry["of"]})
	table := b.get("/history?format=csv&type=run").Body.String()
	assert.True(t, strings.HasPrefix(table, "at,about,what,name,happened,by,comment\n"), table)
	assert.Len(t, strings.Split(strings.TrimSpace(table), "\n"), 1+len(lines))
	assert.Equal(t, http.StatusNotFound, b.get("/history?format=pdf").Code)
	assert.Equal(t, http.StatusNotFound, b.get("/live?page=/placements/web/history").Code, "what no watch brings does not change by itself")
}

// frameOf opens a stream and returns its first frame.
func frameOf(t *testing.T, b *browser, has string) string {
	t.Helper()
	stream := b.stream(t, "/runs/web-5", has)
	return stream()
}

func TestABrowserThatComesAgainIsSentWhatHasChangedSince(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), clock.RealClock{})
	first := frameOf(t, b, "")
	assert.Contains(t, first, `id="stages"`)
	id, _, _ := strings.Cut(strings.TrimPrefix(first, "id: "), "\n")
	require.Contains(t, id, "stages=")
	again := frameOf(t, b, id)
	assert.NotContains(t, again, `id="stages"`, "the browser has it")
	assert.NotContains(t, again, `id="head"`)
	assert.Contains(t, again, `id="trouble"`, "the browser may have written there that the dashboard does not answer")
	other := strings.Replace(id, "head=", "head=x", 1)
	assert.Contains(t, frameOf(t, b, other), `id="head"`)
	assert.Contains(t, frameOf(t, b, strings.Repeat("=,=x", 5000)), `id="stages"`, "what is no frame is none")
}

func TestClocksThatAreWrongByAnHour(t *testing.T) {
	for name, wrong := range map[string]time.Duration{"behind": -time.Hour, "ahead": time.Hour} {
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now.Add(wrong)))
			for _, path := range sitePages {
				page := b.get(path)
				assert.Equal(t, http.StatusOK, page.Code, path)
				assert.NotRegexp(t, `(since|took|until) -`, page.Body.String(), path)
			}
			assert.Contains(t, b.get("/").Body.String(), fmt.Sprintf(`data-now="%s"`, now.Add(wrong).UTC().Format(time.RFC3339)), "the browser ticks by the clock of the dashboard")
			done := b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}})
			assert.Equal(t, http.StatusSeeOther, done.Code, done.Body.String())
		})
	}
}

func TestLinksLeadToWebPagesOnlyAndSayWhere(t *testing.T) {
	fleet := approvalFleet()
	fleet[3].SetAnnotations(map[string]string{
		"fleetflow.io/link-runbook": "https://wiki.example.com/web?a=b&c=<d>", "fleetflow.io/link-script": "javascript:alert(1)", "fleetflow.io/link-data": "data:text/html,x",
		"fleetflow.io/link-user": "https://hub.example.com@evil.example/", "fleetflow.io/link-path": "//evil.example", "other/link": "https://other.example",
	})
	page := newBrowser(t, inMemory(fleet...), testingclock.NewFakeClock(now)).get("/placements/web").Body.String()
	assert.Contains(t, page, `<a href="https://wiki.example.com/web?a=b&amp;c=%3cd%3e" rel="noopener noreferrer">runbook</a> <span class="detail">(wiki.example.com)</span>`)
	for _, wrong := range []string{"javascript:", "data:text", "evil.example", "other.example"} {
		assert.NotContains(t, page, wrong)
	}
}

func TestPagesNameNoOtherSite(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for _, path := range append(slices.Clone(sitePages), siteForms...) {
		page := b.get(path).Body.String()
		for _, found := range regexp.MustCompile(`(?:src|href|action|data-[a-z]+|hx-[a-z:]+)="([a-z]+:|//)[^"]*"`).FindAllString(page, -1) {
			assert.Contains(t, found, `href="http://temporal.example/namespaces/default/workflows/`, path)
		}
	}
}

func TestNamesThatAreNoneFindNothing(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	for _, name := range []string{"..%2f..%2fapi", "%00", "a%20b", "%3Cscript%3Ealert(1)%3C%2Fscript%3E", strings.Repeat("x", 5000), "%F0%9F%92%A9", "-", "."} {
		for _, path := range []string{"/runs/" + name, "/ns/" + name + "/runs/x", "/placements/" + name, "/placements/" + name + "/history", "/clusters/" + name, "/holds/" + name + "/release", "/runs/" + name + "/approve"} {
			answer := b.get(path)
			assert.Contains(t, []int{http.StatusNotFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect}, answer.Code, path)
			assert.NotContains(t, answer.Body.String(), "<script>alert", path)
		}
		answer := b.send(http.MethodPost, "/runs/"+name+"/stop", url.Values{"uid": {"x"}})
		assert.True(t, answer.Code >= 300 && answer.Code < 500, "%s: %d", name, answer.Code)
	}
	sent := b.send(http.MethodPost, "/runs/web-5/stop", nil, func(r *http.Request) {
		r.Header.Set("Content-Type", "application/json")
		r.Body = io.NopCloser(strings.NewReader(`{"uid":"run-uid"}`))
	})
	assert.Equal(t, http.StatusConflict, sent.Code, "what is no form says nothing")
}

// opened opens a stream, and returns once the first frame is sent or the stream is refused.
func (b *browser) opened(t testing.TB, page string) (status int, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &firstFrame{ResponseRecorder: httptest.NewRecorder(), sent: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/live?page="+url.QueryEscape(page), nil)
		r.Host = b.host
		for _, cookie := range b.cookies {
			r.AddCookie(cookie)
		}
		b.handler.ServeHTTP(w, r)
	}()
	end = func() { cancel(); <-over }
	select {
	case <-w.sent:
		return http.StatusOK, end
	case <-over:
		return w.Code, end
	}
}

// firstFrame tells of the first flush.
type firstFrame struct {
	*httptest.ResponseRecorder
	once sync.Once
	sent chan struct{}
}

func (f *firstFrame) Flush() { f.once.Do(func() { close(f.sent) }) }

func TestAUserHasTwentyStreams(t *testing.T) {
	b := newBrowser(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now))
	var ends []func()
	for range 20 {
		status, end := b.opened(t, "/holds")
		require.Equal(t, http.StatusOK, status)
		ends = append(ends, end)
	}
	status, _ := b.opened(t, "/holds")
	assert.Equal(t, http.StatusServiceUnavailable, status)
	ends[0]()
	status, end := b.opened(t, "/holds")
	assert.Equal(t, http.StatusOK, status, "one was closed")
	end()
	for _, end := range ends[1:] {
		end()
	}
	for _, page := range []string{"", "http://evil.example/", "relative", "%"} {
		assert.Equal(t, http.StatusBadRequest, b.get("/live?page="+page).Code, page)
	}
}

// withoutNewKinds is a hub of before RolloutHolds, exemptions and evictions.
func withoutNewKinds(of client.WithWatch) client.WithWatch {
	unserved := func(object any) error {
		kind := fmt.Sprintf("%T", object)
		if strings.Contains(kind, "v1alpha1.") || strings.Contains(kind, "Eviction") {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "fleetflow.io", Kind: kind}}
		}
		return nil
	}
	return interceptor.NewClient(of, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := unserved(object); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := unserved(list); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if err := unserved(object); err != nil {
				return err
			}
			return c.Create(ctx, object, options...)
		},
	})
}

// oldMapper does not know the kinds of fleetflow.io.
type oldMapper struct{ meta.RESTMapper }

// RESTMapping has none for what is not served.
func (m oldMapper) RESTMapping(of schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if of.Group == "fleetflow.io" || of.Kind == "ClusterResourcePlacementEviction" {
		return nil, &meta.NoKindMatchError{GroupKind: of, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(of, versions...)
}

// oldHub is a client with such a mapper.
type oldHub struct{ client.WithWatch }

// RESTMapper is that of the hub.
func (h oldHub) RESTMapper() meta.RESTMapper { return oldMapper{h.WithWatch.RESTMapper()} }

func TestAHubWithoutTheNewerKinds(t *testing.T) {
	fleet := slices.DeleteFunc(approvalFleet(), func(o client.Object) bool { return o.GetName() == "incident" })
	b := newBrowser(t, oldHub{withoutNewKinds(inMemory(fleet...))}, testingclock.NewFakeClock(now))
	for _, path := range sitePages {
		assert.Equal(t, http.StatusOK, b.get(path).Code, path)
	}
	assert.Contains(t, b.get("/holds").Body.String(), "Nothing is held.")
	for path, form := range map[string]url.Values{
		"/hold": {"reason": {"storm"}}, "/runs/web-5/exempt": {"uid": {"run-uid"}, "from": {"window"}, "reason": {"x"}, "for": {"1h"}}, "/placements/web/evict": {"uid": {"web-uid"}, "cluster": {"member-1"}, "reason": {"x"}},
	} {
		answer := b.send(http.MethodPost, path, form)
		assert.True(t, answer.Code >= 400 && answer.Code < 500, "%s: %d", path, answer.Code)
		assert.Contains(t, answer.Body.String(), `role="alert"`, path)
	}
	planned := b.get("/runs/web-5/approve?stage=canary").Body.String()
	assert.Contains(t, planned, `<button class="main">Approve canary`, "what there is can be used")
}

func TestPagesOfTenThousandClustersStaySmall(t *testing.T) {
	b := newBrowser(t, inMemory(fleetOf(10_000, 1)...), testingclock.NewFakeClock(now))
	for _, path := range []string{"/", "/runs/web-0-1", "/runs/web-0-1/clusters?page=50", "/clusters?page=50", "/placements/web-0", "/placements/web-0?page=50", "/clusters/edge-9999", "/runs/web-0-1/skip", "/search?q=edge", "/map"} {
		page := b.get(path)
		assert.Equal(t, http.StatusOK, page.Code, path)
		assert.Less(t, page.Body.Len(), 120_000, path)
	}
	assert.Contains(t, b.get("/clusters?page=50").Body.String(), "10000 in all, page 50 of 50")
}

package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/as"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/feed"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/login"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/reading"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/web"
	"github.com/fleetflow/fleetflow/test/fixture/openid"
	"github.com/fleetflow/fleetflow/test/terminal"
)

const served = "fleet.example.com"

// newSite serves a fleet to users who log in. What they may do is up to the hub, by their name.
func newSite(t testing.TB, hub client.WithWatch, clock clock.WithTicker, change func(*web.Server, *login.SignedIn)) (*browser, *openid.Provider) {
	t.Helper()
	p := openid.New(t)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte(strings.Repeat("k", 32)), 0o600))
	sealer := &session.Sealer{Folder: folder, Clock: clock}
	b := &browser{t: t, hub: hub, host: served}
	log := func(format string, args ...any) { fmt.Fprintf(&b.log, format+"\n", args...) }
	access := &login.SignedIn{
		Cookies: &session.Cookies{Sealer: sealer}, Host: served, Clock: clock, Log: log,
		Provider: &session.Provider{
			Issuer: p.URL, ClientID: "fleet", ClientSecret: "client-secret", Redirect: "https://" + served + "/oidc/callback", UsernameClaim: "email", GroupsClaim: "groups",
			Keep: []string{"fleet-*", "system:*"}, Lasts: time.Hour, HTTP: p.Client(), Clock: clock, Sealer: sealer,
		},
		Act: func(user session.Identity) (*web.Person, error) {
			if user.Token == "" {
				if _, err := as.User(&rest.Config{}, user.User, user.Groups); err != nil {
					return nil, err
				}
			}
			return personOn(hub, clock, user), nil
		},
	}
	fleet, err := feed.Start(t.Context(), hub, clock, "")
	require.NoError(t, err)
	server := &web.Server{Feed: fleet, Access: access, Clock: clock, Hub: "test-hub", Key: func() string { return "key" }, Log: log}
	if change != nil {
		change(server, access)
	}
	b.handler = server.Handler()
	return b, p
}

// personOn acts as a user on a hub in memory.
func personOn(hub client.WithWatch, clock clock.WithTicker, user session.Identity) *web.Person {
	theirs := rightsOf(hub, user.User)
	reads := &reading.Hub{Client: theirs, Clock: clock, Discover: terminal.Discovered}
	reviewer := &as.Reviewer{Client: theirs, Clock: clock, User: user.User, Groups: user.Groups}
	return &web.Person{Name: user.User, Groups: user.Groups, Reviewer: reviewer, Writes: theirs, Reading: reads, Filtered: true}
}

// rightsOf has a hub let jane do everything, and others look at placements and clusters, and at namespace shop.
func rightsOf(hub client.WithWatch, name string) client.WithWatch {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterstagedupdateruns"}, "web-5", fmt.Errorf("%s may not", name))
	return interceptor.NewClient(hub, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if review, is := object.(*authorizationv1.SubjectAccessReview); is {
				what := review.Spec.ResourceAttributes
				review.Status.Allowed = review.Spec.User == "jane@example.com" ||
					what.Verb == "list" && (slices.Contains([]string{"memberclusters", "clusterresourceplacements"}, what.Resource) || what.Namespace == "shop")
				return nil
			}
			if name != "jane@example.com" {
				return forbidden
			}
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if name != "jane@example.com" {
				return forbidden
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
}

// keepCookies keeps the cookies that an answer sets, as browsers do.
func (b *browser) keepCookies(answer *httptest.ResponseRecorder) {
	for _, cookie := range answer.Result().Cookies() {
		b.cookies = slices.DeleteFunc(b.cookies, func(other *http.Cookie) bool { return other.Name == cookie.Name })
		if cookie.MaxAge >= 0 {
			b.cookies = append(b.cookies, cookie)
		}
	}
}

// enter logs in, and returns the answer to the return from the provider.
func (b *browser) enter(p *openid.Provider, next string) *httptest.ResponseRecorder {
	b.t.Helper()
	begun := b.send(http.MethodPost, "/login", url.Values{"next": {next}})
	require.Equal(b.t, http.StatusSeeOther, begun.Code, begun.Body.String())
	b.keepCookies(begun)
	back := b.get(p.Answer(b.t, begun.Header().Get("Location")))
	b.keepCookies(back)
	return back
}

func (b *browser) cookie(name string) *http.Cookie {
	for _, cookie := range b.cookies {
		if cookie.Name == name {
			return cookie
		}
	}
	return nil
}

func TestAUserLogsInAndActsAsThemself(t *testing.T) {
	clock := testingclock.NewFakeClock(now)
	b, p := newSite(t, inMemory(approvalFleet()...), clock, nil)
	turned := b.get("/runs/web-5")
	assert.Equal(t, http.StatusSeeOther, turned.Code)
	assert.Equal(t, "/login?next=%2Fruns%2Fweb-5", turned.Header().Get("Location"))
	page := b.get("/login?next=" + url.QueryEscape("/runs/"+script)).Body.String()
	assert.NotContains(t, page, script)
	assert.NotContains(t, page, "web-5", "nothing of the fleet before the login")
	assert.Contains(t, b.get("/login").Header().Get("Content-Security-Policy"), "form-action 'self' "+p.URL+";")

	p.LogIn(now, "jane@example.com", "fleet-admins", "other")
	back := b.enter(p, "/runs/web-5")
	require.Equal(t, http.StatusSeeOther, back.Code, back.Body.String())
	assert.Equal(t, "/runs/web-5", back.Header().Get("Location"))
	assert.Equal(t, "S256", p.Asked.Get("code_challenge_method"))
	assert.Equal(t, "openid", p.Asked.Get("scope"), "no refresh token is asked for")
	assert.NotEmpty(t, p.Asked.Get("nonce"))
	cookie := b.cookie("__Host-fleet")
	require.NotNil(t, cookie)
	assert.True(t, cookie.HttpOnly && cookie.Secure)
	assert.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	assert.Equal(t, "/", cookie.Path)
	assert.Len(t, b.cookies, 1, "the cookie of the login is spent")

	me := b.get("/me").Body.String()
	assert.Contains(t, me, "jane@example.com")
	assert.Contains(t, me, "fleet-admins")
	assert.NotContains(t, me, "other", "groups that are not kept are dropped")
	assert.Contains(t, me, now.Add(30*time.Minute).UTC().Format(time.RFC3339), "the session ends with the ID token")
	require.Equal(t, http.StatusSeeOther, b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}}).Code)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	assert.Equal(t, placementv1beta1.StateStop, run.Spec.State)

	said := b.log.String()
	assert.Contains(t, said, "/runs/web-5/stop by jane@example.com: 303")
	for _, secret := range []string{cookie.Value, "access-token", "refresh-token", "client-secret", p.Token(), p.Verifier} {
		assert.NotContains(t, said, secret)
		assert.NotContains(t, me, secret)
	}
	b.keepCookies(b.send(http.MethodPost, "/logout", nil))
	assert.Empty(t, b.cookies)
	assert.Equal(t, http.StatusSeeOther, b.get("/me").Code)
}

// TestTwoReplicasServeOneSession has a user begin to log in at one replica, come back from the provider to the other, and act at both:
// they share nothing but the key.
func TestTwoReplicasServeOneSession(t *testing.T) {
	hub := inMemory(approvalFleet()...)
	clock := testingclock.NewFakeClock(now)
	var provider session.Provider
	one, p := newSite(t, hub, clock, func(_ *web.Server, access *login.SignedIn) {
		provider = session.Provider{Issuer: access.Provider.Issuer, HTTP: access.Provider.HTTP}
	})
	other, _ := newSite(t, hub, clock, func(_ *web.Server, access *login.SignedIn) {
		access.Provider.Issuer = provider.Issuer
		access.Provider.HTTP = provider.HTTP
	})
	p.LogIn(now, "jane@example.com", "fleet-admins")
	begun := one.send(http.MethodPost, "/login", url.Values{"next": {"/"}})
	require.Equal(t, http.StatusSeeOther, begun.Code, begun.Body.String())
	other.keepCookies(begun)
	other.keepCookies(other.get(p.Answer(t, begun.Header().Get("Location"))))
	require.NotEmpty(t, other.cookies)
	one.cookies = other.cookies
	for _, replica := range []*browser{one, other} {
		assert.Contains(t, replica.get("/me").Body.String(), "jane@example.com")
	}
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.Equal(t, http.StatusSeeOther, one.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}}).Code)
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	assert.Equal(t, placementv1beta1.StateStop, run.Spec.State)
	require.Equal(t, http.StatusSeeOther, other.send(http.MethodPost, "/runs/web-5/resume", url.Values{"uid": {"run-uid"}}).Code)
	require.NoError(t, hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	assert.Equal(t, placementv1beta1.StateRun, run.Spec.State)
}

func TestASessionEndsAndIsRenewedWithoutAQuestion(t *testing.T) {
	clock := testingclock.NewFakeClock(now)
	b, p := newSite(t, inMemory(approvalFleet()...), clock, nil)
	p.LogIn(now, "jane@example.com", "fleet-admins")
	b.enter(p, "/")
	require.Equal(t, http.StatusOK, b.get("/").Code)
	clock.Step(30 * time.Minute)
	assert.Equal(t, http.StatusUnauthorized, b.get("/live?page=/").Code, "no stream outlives its session")
	refused := b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}, "comment": {"typed " + script}})
	assert.Equal(t, http.StatusUnauthorized, refused.Code)
	assert.Contains(t, refused.Body.String(), "Nothing was done.")
	assert.Contains(t, refused.Body.String(), `name="comment" value="typed &lt;script&gt;`, "what was typed can be sent again")
	assert.NotContains(t, refused.Body.String(), script)
	assert.NotContains(t, refused.Body.String(), "canary", "nothing of the fleet")

	p.LogIn(clock.Now(), "jane@example.com", "fleet-viewers")
	again := b.get("/runs/web-5?page=2")
	require.Equal(t, http.StatusSeeOther, again.Code)
	assert.Contains(t, again.Header().Get("Location"), "prompt=none")
	b.keepCookies(again)
	back := b.get(p.Answer(t, again.Header().Get("Location")))
	b.keepCookies(back)
	assert.Equal(t, "/runs/web-5?page=2", back.Header().Get("Location"))
	assert.Contains(t, b.get("/me").Body.String(), "fleet-viewers", "groups are fresh")

	clock.Step(time.Hour)
	p.Claims = nil
	again = b.get("/")
	b.keepCookies(again)
	back = b.get(p.Answer(t, again.Header().Get("Location")))
	assert.Equal(t, "/login?next=%2F", back.Header().Get("Location"), "the provider has to ask, so the user is asked first")
}

func TestWhoIsNotLetInIsToldWhy(t *testing.T) {
	clock := testingclock.NewFakeClock(now)
	many := make([]string, 90)
	for i := range many {
		many[i] = fmt.Sprintf("fleet-%d-%s", i, strings.Repeat("x", 40))
	}
	for sentence, test := range map[string]struct {
		prepare func(*openid.Provider)
		want    string
	}{
		"a group of Kubernetes":        {func(p *openid.Provider) { p.LogIn(now, "jane@example.com", "system:masters") }, "names of Kubernetes itself are not for people"},
		"a user of Kubernetes":         {func(p *openid.Provider) { p.LogIn(now, "system:admin") }, "names of Kubernetes itself are not for people"},
		"a user without the claim":     {func(p *openid.Provider) { p.LogIn(now, "jane@example.com"); delete(p.Claims, "email") }, "has no claim &#34;email&#34;"},
		"an address not verified":      {func(p *openid.Provider) { p.LogIn(now, "jane@example.com"); p.Claims["email_verified"] = false }, "has not verified your email address"},
		"too many groups for a cookie": {func(p *openid.Provider) { p.LogIn(now, "jane@example.com", many...) }, "oidc.keepGroups"},
		"more groups than are kept": {func(p *openid.Provider) {
			p.LogIn(now, "jane@example.com", append(many, many...)...)
			p.Claims["groups"] = numbered(101)
		}, "keeps at most 100"},
		"a token for another": {func(p *openid.Provider) { p.LogIn(now, "jane@example.com"); p.Claims["aud"] = "other" }, "could not be checked"},
		"a token that is over": {func(p *openid.Provider) {
			p.LogIn(now, "jane@example.com")
			p.Claims["exp"] = now.Add(-time.Minute).Unix()
		}, "could not be checked"},
		"another login's token": {func(p *openid.Provider) { p.LogIn(now, "jane@example.com"); p.Claims["nonce"] = "replayed" }, "was not begun in this browser"},
		"the provider refuses":  {func(p *openid.Provider) { p.Claims = nil }, "access_denied (no &lt;script&gt;"},
	} {
		t.Run(sentence, func(t *testing.T) {
			b, p := newSite(t, inMemory(), clock, nil)
			test.prepare(p)
			answer := b.enter(p, "/")
			assert.GreaterOrEqual(t, answer.Code, 400)
			assert.Contains(t, answer.Body.String(), test.want)
			assert.Nil(t, b.cookie("__Host-fleet"))
		})
	}
	b, p := newSite(t, inMemory(), clock, nil)
	p.LogIn(now, "jane@example.com")
	begun := b.send(http.MethodPost, "/login", nil)
	callback := p.Answer(t, begun.Header().Get("Location"))
	assert.Equal(t, http.StatusBadRequest, b.get(callback).Code, "another browser's login")
	b.keepCookies(begun)
	assert.Equal(t, http.StatusBadRequest, b.get(strings.Replace(callback, "state=", "state=x", 1)).Code)
	clock.Step(11 * time.Minute)
	assert.Equal(t, http.StatusBadRequest, b.get(callback).Code, "it took too long")
	p.Close()
	assert.Equal(t, http.StatusBadGateway, newAway(t).send(http.MethodPost, "/login", nil).Code, "the provider is away")
}

func numbered(number int) []string {
	var groups []string
	for i := range number {
		groups = append(groups, fmt.Sprintf("fleet-%d", i))
	}
	return groups
}

// newAway is a dashboard whose identity provider does not answer.
func newAway(t *testing.T) *browser {
	t.Helper()
	b, p := newSite(t, inMemory(), testingclock.NewFakeClock(now), nil)
	p.Close()
	return b
}

func TestAUserSeesWhatTheUserMayList(t *testing.T) {
	b, p := newSite(t, inMemory(approvalFleet()...), testingclock.NewFakeClock(now), nil)
	p.LogIn(now, "joe@example.com")
	b.enter(p, "/")
	runs := b.get("/runs").Body.String()
	assert.Contains(t, runs, "nightly", "namespace shop may be looked at")
	assert.NotContains(t, runs, "web-5")
	assert.Contains(t, runs, "You may not list approval requests, approval requests of all namespaces, audit records, bindings, bindings of all namespaces, evictions, exemptions, holds, placements of all namespaces, runs, runs of all namespaces, windows: they are left out.")
	assert.Equal(t, http.StatusNotFound, b.get("/runs/web-5").Code)
	assert.NotContains(t, b.get("/runs/web").Body.String(), "web-5", "no name is near that may not be seen")
	assert.NotContains(t, b.get("/").Body.String(), "payments", "holds are not his to see")
	assert.Contains(t, b.get("/clusters").Body.String(), "member-1")
	assert.Contains(t, b.get("/ns/shop/runs/nightly").Body.String(), "You may not patch stagedupdateruns in namespace shop.")
	forged := b.send(http.MethodPost, "/runs/web-5/stop", url.Values{"uid": {"run-uid"}})
	assert.Equal(t, http.StatusForbidden, forged.Code)
	run := &placementv1beta1.ClusterStagedUpdateRun{}
	require.NoError(t, b.hub.Get(t.Context(), client.ObjectKey{Name: "web-5"}, run))
	assert.Empty(t, run.Spec.State, "nothing was done")
}

// sitePages are the pages that a user can open, and siteForms those that write.
var (
	sitePages = []string{"/", "/waiting", "/placements", "/placements/web", "/placements/web/history", "/placements/web/diff", "/runs", "/runs/web-5", "/runs/web-5/clusters", "/runs/web-5/plan", "/clusters", "/clusters/member-1", "/holds", "/search?q=web", "/me", "/ns/shop/runs/nightly"}
	siteForms = []string{"/runs/web-5/approve", "/runs/web-5/stop", "/runs/web-5/resume", "/runs/web-5/skip", "/runs/web-5/retry", "/runs/web-5/rollback", "/runs/web-5/delete", "/runs/web-5/exempt", "/placements/web/run", "/placements/web/exempt", "/placements/web/evict", "/hold", "/holds/incident/release"}
)

// writeless fails a test when a hub is written to.
func writeless(t testing.TB, hub client.WithWatch) client.WithWatch {
	t.Helper()
	failed := errors.New("a page has written")
	fail := func() error { assert.Fail(t, failed.Error()); return failed }
	return interceptor.NewClient(hub, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if strings.HasSuffix(fmt.Sprintf("%T", object), "Review") {
				return c.Create(ctx, object, options...)
			}
			return fail()
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return fail()
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return fail() },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return fail() },
	})
}

func TestPagesAreForUsersAndWriteNothing(t *testing.T) {
	b, p := newSite(t, writeless(t, inMemory(approvalFleet()...)), testingclock.NewFakeClock(now), nil)
	for _, path := range append(slices.Clone(sitePages), siteForms...) {
		assert.Equal(t, http.StatusSeeOther, b.get(path).Code, path)
	}
	for _, path := range siteForms {
		assert.Equal(t, http.StatusUnauthorized, b.send(http.MethodPost, path, url.Values{"uid": {"run-uid"}}).Code, path)
	}
	p.LogIn(now, "jane@example.com")
	b.enter(p, "/")
	for _, path := range append(slices.Clone(sitePages), siteForms...) {
		answer := b.get(path)
		assert.Equal(t, http.StatusOK, answer.Code, path)
		assert.Equal(t, "no-store", answer.Header().Get("Cache-Control"))
		assert.NotContains(t, answer.Body.String(), b.cookie("__Host-fleet").Value, path)
	}
	for _, path := range append(slices.Clone(siteForms), "/logout", "/login") {
		for header, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
			answer := b.send(http.MethodPost, path, url.Values{"uid": {"run-uid"}}, func(r *http.Request) { r.Header.Set(header, value) })
			assert.Equal(t, http.StatusForbidden, answer.Code, path)
		}
	}
	assert.Equal(t, http.StatusMisdirectedRequest, b.get("/", func(r *http.Request) { r.Host = "evil.example" }).Code)
	assert.Equal(t, http.StatusMisdirectedRequest, b.get("/login", func(r *http.Request) { r.Host = "" }).Code)
}

func TestTokensAreTakenOnlyIfTheyAreAllowed(t *testing.T) {
	clock := testingclock.NewFakeClock(now)
	b, _ := newSite(t, inMemory(approvalFleet()...), clock, nil)
	assert.Equal(t, http.StatusUnauthorized, b.send(http.MethodPost, "/login/token", url.Values{"token": {"good"}}).Code, "there is no such route")
	assert.Empty(t, b.cookies)

	b, _ = newSite(t, inMemory(approvalFleet()...), clock, func(_ *web.Server, access *login.SignedIn) {
		access.Provider = nil
		access.Tokens = func(_ context.Context, token string) (session.Identity, error) {
			if token != "good" {
				return session.Identity{}, errors.New("who is this")
			}
			return session.Identity{User: "system:serviceaccount:ops:bot", Groups: []string{"system:serviceaccounts"}, Token: token, Expires: clock.Now().Add(time.Minute)}, nil
		}
	})
	for _, token := range []string{"", "bad", strings.Repeat("x", 9<<10)} {
		answer := b.send(http.MethodPost, "/login/token", url.Values{"token": {token}})
		assert.GreaterOrEqual(t, answer.Code, 400)
		assert.Empty(t, answer.Result().Cookies())
	}
	entered := b.send(http.MethodPost, "/login/token", url.Values{"token": {" good\n"}, "next": {"//evil.example"}})
	require.Equal(t, http.StatusSeeOther, entered.Code, entered.Body.String())
	assert.Equal(t, "/", entered.Header().Get("Location"))
	b.keepCookies(entered)
	assert.Contains(t, b.get("/me").Body.String(), "system:serviceaccount:ops:bot")
	assert.NotContains(t, b.log.String()+b.get("/me").Body.String()+b.cookies[0].Value, "good")
	clock.Step(2 * time.Minute)
	assert.Equal(t, "/login?next=%2F", b.get("/").Header().Get("Location"))
}

func TestAnyoneMayLookWhereThatIsAllowedAndNoRouteWrites(t *testing.T) {
	hub := writeless(t, inMemory(approvalFleet()...))
	clock := testingclock.NewFakeClock(now)
	b, _ := newSite(t, hub, clock, func(server *web.Server, _ *login.SignedIn) {
		person := personOn(hub, clock, session.Identity{User: "jane@example.com"})
		person.Writes = nil
		server.ReadOnly = true
		server.Access = &login.Anyone{Person: person, Host: served}
	})
	for _, path := range sitePages {
		page := b.get(path)
		assert.Equal(t, http.StatusOK, page.Code, path)
		assert.NotContains(t, page.Body.String(), `method="post"`, path)
		assert.NotRegexp(t, `<a class="button"[^>]*(approve|stop|resume|skip|retry|evict|hold)`, page.Body.String(), path)
	}
	for _, path := range append(slices.Clone(siteForms), sitePages...) {
		assert.GreaterOrEqual(t, b.send(http.MethodPost, path, url.Values{"uid": {"run-uid"}, "reason": {"x"}}).Code, 400, path)
	}
	holds := &fleetflowv1alpha1.RolloutHoldList{}
	require.NoError(t, b.hub.List(t.Context(), holds))
	assert.Len(t, holds.Items, 1)
}

func TestAStreamEndsWithItsSession(t *testing.T) {
	const lasts = 300 * time.Millisecond
	b, p := newSite(t, inMemory(approvalFleet()...), clock.RealClock{}, func(_ *web.Server, access *login.SignedIn) { access.Provider.Lasts = lasts })
	p.LogIn(time.Now(), "jane@example.com")
	b.enter(p, "/")
	answer := b.get("/live?page=/runs/web-5") // returns when the stream ends
	assert.Equal(t, http.StatusOK, answer.Code)
	frames := bytes.Split(bytes.TrimSpace(answer.Body.Bytes()), []byte("\n\n"))
	assert.Contains(t, string(frames[len(frames)-1]), "Your session is over. Reload the page to go on")
}

func TestTransportIsHeldToTLSWhereItEnds(t *testing.T) {
	b, _ := newSite(t, inMemory(), testingclock.NewFakeClock(now), func(server *web.Server, _ *login.SignedIn) { server.TLS = true })
	assert.Equal(t, "max-age=31536000", b.get("/login").Header().Get("Strict-Transport-Security"))
	b, _ = newSite(t, inMemory(), testingclock.NewFakeClock(now), nil)
	assert.Empty(t, b.get("/login").Header().Get("Strict-Transport-Security"))
	_, err := io.ReadAll(b.get("/static/app.css").Result().Body)
	require.NoError(t, err)
}

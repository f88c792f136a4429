//go:build integration

package security

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/fixture/openid"
)

// visitor is a user whom the provider of the dashboard knows, and who may look at the fleet.
const visitor = "alice@example.com"

// dashboard is the program that serves pages to several users. Its account may act as anyone, so that nothing but the dashboard keeps its
// users from that, and it speaks HTTP/1.1 with the hub, where headers are trimmed on the way.
type dashboard struct {
	base     string
	provider *openid.Provider
}

func TestDashboard(t *testing.T) {
	d := startDashboard(t)
	attempt(t, attacks{
		"a user of the provider has a name, or a group, that is another one on its way to the hub": d.namesStayThemselves,
		"an approver writes a formula for those who open a history in a spreadsheet":               d.historyHasNoFormulas,
		"a thief of a cookie of the dashboard goes on after the user has logged out":               d.logoutEndsTheSession,
		"a thief of a cookie with a token goes on after the account is deleted":                    d.deletedAccountsReadNothing,
		"a user without a session lists the files of the dashboard, or reads its pages":            d.nothingIsListed,
	})
}

func startDashboard(t *testing.T) *dashboard {
	t.Helper()
	keys := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(keys, "key"), []byte(strings.Repeat("k", 32)), 0o600))
	d := &dashboard{base: "http://" + target.Address(controlplane.Dashboard), provider: openid.New(t)}
	log, err := os.Create(target.LogFile("fleet-dashboard"))
	require.NoError(t, err)
	health := target.Address("traffic") // of a program that this fleet does not start
	program := exec.CommandContext(t.Context(), target.Binary("fleet-dashboard"), "--kubeconfig", target.Kubeconfig(), "--url", d.base, "--insecure-cookies",
		"--bind-address", target.Address(controlplane.Dashboard), "--health-probe-bind-address", health, "--session-keys", keys, "--allow-tokens",
		"--oidc-issuer-url", d.provider.URL, "--oidc-client-id", "fleet", "--oidc-username-claim", "email")
	program.Env = append(os.Environ(), "DISABLE_HTTP2=true")
	program.Stdout = log
	program.Stderr = log
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		_ = program.Wait() // the end of the test has killed it
		require.NoError(t, log.Close())
	})
	require.Eventually(t, func() bool {
		answer, err := http.Get("http://" + health + "/readyz") //nolint:noctx // it answers at once
		if err != nil {
			return false
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	}, patience, probeEvery, "the dashboard is not ready; its log is in %s", log.Name())
	return d
}

// ask asks for a page as it is, with cookies, and returns the answer and its content.
func (d *dashboard) ask(s *spec, method, path string, form url.Values, cookies ...*http.Cookie) (*http.Response, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, d.base+path, strings.NewReader(form.Encode()))
	require.NoError(s, err)
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, cookie := range cookies {
		request.AddCookie(cookie)
	}
	once := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := once.Do(request)
	require.NoError(s, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	return answer, string(content)
}

// logIn has a user log in at the provider, and returns what the dashboard says then, and the session; nil if there is none.
func (d *dashboard) logIn(s *spec, user string, groups ...string) (status int, page string, session *http.Cookie) {
	s.Helper()
	d.provider.LogIn(time.Now(), user, groups...)
	return d.comeBack(s)
}

// comeBack goes to the provider, and from there to the dashboard.
func (d *dashboard) comeBack(s *spec) (status int, page string, session *http.Cookie) {
	s.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(s, err)
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, d.base+"/login", strings.NewReader("next=/me"))
	require.NoError(s, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := (&http.Client{Jar: jar}).Do(request)
	require.NoError(s, err)
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	for _, cookie := range jar.Cookies(answer.Request.URL) {
		if cookie.Name == "fleet" {
			session = cookie
		}
	}
	return answer.StatusCode, string(content), session
}

// letIn logs a user in.
func (d *dashboard) letIn(s *spec, user string) *http.Cookie {
	s.Helper()
	status, page, session := d.logIn(s, user)
	require.Equal(s, http.StatusOK, status, page)
	require.Contains(s, page, user)
	require.NotNil(s, session)
	return session
}

// namesStayThemselves has users log in whose names or groups are those of others once headers are trimmed, or of Kubernetes.
func (d *dashboard) namesStayThemselves(s *spec) {
	d.letIn(s, visitor)
	for _, name := range []string{
		" " + visitor, visitor + " ", "\t" + visitor, visitor + "\u00a0", visitor + "\u0085", visitor + "\r\nImpersonate-Group: system:masters", visitor + "\u200b", "system:admin", " ",
	} {
		status, page, session := d.logIn(s, name)
		assert.Equal(s, http.StatusForbidden, status, "%q: %s", name, page)
		assert.Nil(s, session, "%q", name)
	}
	for _, group := range []string{"system:masters", " system:masters", "system:masters\t", "\vsystem:masters", "kubeadm:cluster-admins", "platform\r\nsystem:masters"} {
		status, page, session := d.logIn(s, visitor, "platform", group)
		assert.Equal(s, http.StatusForbidden, status, "group %q: %s", group, page)
		assert.Nil(s, session, "group %q", group)
	}
}

// formula is what a spreadsheet carries out at the beginning of a cell, if no apostrophe makes it text.
var formula = regexp.MustCompile(`(^|[,;|\t\n])["\s]*[=+@＝＋＠-]`)

// historyHasNoFormulas has approvals say what would be a formula in a cell, or in a cell of its own where another character ends one.
func (d *dashboard) historyHasNoFormulas(s *spec) {
	const reader = "beth@example.com"
	s.create(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: attackers-reader}, rules: [
		{apiGroups: [placement.kubernetes-fleet.io, cluster.kubernetes-fleet.io, fleetflow.io], resources: ["*"], verbs: [get, list, watch]}]}`)
	s.create(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: attackers-reader},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: attackers-reader}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + reader + `}]}`)
	require.Eventually(s, func() bool { // the dashboard keeps a refusal for a minute
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: reader, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: placementv1beta1.GroupVersion.Group, Resource: "clusterresourceplacements", Verb: "list"},
		}}
		return s.hub.Create(s.Context(), review) == nil && review.Status.Allowed
	}, patience, probeEvery)
	session := d.letIn(s, reader)
	for run, comment := range map[string]string{
		"sheet-cell":   `=HYPERLINK("https://evil.example")`,
		"sheet-inside": "lgtm;=HYPERLINK(1)\t@HYPERLINK(2)|+HYPERLINK(3)\n=HYPERLINK(4); ＝HYPERLINK(5)",
		"sheet-hidden": "\u200b\x01 =HYPERLINK(1)",
	} {
		s.startRun(run)
		s.awaitRequest(run, madeByARun)
		_, err := patches(fmt.Sprintf(ofFleet, "ClusterApprovalRequest", run+"-staging"),
			fmt.Sprintf(`{status: {conditions: [{type: Approved, status: "True", reason: lgtm, message: %q, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, comment), "status")(s.Context(), approver.session(s))
		require.NoError(s, err)
		var sheet string
		require.Eventually(s, func() bool {
			_, sheet = d.ask(s, http.MethodGet, "/placements/"+run+"/history?format=csv", nil, session)
			return strings.Contains(sheet, "HYPERLINK")
		}, patience, probeEvery, "the history has the comment")
		rows, err := csv.NewReader(strings.NewReader(sheet)).ReadAll()
		require.NoError(s, err)
		for _, row := range rows {
			for _, cell := range row {
				assert.NotRegexp(s, formula, cell)
			}
		}
	}
}

// logoutEndsTheSession copies a cookie, and uses it after its user has logged out; other cookies are made up, or of a login that is over.
func (d *dashboard) logoutEndsTheSession(s *spec) {
	session := d.letIn(s, visitor)
	answer, _ := d.ask(s, http.MethodGet, "/me", nil, session)
	require.Equal(s, http.StatusOK, answer.StatusCode)
	answer, _ = d.ask(s, http.MethodPost, "/logout", url.Values{}, session)
	require.Equal(s, http.StatusSeeOther, answer.StatusCode)
	forged := *d.letIn(s, visitor)
	forged.Value = forged.Value[:len(forged.Value)-4] + "AAAA"
	for _, cookie := range []*http.Cookie{session, &forged, {Name: "fleet", Value: "e30"}} {
		d.turnedAway(s, cookie)
	}
	d.provider.LogIn(time.Now().Add(-time.Hour), visitor) // its ID token is over
	status, page, over := d.comeBack(s)
	assert.NotEqual(s, http.StatusOK, status, page)
	assert.Nil(s, over)
}

// turnedAway asserts that pages, streams and forms are not for who has these cookies.
func (d *dashboard) turnedAway(s *spec, cookies ...*http.Cookie) {
	s.Helper()
	for _, path := range []string{"/", "/me", "/runs", "/clusters", "/holds", "/waiting", "/search?q=shop", "/placements/shop", "/placements/shop/history?format=csv", "/runs/gated/plan"} {
		answer, page := d.ask(s, http.MethodGet, path, nil, cookies...)
		assert.Equal(s, http.StatusSeeOther, answer.StatusCode, path)
		assert.NotContains(s, page, "member-1", path)
	}
	answer, _ := d.ask(s, http.MethodGet, "/live?page=/runs", nil, cookies...)
	assert.Equal(s, http.StatusUnauthorized, answer.StatusCode)
	answer, _ = d.ask(s, http.MethodPost, "/runs/gated/approve", url.Values{"comment": {"lgtm"}}, cookies...)
	assert.Equal(s, http.StatusUnauthorized, answer.StatusCode)
	s.requireGated()
}

// deletedAccountsReadNothing logs in with the token of an account that is deleted before a page is asked for.
func (d *dashboard) deletedAccountsReadNothing(s *spec) {
	stays, _ := d.logInByToken(s, "stays")
	answer, _ := d.ask(s, http.MethodGet, "/me", nil, stays)
	require.Equal(s, http.StatusOK, answer.StatusCode)
	goes, token := d.logInByToken(s, "goes")
	require.NoError(s, s.hub.Delete(s.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: attackersNamespace, Name: "goes"}}))
	admin, err := controlplane.RESTConfig(s.Fleet, state.Hub)
	require.NoError(s, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token
	asThat, err := client.New(config, client.Options{Scheme: controlplane.Scheme(), Mapper: s.hub.RESTMapper()})
	require.NoError(s, err)
	require.Eventually(s, func() bool { // once the API server has forgotten that it knew the token
		return apierrors.IsUnauthorized(asThat.Create(s.Context(), &authenticationv1.SelfSubjectReview{}))
	}, patience, probeEvery)
	d.turnedAway(s, goes)
	answer, _ = d.ask(s, http.MethodPost, "/login/token", url.Values{"token": {token}}, goes)
	assert.Equal(s, http.StatusForbidden, answer.StatusCode)
	answer, _ = d.ask(s, http.MethodGet, "/me", nil, stays)
	assert.Equal(s, http.StatusOK, answer.StatusCode, "another goes on")
}

// logInByToken makes an account for the time of the spec, and logs in with a token of it.
func (d *dashboard) logInByToken(s *spec, name string) (session *http.Cookie, token string) {
	s.Helper()
	if err := s.hub.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attackersNamespace}}); err != nil {
		require.True(s, apierrors.IsAlreadyExists(err), "%v", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: attackersNamespace, Name: name}}
	require.NoError(s, s.hub.Create(s.Context(), account))
	s.Cleanup(func() {
		require.NoError(s, client.IgnoreNotFound(s.hub.Delete(context.WithoutCancel(s.Context()), account)))
	})
	request := &authenticationv1.TokenRequest{}
	require.NoError(s, s.hub.SubResource("token").Create(s.Context(), account.DeepCopy(), request))
	answer, page := d.ask(s, http.MethodPost, "/login/token", url.Values{"token": {request.Status.Token}})
	require.Equal(s, http.StatusSeeOther, answer.StatusCode, page)
	for _, cookie := range answer.Cookies() {
		if cookie.Name == "fleet" {
			session = cookie
		}
	}
	require.NotNil(s, session)
	return session, request.Status.Token
}

// nothingIsListed asks for folders, in all the ways in which one can be written.
func (d *dashboard) nothingIsListed(s *spec) {
	answer, page := d.ask(s, http.MethodGet, "/login", nil)
	require.Equal(s, http.StatusOK, answer.StatusCode)
	file := regexp.MustCompile(`/static/[^"]+\.css`).FindString(page)
	require.NotEmpty(s, file, page)
	answer, _ = d.ask(s, http.MethodGet, file, nil)
	require.Equal(s, http.StatusOK, answer.StatusCode, "files that the login needs are there")
	for _, path := range []string{
		"/static", "/static/", "/static/vendor", "/static/vendor/", "/static/vendor/?C=M;O=D", "/static//", "/static/./", "/static/%2e", "/static/%2e/", "/static/vendor/..", "/static/vendor/%2e%2e/",
		"/static/%2f", "/static/vendor%2f", "/static/.", "/static/index.html",
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			answer, page := d.ask(s, method, path, nil)
			assert.NotEqual(s, http.StatusOK, answer.StatusCode, "%s %s", method, path)
			assert.NotRegexp(s, `<pre>|\.(js|css)"`, page, "%s %s", method, path)
		}
	}
	d.turnedAway(s)
}

//go:build integration

package charts

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const placementAPI = "placement.kubernetes-fleet.io/v1beta1"

// TestInstalledDashboardActsAsItsUsers has users log in at the dashboard of the chart: one who may approve, one who may look,
// one who may do nothing. What the dashboard's account itself may do is tried beside it.
func TestInstalledDashboardActsAsItsUsers(t *testing.T) {
	f := bringUp(t)
	hub := f.cluster(t, "hub")
	hub.install(t, "hub-agent", values{"temporal": values{"address": f.temporal}, "workers": values{"enabled": true}})
	p := newProvider(t)
	port := freePort(t)
	given := values{
		"url": "http://127.0.0.1:" + port, "insecureCookies": true, "tokens": values{"enabled": false}, "impersonation": "constrained",
		"oidc": values{"issuerURL": p.URL, "clientID": "fleet", "usernameClaim": "email", "groups": []any{"team-web"}},
	}
	installed := hub.install(t, dashboardChart, given)
	require.Len(t, installed, 1)
	dashboard := installed[0]
	dashboard.program, dashboard.health = f.build(t, dashboard.program), "127.0.0.1:"+freePort(t)
	dashboard.args = append(dashboard.args, "--kubeconfig="+hub.kubeconfig(t, dashboard), "--health-probe-bind-address="+dashboard.health, "--bind-address=127.0.0.1:"+port)
	hub.apply(t, manifest(`{apiVersion: v1, kind: Namespace, metadata: {name: fleet-tests}}`))
	for name, subject := range map[string]string{"hub-agent-approver": "{kind: User, name: jane@example.com", "hub-agent-viewer": "{kind: Group, name: team-web", "cluster-admin": "{kind: User, name: root@example.com"} {
		hub.apply(t, manifest(`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: tests-dashboard-`+name+`},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+name+`}, subjects: [`+subject+`, apiGroup: rbac.authorization.k8s.io}]}`))
	}
	for _, run := range []string{"pages-1", "pages-2"} {
		hub.waitingRun(t, run)
	}
	f.start(t, dashboard)
	await(t, "the dashboard has read the fleet", func() bool { return f.answers(t, dashboard, "/readyz") })

	t.Run("who may approve does so, under the own name", func(t *testing.T) {
		jane := enter(t, given["url"].(string), p, "jane@example.com", "team-web", "other")
		_, me := jane.get("/me")
		assert.Contains(t, me, "jane@example.com")
		assert.NotContains(t, me, "other", "the dashboard keeps the groups that it may act as")
		jane.approves("pages-1")
		hub.requireApproved(t, "pages-1", "jane@example.com")
		_, page := jane.get("/runs/pages-2")
		assert.NotContains(t, page, "You may not list", "who may see all misses nothing")
		code, said := jane.send("/runs/pages-2/stop", url.Values{"uid": {jane.field("/runs/pages-2/approve", "uid")}})
		assert.Equal(t, http.StatusForbidden, code)
		assert.Contains(t, said, "The hub does not let you")
	})
	t.Run("who may look is told so", func(t *testing.T) {
		joe := enter(t, given["url"].(string), p, "joe@example.com", "team-web")
		_, page := joe.get("/runs/pages-2")
		assert.Contains(t, page, "waits for approval of pages-2-canary")
		assert.Contains(t, page, "You may not patch clusterapprovalrequests/status.")
		assert.NotContains(t, page, `href="/runs/pages-2/approve`)
		run, err := hub.get(t, placementAPI, "ClusterStagedUpdateRun", "", "pages-2")
		require.NoError(t, err)
		code, said := joe.send("/runs/pages-2/stop", url.Values{"uid": {string(run.GetUID())}})
		assert.Equal(t, http.StatusForbidden, code)
		assert.Contains(t, said, "The hub does not let you")
		assert.Contains(t, said, `User "joe@example.com" cannot patch resource`)
	})
	t.Run("who may do nothing sees nothing", func(t *testing.T) {
		guest := enter(t, given["url"].(string), p, "guest@example.com", "system:masters")
		code, page := guest.get("/runs")
		assert.Equal(t, http.StatusOK, code)
		assert.Contains(t, page, "You may not list")
		assert.NotContains(t, page, "pages-2")
		code, _ = guest.get("/runs/pages-2")
		assert.Equal(t, http.StatusNotFound, code)
		code, said := guest.send("/runs/pages-2/stop", url.Values{"uid": {"guessed"}})
		assert.Equal(t, http.StatusForbidden, code)
		assert.NotContains(t, said, "canary")
	})
	t.Run("its account is no administrator", func(t *testing.T) {
		hub.requireHeldToItsWays(t, dashboard)
	})
	t.Run("a sync leaves the sessions", func(t *testing.T) {
		jane := enter(t, given["url"].(string), p, "jane@example.com", "team-web")
		key := hub.secret(t, namespace, dashboardChart+"-session")["key"]
		require.GreaterOrEqual(t, len(key), 32, "the dashboard has made it")
		hub.install(t, dashboardChart, given)
		assert.Equal(t, key, hub.secret(t, namespace, dashboardChart+"-session")["key"])
		_, me := jane.get("/me")
		assert.Contains(t, me, "jane@example.com")
	})
	t.Run("on a hub before 1.36, too", func(t *testing.T) {
		given["impersonation"] = "legacy"
		hub.install(t, dashboardChart, given)
		jane := enter(t, given["url"].(string), p, "jane@example.com", "team-web")
		jane.approves("pages-2")
		hub.requireApproved(t, "pages-2", "jane@example.com")
	})
}

// waitingRun makes a run that waits for the approval of its stage canary, as the engine would leave it.
func (c *cluster) waitingRun(t *testing.T, name string) {
	t.Helper()
	c.apply(t, manifest(`{apiVersion: `+placementAPI+`, kind: ClusterStagedUpdateRun, metadata: {name: `+name+`}, spec: {placementName: pages, stagedRolloutStrategyName: asks-first}}`))
	c.apply(t, manifest(`{apiVersion: `+placementAPI+`, kind: ClusterApprovalRequest, metadata: {name: `+name+`-canary, labels: {kubernetes-fleet.io/targetupdaterun: `+name+`}},
		spec: {parentStageRollout: `+name+`, targetStage: canary}}`))
	run, err := c.get(t, placementAPI, "ClusterStagedUpdateRun", "", name)
	require.NoError(t, err)
	conditions := func(all ...string) string {
		var texts []string
		for _, one := range all {
			kind, reason, _ := strings.Cut(one, " ")
			texts = append(texts, `{type: `+kind+`, status: "`+map[bool]string{true: "False", false: "True"}[reason == "StageUpdatingWaiting"]+`", reason: `+reason+`, lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 1, message: ""}`)
		}
		return "[" + strings.Join(texts, ", ") + "]"
	}
	run.Object["status"] = manifest(`{
		policySnapshotIndexUsed: "0", policyObservedClusterCount: 2, resourceSnapshotIndexUsed: "0",
		stagedUpdateStrategySnapshot: {stages: [{name: canary, afterStageTasks: [{type: Approval}]}, {name: rest}]},
		conditions: ` + conditions("Initialized UpdateRunInitializedSuccessfully", "Progressing UpdateRunStarted") + `,
		stagesStatus: [
			{stageName: canary, startTime: "2026-01-01T00:00:00Z", conditions: ` + conditions("Progressing StageUpdatingWaiting") + `,
				clusters: [{clusterName: one, conditions: ` + conditions("Started ClusterUpdatingStarted", "Succeeded ClusterUpdatingSucceeded") + `}],
				afterStageTaskStatus: [{type: Approval, approvalRequestName: ` + name + `-canary, conditions: ` + conditions("ApprovalRequestCreated StageTaskApprovalRequestCreated") + `}]},
			{stageName: rest, clusters: [{clusterName: two}]}],
		deletionStageStatus: {stageName: kubernetes-fleet.io/deleteStage}}`).Object
	_, err = c.resource(t, run.GroupVersionKind(), "").UpdateStatus(t.Context(), run, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
}

func (c *cluster) requireApproved(t *testing.T, run, by string) {
	t.Helper()
	request, err := c.get(t, placementAPI, "ClusterApprovalRequest", "", run+"-canary")
	require.NoError(t, err)
	record, _, err := unstructured.NestedMap(request.Object, "status", "approval")
	require.NoError(t, err)
	delete(record, "at")
	require.Equal(t, map[string]any{"username": by, "channel": "Dashboard", "verified": true, "comment": "looks good"}, record)
}

// requireHeldToItsWays has the account of the dashboard try what it must never do, as itself and as others.
func (c *cluster) requireHeldToItsWays(t *testing.T, dashboard *agent) {
	t.Helper()
	namespace, account, _ := strings.Cut(dashboard.account, "/")
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	channel := map[string][]string{"fleetflow.io/channel": {"Dashboard"}}
	for name, who := range map[string]rest.ImpersonationConfig{
		"itself":                       {},
		"an administrator by a group":  {UserName: "joe@example.com", Groups: []string{"system:masters"}, Extra: channel},
		"an administrator by the name": {UserName: "root@example.com", Extra: channel},
		"an agent":                     {UserName: "system:serviceaccount:fleet-system:hub-agent", Extra: channel},
		"a group that is not named":    {UserName: "root@example.com", Groups: []string{"team-db"}, Extra: channel},
		"a user at another channel":    {UserName: "root@example.com", Extra: map[string][]string{"fleetflow.io/channel": {"Kubectl"}}},
	} {
		config := rest.AnonymousClientConfig(c.config)
		config.BearerToken = token.Status.Token
		config.Impersonate = who
		core, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = core.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s reads Secrets: %v", name, err)
		objects, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		placements := schema.GroupVersionResource{Group: "placement.kubernetes-fleet.io", Version: "v1beta1", Resource: "clusterresourceplacements"}
		err = objects.Resource(placements).Delete(t.Context(), "none", metav1.DeleteOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s deletes a placement: %v", name, err)
	}
}

// visitor is a user with a browser at a dashboard.
type visitor struct {
	t    *testing.T
	base string
	http *http.Client
}

// enter has a user log in.
func enter(t *testing.T, base string, p *provider, name string, groups ...string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	v := &visitor{t: t, base: base, http: &http.Client{Jar: jar}}
	code, page := v.get("/runs")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, page, "Log in to hub")
	p.has(name, groups...)
	code, page = v.send("/login", url.Values{"next": {"/me"}})
	require.Equal(t, http.StatusOK, code, page)
	require.Contains(t, page, name)
	return v
}

func (v *visitor) get(path string) (code int, page string) {
	v.t.Helper()
	answer, err := v.http.Get(v.base + path)
	return v.read(answer, err)
}

func (v *visitor) send(path string, form url.Values) (code int, page string) {
	v.t.Helper()
	answer, err := v.http.PostForm(v.base+path, form)
	return v.read(answer, err)
}

func (v *visitor) read(answer *http.Response, err error) (code int, page string) {
	v.t.Helper()
	require.NoError(v.t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	require.NoError(v.t, err)
	return answer.StatusCode, html.UnescapeString(string(body))
}

// field is what a form has in one of its fields.
func (v *visitor) field(path, name string) string {
	v.t.Helper()
	_, page := v.get(path)
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	require.NotNil(v.t, found, page)
	return found[1]
}

// approves sends the form of an approval.
func (v *visitor) approves(run string) {
	v.t.Helper()
	path := "/runs/" + run + "/approve"
	form := url.Values{"stage": {"canary"}, "comment": {"looks good"}}
	for _, name := range []string{"uid", "plan", "changes", "key"} {
		form.Set(name, v.field(path, name))
	}
	code, page := v.send(path, form)
	require.Equal(v.t, http.StatusOK, code, page)
	require.Contains(v.t, page, "stage canary of run/"+run+" approved")
}

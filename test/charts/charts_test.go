// Package charts renders the Helm charts with Helm's own engine and checks what comes out. It is a module of its own so
// that the product does not depend on Helm.
package charts

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	root      = "../.."
	release   = "agent"
	namespace = "fleet-system"
)

// agentLeases are those of a hub agent of ours, and of KubeFleet's.
var agentLeases = []string{"hub-agent.fleetflow.io", "136224848560.hub.fleet.azure.com"}

// required are the values that each chart cannot do without.
func required() map[string]map[string]any {
	return map[string]map[string]any{
		"hub-agent":       {"temporal": map[string]any{"address": "temporal.example.com:7233"}},
		"member-agent":    {"config": map[string]any{"hubURL": "https://hub.example.com", "memberClusterName": "member-1"}},
		"fleet-dashboard": {"url": "https://fleet.example.com", "tokens": map[string]any{"enabled": true}},
	}
}

// render returns what a chart makes of values, file by file.
func render(t *testing.T, name string, values map[string]any) (map[string]string, error) {
	t.Helper()
	return renderInto(t, name, namespace, values)
}

// renderInto renders a chart as a release in a namespace.
func renderInto(t *testing.T, name, namespace string, values map[string]any) (map[string]string, error) {
	t.Helper()
	return renderAs(t, release, name, namespace, values)
}

// renderAs renders a chart as a release of a name in a namespace.
func renderAs(t *testing.T, release, name, namespace string, values map[string]any) (map[string]string, error) {
	t.Helper()
	chart, err := loader.Load(path.Join(root, "deploy", "charts", name))
	require.NoError(t, err)
	require.NoError(t, chart.Validate())
	options := common.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true, Revision: 1}
	all, err := util.ToRenderValues(chart, values, options, everything())
	if err != nil {
		return nil, err
	}
	strict := engine.Engine{Strict: true}
	return strict.Render(chart, all)
}

// everything is what a cluster of the newest version has that charts ask for.
func everything() *common.Capabilities {
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions),
		"admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy")
	return capabilities
}

// objects decodes what was rendered; a field that does not exist fails.
func objects(t *testing.T, rendered map[string]string) []runtime.Object {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var decoded []runtime.Object
	for file, text := range rendered {
		if path.Ext(file) != ".yaml" || strings.TrimSpace(text) == "" {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue // what comes first may be left out
			}
			object, _, err := decoder.Decode([]byte(document), nil, nil)
			if runtime.IsNotRegisteredError(err) { // such as the Prometheus operator's
				object, _, err = unstructured.UnstructuredJSONScheme.Decode(toJSON(t, document), nil, nil)
			}
			require.NoError(t, err, "%s:\n%s", file, document)
			decoded = append(decoded, object)
		}
	}
	return decoded
}

func toJSON(t *testing.T, document string) []byte {
	t.Helper()
	content, err := yaml.ToJSON([]byte(document))
	require.NoError(t, err)
	return content
}

// only returns the one object of a type.
func only[T runtime.Object](t *testing.T, all []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range all {
		if typed, ok := object.(T); ok {
			found = append(found, typed)
		}
	}
	require.Len(t, found, 1)
	return found[0]
}

// named returns the object of a type and a name.
func named[T interface {
	runtime.Object
	GetName() string
}](t *testing.T, all []runtime.Object, name string) T {
	t.Helper()
	for _, object := range all {
		if typed, ok := object.(T); ok && typed.GetName() == name {
			return typed
		}
	}
	require.Fail(t, "there is no "+name)
	panic("unreachable")
}

// TestChartsRenderTheSameEachTime renders as Argo CD does, which has no cluster to look anything up in: what differs from one time to the
// next would be changed by every sync.
func TestChartsRenderTheSameEachTime(t *testing.T) {
	for name, values := range required() {
		t.Run(name, func(t *testing.T) {
			once, err := render(t, name, values)
			require.NoError(t, err)
			again, err := render(t, name, values)
			require.NoError(t, err)
			assert.Equal(t, once, again)
		})
	}
}

func TestChartsRenderValidObjects(t *testing.T) {
	for name, values := range required() {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, name, values)
			require.NoError(t, err)
			all := objects(t, rendered)
			deployment := only[*appsv1.Deployment](t, all)
			assert.Equal(t, deployment.Spec.Selector.MatchLabels, intersection(deployment.Spec.Selector.MatchLabels, deployment.Spec.Template.Labels))
			for _, object := range all {
				accessor, err := meta.Accessor(object)
				require.NoError(t, err)
				if accessor.GetNamespace() != metav1.NamespacePublic { // there every user knows it by its name
					assert.Contains(t, accessor.GetName(), release)
				}
				assert.Contains(t, []string{name, name + "-test"}, accessor.GetLabels()["app.kubernetes.io/name"], "%T", object)
			}
			role := named[*rbacv1.ClusterRole](t, all, release)
			binding := named[*rbacv1.ClusterRoleBinding](t, all, release)
			assert.Equal(t, role.Name, binding.RoleRef.Name)
			assert.Equal(t, deployment.Spec.Template.Spec.ServiceAccountName, binding.Subjects[0].Name)
			assert.Equal(t, namespace, binding.Subjects[0].Namespace)
		})
	}
}

func intersection(a, b map[string]string) map[string]string {
	both := map[string]string{}
	for key, value := range a {
		if b[key] == value {
			both[key] = value
		}
	}
	return both
}

func TestChartsSayWhichValueIsMissing(t *testing.T) {
	missing := map[string]string{
		"member-agent":    "config.hubURL is required",
		"fleet-dashboard": "url is required",
	}
	for name, message := range missing {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, name, nil)
			assert.ErrorContains(t, err, message)
		})
	}
	_, err := render(t, "hub-agent", nil)
	assert.NoError(t, err, "it needs none")
}

// flagLine is how Go's flag package prints a flag.
var flagLine = regexp.MustCompile(`(?m)^\s+-([\w-]+)`)

func TestChartsUseFlagsThatExist(t *testing.T) {
	for name, values := range required() {
		t.Run(name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "go", "run", "./cmd/"+name, "--help")
			command.Dir = root
			output, _ := command.CombinedOutput() // help may or may not count as success
			var known []string
			for _, match := range flagLine.FindAllStringSubmatch(string(output), -1) {
				known = append(known, match[1])
			}
			require.Contains(t, known, "log-format", "%s", output)
			rendered, err := render(t, name, values)
			require.NoError(t, err)
			container := only[*appsv1.Deployment](t, objects(t, rendered)).Spec.Template.Spec.Containers[0]
			require.NotEmpty(t, container.Args)
			for _, arg := range container.Args {
				flag, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
				assert.Contains(t, known, flag)
			}
		})
	}
}

func TestHubAgentWritesOnlyWhatIsTheFleets(t *testing.T) {
	rendered, err := render(t, "hub-agent", required()["hub-agent"])
	require.NoError(t, err)
	reading := []string{"get", "list", "watch"}
	for _, rule := range named[*rbacv1.ClusterRole](t, objects(t, rendered), release).Rules {
		if slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
			assert.Equal(t, reading, rule.Verbs)
		}
		assert.NotContains(t, rule.Verbs, "*")
		assert.NotContains(t, rule.Verbs, "escalate")
		assert.NotContains(t, rule.Verbs, "bind")
	}
}

func TestMemberAgentActsAsNobodyElse(t *testing.T) {
	rules := named[*rbacv1.ClusterRole](t, must(t, "member-agent", nil), release).Rules
	for _, rule := range rules {
		assert.NotContains(t, rule.Verbs, "*")
		assert.NotContains(t, rule.Verbs, "impersonate")
		assert.NotContains(t, rule.NonResourceURLs, "*")
	}
	assert.Equal(t, []string{"get", "list", "watch", "create", "update", "patch", "delete"}, rules[0].Verbs)
}

func TestTheVetoOfTheClustersOwnerReachesTheAgent(t *testing.T) {
	args := func(additional values) []string {
		return only[*appsv1.Deployment](t, must(t, "member-agent", additional)).Spec.Template.Spec.Containers[0].Args
	}
	given := args(nil)
	assert.Contains(t, given, "--denied-namespaces="+namespace, "nobody places anything beside the agent")
	assert.NotContains(t, strings.Join(given, " "), "-kinds")

	given = args(values{
		"secret": values{"namespace": "tokens"},
		"veto":   values{"allowedKinds": []any{"*"}, "deniedKinds": []any{"*.rbac.authorization.k8s.io", "Secret"}, "deniedNamespaces": []any{"istio-*"}},
	})
	assert.Contains(t, given, "--allowed-kinds=*")
	assert.Contains(t, given, "--denied-kinds=*.rbac.authorization.k8s.io,Secret")
	assert.Contains(t, given, "--denied-namespaces="+namespace+",tokens,istio-*")

	_, err := with(t, "member-agent", values{"veto": values{"deniedKinds": []any{"Secret,ConfigMap"}}})
	assert.ErrorContains(t, err, "deniedKinds")
}

func TestWhatTheHubMayChangeOfTheAgentReachesTheAgent(t *testing.T) {
	rendered := func(additional values) (args []string, role *rbacv1.Role) {
		objects := must(t, "member-agent", additional)
		for _, object := range objects {
			if found, is := object.(*rbacv1.Role); is && found.Name == release+"-self-update" {
				role = found
			}
		}
		return only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args, role
	}
	given, role := rendered(values{"image": values{"repository": "registry.example.com:5000/agents/member-agent", "tag": "v1"}})
	assert.Contains(t, given, "--pod="+namespace+"/$(POD_NAME)")
	assert.Contains(t, given, "--self-update-deployment="+release)
	assert.Contains(t, given, "--self-update-repositories=registry.example.com:5000/agents/member-agent")
	assert.NotContains(t, strings.Join(given, " "), "--self-update-hub-addresses")
	require.NotNil(t, role)
	assert.Equal(t, []rbacv1.PolicyRule{
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{release}, Verbs: []string{"get", "patch"}},
	}, role.Rules)

	digest := "sha256:" + strings.Repeat("0", 64)
	given, _ = rendered(values{
		"image": values{"digest": digest}, "global": values{"imageRegistry": "mirror.example.com"},
		"selfUpdate": values{"hubURLs": []any{"https://a:6443", "https://b:6443"}, "timeout": "20m"},
	})
	assert.Contains(t, given, "--self-update-repositories=mirror.example.com/fleetflow/member-agent")
	assert.Contains(t, given, "--self-update-hub-addresses=https://a:6443,https://b:6443")
	assert.Contains(t, given, "--self-update-timeout=20m")

	given, _ = rendered(values{"selfUpdate": values{"repositories": []any{"a/b", "c/d"}}})
	assert.Contains(t, given, "--self-update-repositories=a/b,c/d")

	given, role = rendered(values{"selfUpdate": values{"enabled": false}})
	assert.NotContains(t, strings.Join(given, " "), "--self-update")
	assert.Nil(t, role)

	_, err := with(t, "member-agent", values{"selfUpdate": values{"hubURLs": []any{"http://a"}}})
	assert.ErrorContains(t, err, "hubURLs")
}

// Acceptance N1, as far as rights go.
func TestAMemberAgentForSomeNamespacesHasRightsThereOnly(t *testing.T) {
	objects := must(t, "member-agent", values{"scope": "Namespaced", "namespaces": []any{"team-a", "team-b"}, "secret": values{"namespace": "tokens"}})
	args := only[*appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args
	assert.Contains(t, args, "--scope=Namespaced")
	assert.Contains(t, args, "--namespaces=team-a,team-b")
	for _, rule := range named[*rbacv1.ClusterRole](t, objects, release).Rules {
		if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }) {
			assert.Subset(t, []string{"placement.kubernetes-fleet.io", "authentication.k8s.io", "authorization.k8s.io"}, rule.APIGroups)
		}
		assert.NotContains(t, rule.Resources, "secrets")
	}
	var wide, own []string
	for _, object := range objects {
		role, is := object.(*rbacv1.Role)
		switch {
		case !is, role.Name == release+"-self-update":
		case role.Name == release+"-own":
			own = append(own, role.Namespace)
		default:
			wide = append(wide, role.Namespace)
		}
	}
	assert.Equal(t, []string{"team-a", "team-b"}, wide)
	assert.Equal(t, []string{namespace, "tokens"}, own)
	for _, wrong := range []values{{"scope": "Namespaced"}, {"namespaces": []any{"team-a"}}} {
		_, err := with(t, "member-agent", wrong)
		assert.ErrorContains(t, err, "scope Namespaced and namespaces belong together")
	}
}

func TestTheNamespaceOfTheHubAgentIsNotPlacedWhateverItsName(t *testing.T) {
	all, err := renderInto(t, "hub-agent", "rollouts", required()["hub-agent"])
	require.NoError(t, err)
	assert.Contains(t, only[*appsv1.Deployment](t, objects(t, all)).Spec.Template.Spec.Containers[0].Args, "--skipped-propagating-namespaces=rollouts,connect-to-fleet")
	assert.Equal(t, "rollouts,connect-to-fleet", only[*corev1.ConfigMap](t, objects(t, all)).Data["skippedPropagatingNamespaces"], "kubectl fleet plan knows it, too")
}

func TestRolesForPeopleComeWithTheChartAndGiveNothingAwayThatTheAgentsKeep(t *testing.T) {
	values := required()["hub-agent"]
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	secretive := []string{"works", "clusterresourcesnapshots", "resourcesnapshots", "clusterresourceenvelopes", "resourceenvelopes", "*"}
	for _, suffix := range []string{"viewer", "view", "placer", "runner", "approver", "administrator", "team-placer", "team-runner", "team-approver"} {
		role := named[*rbacv1.ClusterRole](t, objects(t, rendered), release+"-"+suffix)
		aggregated := role.Labels["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
		assert.Equal(t, suffix == "view", aggregated, suffix)
		for _, rule := range role.Rules {
			reads := slices.Contains(rule.Verbs, "list") && slices.ContainsFunc(rule.Resources, func(r string) bool { return slices.Contains(secretive, r) })
			assert.False(t, reads && suffix != "administrator", "%s reads Secrets in clear: %v", suffix, rule)
			for _, more := range []string{"clusterresourceoverrides", "resourceoverrides", "metricsources"} {
				assert.False(t, aggregated && slices.Contains(rule.Resources, more), "Kubernetes' own view leaves out what is in %s", more)
			}
		}
	}
	for _, suffix := range []string{"team-placer", "team-runner", "team-approver"} {
		role := named[*rbacv1.ClusterRole](t, objects(t, rendered), release+"-"+suffix)
		for _, needed := range []string{"stagedupdateruns", "approvalrequests", "resourceplacements", "resourcebindings", "schedulingpolicysnapshots", "stagedupdatestrategies"} {
			assert.True(t, slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Contains(rule.Verbs, "list") && slices.Contains(rule.Resources, needed)
			}), "%s plans and reads histories, and may not read %s", suffix, needed)
		}
	}
	for _, suffix := range []string{"viewer", "view"} {
		rules := named[*rbacv1.ClusterRole](t, objects(t, rendered), release+"-"+suffix).Rules
		at := slices.IndexFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, "leases") })
		require.GreaterOrEqual(t, at, 0)
		assert.ElementsMatch(t, append(slices.Clone(agentLeases), "hub-agent-temporal.fleetflow.io"), rules[at].ResourceNames,
			"%s reads what kubectl fleet check asks for", suffix)
	}
	values["clusterRoles"] = map[string]any{"enabled": false}
	rendered, err = render(t, "hub-agent", values)
	require.NoError(t, err)
	assert.NotContains(t, ofKind(t, objects(t, rendered), "ClusterRole"), release+"-viewer")
}

func TestHubAgentWritesTheStatusOfOriginalsOnlyIfItMay(t *testing.T) {
	values := required()["hub-agent"]
	values["reportBackToOriginals"] = true
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	assert.Contains(t, named[*rbacv1.ClusterRole](t, objects(t, rendered), release).Rules,
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*/status"}, Verbs: []string{"patch"}})
}

func TestApprovalPolicyTellsTheAgentFromPeople(t *testing.T) {
	rendered, err := render(t, "hub-agent", required()["hub-agent"])
	require.NoError(t, err)
	all := objects(t, rendered)
	account := "system:serviceaccount:" + namespace + ":" + only[*appsv1.Deployment](t, all).Spec.Template.Spec.ServiceAccountName
	for _, name := range []string{release + "-approver", release + "-creator"} {
		policy := named[*admissionv1.MutatingAdmissionPolicy](t, all, name)
		assert.Contains(t, policy.Spec.MatchConditions[0].Expression, account)
		assert.NotContains(t, policy.Spec.MatchConditions[0].Expression, "startsWith", "members have their accounts in this namespace, too")
		other := named[*admissionv1.MutatingAdmissionPolicy](t, must(t, "hub-agent", values{"otherAgents": []any{namespace + ":workers"}}), name)
		assert.Contains(t, other.Spec.MatchConditions[0].Expression, `"system:serviceaccount:`+namespace+`:workers"`)
		assert.Equal(t, policy.Name, named[*admissionv1.MutatingAdmissionPolicyBinding](t, all, name).Spec.PolicyName)
	}
}

func TestHubAgentCanBePlaced(t *testing.T) {
	values := required()["hub-agent"]
	values["nodeSelector"] = map[string]any{"disk": "fast"}
	values["tolerations"] = []any{map[string]any{"key": "hub", "operator": "Exists"}}
	values["image"] = map[string]any{"tag": "v1.2.3"}
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	pod := only[*appsv1.Deployment](t, objects(t, rendered)).Spec.Template.Spec
	assert.Equal(t, map[string]string{"disk": "fast"}, pod.NodeSelector)
	assert.Equal(t, "hub", pod.Tolerations[0].Key)
	assert.Equal(t, "ghcr.io/fleetflow/hub-agent:v1.2.3", pod.Containers[0].Image)
}

func TestHubAgentPublishesWhatMayBePlaced(t *testing.T) {
	values := required()["hub-agent"]
	values["skippedPropagatingAPIs"] = "example.com"
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	published := only[*corev1.ConfigMap](t, objects(t, rendered))
	assert.Equal(t, "kube-public/fleetflow-placed", published.Namespace+"/"+published.Name, "where kubectl fleet plan looks")
	assert.Equal(t, "example.com", published.Data["skippedPropagatingAPIs"])
	assert.Equal(t, "any", published.Data["configMapEnvelopes"])
}

// Acceptance N2, as far as rights go.
func TestHubAgentReadsThePlaceableNamespacesOnly(t *testing.T) {
	everything := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.APIGroups, "*") })
	}
	values := required()["hub-agent"]
	rendered, err := render(t, "hub-agent", values)
	require.NoError(t, err)
	assert.True(t, everything(named[*rbacv1.ClusterRole](t, objects(t, rendered), release).Rules))
	assert.NotContains(t, rendered, "placeable")

	values["placeableNamespaces"], values["reportBackToOriginals"] = []any{"team-a", "team-b"}, true
	rendered, err = render(t, "hub-agent", values)
	require.NoError(t, err)
	all := objects(t, rendered)
	assert.Contains(t, only[*appsv1.Deployment](t, all).Spec.Template.Spec.Containers[0].Args, "--placeable-namespaces=team-a,team-b")
	assert.Equal(t, "team-a,team-b", only[*corev1.ConfigMap](t, all).Data["placeableNamespaces"], "kubectl fleet plan knows it, too")
	rules := named[*rbacv1.ClusterRole](t, all, release).Rules
	assert.False(t, everything(rules), "a right to all of the hub")
	for _, rule := range rules {
		assert.NotContains(t, rule.Resources, "secrets")
	}
	var namespaces []string
	for _, object := range all {
		if role, is := object.(*rbacv1.Role); is && role.Name == release+"-placeable" {
			namespaces = append(namespaces, role.Namespace)
			assert.True(t, everything(role.Rules))
		}
	}
	assert.Equal(t, []string{"team-a", "team-b"}, namespaces)

	values["placeableNamespaces"] = []any{"Team"}
	_, err = render(t, "hub-agent", values)
	assert.ErrorContains(t, err, "placeableNamespaces")
}

func TestHubAgentPassesOnWhatMayBePlaced(t *testing.T) {
	args := func(change func(map[string]any)) ([]string, error) {
		values := required()["hub-agent"]
		change(values)
		rendered, err := render(t, "hub-agent", values)
		if err != nil {
			return nil, err
		}
		return only[*appsv1.Deployment](t, objects(t, rendered)).Spec.Template.Spec.Containers[0].Args, nil
	}
	given, err := args(func(map[string]any) {})
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(given, " "), "propagating-apis", "no kind is kept from being placed by default")
	assert.Contains(t, given, "--skipped-propagating-namespaces=connect-to-fleet", "who reads the accounts of members reads all that is placed on them")
	assert.Contains(t, given, "--resource-snapshot-creation-minimum-interval=30s")
	assert.Contains(t, given, "--resource-changes-collection-duration=15s")
	assert.Contains(t, given, "--resource-snapshot-bytes-per-second=2Mi")
	assert.Contains(t, given, "--selection-max-objects=20000")
	assert.Contains(t, given, "--selection-max-bytes=64Mi")
	assert.Contains(t, given, "--enable-workload=false")

	given, err = args(func(values map[string]any) {
		values["skippedPropagatingAPIs"] = "apps/v1/DaemonSet,StatefulSet; example.com"
		values["skippedPropagatingNamespaces"] = "monitoring,ingress"
		values["resourceSnapshotCreationMinimumInterval"] = "0s"
		values["resourceSnapshotBytesPerSecond"] = 0
	})
	require.NoError(t, err)
	assert.Contains(t, given, "--skipped-propagating-apis=apps/v1/DaemonSet,StatefulSet; example.com")
	assert.Contains(t, given, "--skipped-propagating-namespaces=monitoring,ingress,connect-to-fleet")
	assert.Contains(t, given, "--resource-snapshot-creation-minimum-interval=0s")
	assert.Contains(t, given, "--resource-snapshot-bytes-per-second=0")

	given, err = args(func(values map[string]any) { values["allowedPropagatingAPIs"] = "v1/Namespace,ConfigMap" })
	require.NoError(t, err)
	assert.Contains(t, given, "--allowed-propagating-apis=v1/Namespace,ConfigMap")
	_, err = args(func(values map[string]any) {
		values["skippedPropagatingAPIs"], values["allowedPropagatingAPIs"] = "a.example.com", "v1"
	})
	assert.ErrorContains(t, err, "exclude each other")
}

package controlplane

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/state"
	"github.com/fleetflow/fleetflow/test/devfleet/supervisor"
)

func testFleet(t *testing.T, members int) *state.Fleet {
	t.Helper()
	fleet := &state.Fleet{Dir: "/fleet", Members: members, Tools: map[string]string{
		"etcd": "/t/etcd", "kube-apiserver": "/t/kube-apiserver", "kube-controller-manager": "/t/kcm",
		"kube-scheduler": "/t/scheduler", "kwok": "/t/kwok", "temporal": "/t/temporal", "prometheus": "/t/prometheus",
	}}
	var err error
	fleet.Ports, err = state.AssignPorts(fleet.Dir, state.Listeners(members), nil, func(int) bool { return true })
	require.NoError(t, err)
	AddTokens(fleet)
	return fleet
}

func TestComponentsFormAFleetThatCanStart(t *testing.T) {
	fleet := testFleet(t, 3)
	specs := Components(fleet)
	_, err := supervisor.New(fleet.Members, specs)
	require.NoError(t, err, "names are unique and needs come first")
	assert.Len(t, specs, 3+3*5+1+1+3+1+2)

	owners := map[int]string{}
	for _, spec := range specs {
		assert.NotEmpty(t, spec.Command[0], "%s has a program", spec.Name)
		assert.NotContains(t, strings.Join(spec.Command, " "), "0.0.0.0", "%s listens on this machine only", spec.Name)
		for _, port := range spec.Ports {
			assert.NotZero(t, port, "%s has its ports", spec.Name)
			assert.Empty(t, owners[port], "port %d of %s", port, spec.Name)
			owners[port] = spec.Name
		}
	}
	assert.Len(t, owners, len(state.Listeners(fleet.Members)), "every listener belongs to a component")
}

func TestOnlyWhatIsStartedLaterIsHeld(t *testing.T) {
	fleet := testFleet(t, 2)
	var held []string
	for _, spec := range Components(fleet) {
		if spec.Held {
			held = append(held, spec.Name)
		}
	}
	assert.Equal(t, append(AgentNames(fleet), Dashboard, Traffic, Prometheus), held)
}

func TestPrometheusReadsWhatTheFleetServes(t *testing.T) {
	fleet := testFleet(t, 2)
	fleet.Dir = t.TempDir()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	require.NoError(t, WritePrometheusConfig(fleet, root))
	content, err := os.ReadFile(prometheusConfig(fleet))
	require.NoError(t, err)
	var config struct {
		RuleFiles     []string `json:"rule_files"`
		ScrapeConfigs []struct {
			Job    string `json:"job_name"`
			Static []struct {
				Targets []string          `json:"targets"`
				Labels  map[string]string `json:"labels"`
			} `json:"static_configs"`
			Files []struct {
				Files []string `json:"files"`
			} `json:"file_sd_configs"`
		} `json:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(content, &config))
	require.Len(t, config.RuleFiles, 2)
	for _, rules := range config.RuleFiles {
		assert.FileExists(t, rules)
	}
	read := map[string]string{}
	for _, job := range config.ScrapeConfigs {
		for _, static := range job.Static {
			read[job.Job+" "+static.Labels["cluster"]] = strings.Join(static.Targets, ",")
		}
		for _, further := range job.Files {
			assert.DirExists(t, filepath.Dir(further.Files[0]), "a guide adds a file here")
		}
	}
	assert.Equal(t, map[string]string{
		"hub-agent hub": fleet.Address("hub-agent/metrics"), "temporal hub": fleet.Address("temporal/metrics"), "traffic ": fleet.Address("traffic"),
		"member-agent member-1": fleet.Address("member-1/agent/metrics"), "member-agent member-2": fleet.Address("member-2/agent/metrics"),
	}, read)
}

func TestAMemberMeetsTheHubWithoutAnyGroup(t *testing.T) {
	fleet := testFleet(t, 2)
	lines := strings.Split(strings.TrimSpace(tokenFile(fleet, state.Hub)), "\n")
	assert.Equal(t, fleet.Tokens["hub/member-1"]+",member-1,member-1", lines[3])
	assert.Equal(t, fleet.Tokens["hub/fleet-admin"]+`,fleet-admin,fleet-admin,"system:masters"`, lines[0])
	assert.Len(t, lines, 5)
}

func TestAddTokensKeepsWhatIsThere(t *testing.T) {
	fleet := testFleet(t, 1)
	before := fleet.Tokens["hub/member-1"]
	fleet.Members = 2
	AddTokens(fleet)
	assert.Equal(t, before, fleet.Tokens["hub/member-1"])
	assert.Len(t, fleet.Tokens["hub/member-2"], 32)
	assert.NotEqual(t, before, fleet.Tokens["hub/member-2"])
}

func TestKubeconfigHasOneContextPerCluster(t *testing.T) {
	fleet := testFleet(t, 2)
	content, err := kubeconfig(fleet, adminUser, fleet.Clusters()...)
	require.NoError(t, err)
	config, err := clientcmd.Load(content)
	require.NoError(t, err)

	assert.Equal(t, "hub", config.CurrentContext)
	got := map[string]string{}
	for name, ctx := range config.Contexts {
		assert.Equal(t, fleet.CertificateAuthority(name), config.Clusters[ctx.Cluster].CertificateAuthority)
		assert.Equal(t, fleet.Tokens[name+"/fleet-admin"], config.AuthInfos[ctx.AuthInfo].Token)
		got[name] = config.Clusters[ctx.Cluster].Server
	}
	assert.Empty(t, cmp.Diff(map[string]string{
		"hub": fleet.APIServerURL("hub"), "member-1": fleet.APIServerURL("member-1"), "member-2": fleet.APIServerURL("member-2"),
	}, got))
}

func TestKubeconfigOfAnUnknownUserIsRefused(t *testing.T) {
	_, err := kubeconfig(testFleet(t, 1), hubAgentUser, "member-1")
	assert.ErrorContains(t, err, "no user fleet-hub-agent")
}

func TestWritePKIMakesAServingCertificateThatClientsVerify(t *testing.T) {
	dir := t.TempDir() + "/pki"
	now := time.Now()
	require.NoError(t, writePKI(dir, "hub"))
	read := func(name string) []byte {
		content, err := os.ReadFile(dir + "/" + name)
		require.NoError(t, err)
		return content
	}
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(read("ca.crt")))
	block, _ := pem.Decode(read("apiserver.crt"))
	serving, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	for _, name := range []string{"127.0.0.1", "localhost"} {
		_, err = serving.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now})
		assert.NoError(t, err, name)
	}

	before := read("ca.crt")
	require.NoError(t, writePKI(dir, "hub"))
	assert.Equal(t, before, read("ca.crt"), "certificates stay")
}

func TestMemberClusters(t *testing.T) {
	for i, want := range map[int]map[string]string{
		1: {"environment": "canary", "order": "2"},
		2: {"environment": "staging"},
		3: {"environment": "canary", "order": "1"},
		4: {"environment": "production", "order": "4"},
	} {
		object := memberCluster(i)
		assert.Empty(t, cmp.Diff(want, object.GetLabels()))
		user, _, err := unstructured.NestedString(object.Object, "spec", "identity", "name")
		require.NoError(t, err)
		assert.Equal(t, state.MemberName(i), user)
	}
}

func TestMembershipReadsConditionsAndTheNewestHeartbeat(t *testing.T) {
	heard := time.Date(2026, 1, 2, 3, 4, 15, 0, time.UTC)
	said := clusterv1beta1.MemberClusterStatus{
		Conditions: []metav1.Condition{{Type: "Joined", Status: "True"}},
		AgentStatus: []clusterv1beta1.AgentStatus{
			{LastReceivedHeartbeat: metav1.NewTime(heard.Add(-10 * time.Second))},
			{LastReceivedHeartbeat: metav1.NewTime(heard)},
		},
	}
	want := Membership{Name: "member-1", Joined: "True", Healthy: "Unknown", Heartbeat: heard}
	assert.Empty(t, cmp.Diff(want, membership("member-1", said)))
}

// everyVersion is an API server that serves everything that a chart asks for.
type everyVersion struct{}

func (everyVersion) Has(string) (bool, error) { return true, nil }

func TestAccessRulesOfTheChartsAreBoundToTheUser(t *testing.T) {
	for _, chart := range []string{"hub-agent", "member-agent"} {
		t.Run(chart, func(t *testing.T) {
			objects, err := accessRules("../../../deploy/charts/"+chart, "jane", everyVersion{}, keepValues)
			require.NoError(t, err)
			kinds := map[string]int{}
			for _, object := range objects {
				kinds[object.GetKind()]++
				subjects, isBinding, err := unstructured.NestedSlice(object.Object, "subjects")
				require.NoError(t, err)
				if isBinding {
					want := []any{map[string]any{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}}
					assert.Empty(t, cmp.Diff(want, subjects))
				}
			}
			assert.NotZero(t, kinds["ClusterRole"], "the agent's, and those for people")
			assert.Equal(t, 1, kinds["ClusterRoleBinding"])
			assert.Zero(t, kinds["ServiceAccount"])
		})
	}
}

func TestPoliciesOfTheHubChartKnowTheLocalHubAgent(t *testing.T) {
	objects, err := accessRules("../../../deploy/charts/hub-agent", hubAgentUser, everyVersion{}, localValues)
	require.NoError(t, err)
	policies := map[string]bool{}
	bindings := map[string]bool{}
	for _, object := range objects {
		switch object.GetKind() {
		case "ValidatingAdmissionPolicy":
			content, err := object.MarshalJSON()
			require.NoError(t, err)
			assert.NotContains(t, string(content), "system:serviceaccount:fleet-system:hub-agent")
			policies[object.GetName()] = strings.Contains(string(content), hubAgentUser)
		case "ValidatingAdmissionPolicyBinding":
			name, _, err := unstructured.NestedString(object.Object, "spec", "policyName")
			require.NoError(t, err)
			bindings[name] = true
		}
	}
	for _, name := range []string{"reserved-namespaces", "internal-kinds", "definitions", "member-clusters"} {
		assert.True(t, policies["hub-agent-"+name], "%s lets the hub agent pass", name)
	}
	assert.Contains(t, policies, "hub-agent-workloads")
	for name := range policies {
		assert.True(t, bindings[name], "%s is in force", name)
	}
}

func TestTheLocalHubAgentMayRunTheJobsOfAnalyses(t *testing.T) {
	objects, err := accessRules("../../../deploy/charts/hub-agent", hubAgentUser, everyVersion{}, localValues)
	require.NoError(t, err)
	var found []string
	for _, object := range objects {
		content, err := object.MarshalJSON()
		require.NoError(t, err)
		if object.GetName() == "hub-agent-analysis-jobs" {
			found = append(found, object.GetKind()+" "+object.GetNamespace())
		}
		if object.GetKind() == "ValidatingAdmissionPolicy" && object.GetName() == "hub-agent-workloads" {
			assert.Contains(t, string(content), `\"`+ChecksNamespace+`\"`, "pods run there, and nowhere else on the hub")
		}
	}
	assert.Equal(t, []string{"Role " + ChecksNamespace, "RoleBinding " + ChecksNamespace}, found)
}

func TestARuleThatUsesAnUnknownFunctionNamesIt(t *testing.T) {
	chart := t.TempDir()
	require.NoError(t, os.MkdirAll(chart+"/templates", 0o755))
	require.NoError(t, os.WriteFile(chart+"/templates/_names.tpl", nil, 0o600))
	require.NoError(t, os.WriteFile(chart+"/templates/rbac.yaml", []byte("a: {{ tpl .Values }}"), 0o600))
	_, err := accessRules(chart, "jane", everyVersion{}, keepValues)
	assert.ErrorContains(t, err, "tpl")
}

func TestARuleIsRenderedLikeByHelm(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"a value":             {"a: {{ .Values.a.b }}", "a: text"},
		"a list as JSON":      {"a: {{ .Values.list | toJson }}", `a: ["v","w"]`},
		"a list as YAML":      {"a: {{- .Values.list | toYaml | nindent 0 }}", "a:\n- v\n- w"},
		"a loop":              {"a:{{ range .Values.list }} {{ . | lower }}{{ end }}", "a: v w"},
		"a loop over pairs":   {`{{ range $k, $v := dict "b" 2 "a" 1 }}{{ $k }}: {{ $v }}, {{ end }}`, "a: 1, b: 2, "},
		"a prefix":            {`a: {{ hasPrefix "te" .Values.a.b }}`, "a: true"},
		"the part of a text":  {`a: {{ index (splitList "x" .Values.a.b) 1 }}`, "a: t"},
		"an indented include": {`a: {{ include "two-lines" . | nindent 2 }}`, "a: \n  one\n  two"},
		"quotes and lists":    {`a: {{ index (list "x" "y") 1 | quote }}`, `a: "y"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			chart := t.TempDir()
			require.NoError(t, os.MkdirAll(chart+"/templates", 0o755))
			for file, content := range map[string]string{
				"values.yaml":          "a: {b: text}\nlist: [v, w]\n",
				"templates/_names.tpl": `{{ define "two-lines" }}one` + "\n" + `two{{ end }}`,
				"templates/rbac.yaml":  tt.template,
			} {
				require.NoError(t, os.WriteFile(chart+"/"+file, []byte(content), 0o600))
			}
			got, err := renderTemplate(chart, "rbac.yaml", everyVersion{}, keepValues)
			require.NoError(t, err)
			assert.Equal(t, tt.want, string(got))
		})
	}
}

func TestAValueThatDoesNotExistIsAnError(t *testing.T) {
	chart := t.TempDir()
	require.NoError(t, os.MkdirAll(chart+"/templates", 0o755))
	require.NoError(t, os.WriteFile(chart+"/templates/_names.tpl", nil, 0o600))
	require.NoError(t, os.WriteFile(chart+"/templates/rbac.yaml", []byte("a: {{ .Values.a }}"), 0o600))
	_, err := accessRules(chart, "jane", everyVersion{}, keepValues)
	assert.ErrorContains(t, err, "no entry for key")
}

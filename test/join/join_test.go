// Package join checks what the scripts of deploy/join say before they do anything, and that they know the chart. What
// they do is tested on the local fleet, in test/integration.
package join

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const deploy = "../../deploy"

// run runs a script with these variables and no others, and returns what it prints as it fails.
func run(t *testing.T, script string, variables ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", filepath.Join(deploy, "join", script))
	command.Env = append([]string{"PATH=" + os.Getenv("PATH")}, variables...)
	out, err := command.CombinedOutput()
	require.Error(t, err, "%s", out)
	return string(out)
}

func TestScriptsSayWhatTheyNeed(t *testing.T) {
	complete := []string{"HUB_CLUSTER_CONTEXT=hub", "HUB_CLUSTER_ADDRESS=https://hub:6443", "MEMBER_CLUSTER=one", "MEMBER_CLUSTER_CONTEXT=one"}
	for sentence, test := range map[string]struct {
		script    string
		variables []string
		want      string
	}{
		"joining names all that is not set": {
			"join-member-cluster.sh", nil, "not set: HUB_CLUSTER_CONTEXT HUB_CLUSTER_ADDRESS MEMBER_CLUSTER MEMBER_CLUSTER_CONTEXT;"},
		"joining names the one that is not set": {
			"join-member-cluster.sh", complete[:3], "not set: MEMBER_CLUSTER_CONTEXT;"},
		"an address without a scheme is refused": {
			"join-member-cluster.sh", append(complete[:3:3], "MEMBER_CLUSTER_CONTEXT=one", "HUB_CLUSTER_ADDRESS=hub:6443"), "HUB_CLUSTER_ADDRESS is 'hub:6443'; it must be an address such as"},
		"a program that is missing is named": {
			"join-member-cluster.sh", append(complete[:4:4], "KUBECTL=true", "HELM=no-such-helm"), "no-such-helm is not installed"},
		"a hub without the fleet's kinds is told from others": {
			"join-member-cluster.sh", append(complete[:4:4], "KUBECTL=false", "HELM=true"), "install the chart hub-agent first"},
		"the name of a cluster that would go on in YAML is refused": {
			"join-member-cluster.sh", append(complete[:4:4], "MEMBER_CLUSTER=one\nspec:\n  identity: {name: admin}"), "it must be the name of a cluster"},
		"the name of a cluster that would go on in helm's values is refused": {
			"join-member-cluster.sh", append(complete[:4:4], "MEMBER_CLUSTER=one,tlsClientInsecure=true"), "MEMBER_CLUSTER is 'one,tlsClientInsecure=true'; it must be the name of a cluster"},
		"the name of a cluster that is too long is refused": {
			"join-member-cluster.sh", append(complete[:4:4], "MEMBER_CLUSTER="+strings.Repeat("a", 51)), "MEMBER_CLUSTER is 51 characters long"},
		"an address that would go on in helm's values is refused": {
			"join-member-cluster.sh", append(complete[:4:4], "HUB_CLUSTER_ADDRESS=https://hub:6443,tlsClientInsecure=true"), "HUB_CLUSTER_ADDRESS is 'https://hub:6443,tlsClientInsecure=true'; it must be an address"},
		"an address with a user is refused": {
			"join-member-cluster.sh", append(complete[:4:4], "HUB_CLUSTER_ADDRESS=https://you@hub:6443"), "it must be an address"},
		"an address of IPv6 is not": {
			"join-member-cluster.sh", append(complete[:4:4], "HUB_CLUSTER_ADDRESS=https://[fd00::1]:6443", "KUBECTL=false", "HELM=true"), "install the chart hub-agent first"},
		"the namespace of the accounts is checked": {
			"join-member-cluster.sh", append(complete[:4:4], "HUB_ACCESS_NAMESPACE=a\nb"), "it must be the name of a namespace"},
		"how long a token holds is checked": {
			"join-member-cluster.sh", append(complete[:4:4], "TOKEN_DURATION=24"), "TOKEN_DURATION is '24'; it must be a duration such as 24h"},
		"the heartbeat is checked": {
			"join-member-cluster.sh", append(complete[:4:4], "HEARTBEAT_PERIOD=15\ntaints: []"), "HEARTBEAT_PERIOD is '15"},
		"the image is checked": {
			"join-member-cluster.sh", append(complete[:4:4], "REGISTRY=a,b=c"), "it must be the address of a registry"},
		"the tag is checked": {
			"join-member-cluster.sh", append(complete[:4:4], "FLEET_VERSION=v1,b=c"), "it must be the tag of an image"},
		"leaving checks the name, too": {
			"leave-member-cluster.sh", []string{"HUB_CLUSTER_CONTEXT=hub", "MEMBER_CLUSTER=--all"}, "MEMBER_CLUSTER is '--all'; it must be the name of a cluster"},
		"leaving names all that is not set": {
			"leave-member-cluster.sh", nil, "not set: HUB_CLUSTER_CONTEXT MEMBER_CLUSTER;"},
	} {
		t.Run(sentence, func(t *testing.T) {
			assert.Contains(t, run(t, test.script, test.variables...), test.want)
		})
	}
}

// Two clusters of one name would undo each other's work, and uninstalling the agent of another cluster stops it.
func TestScriptsTellClustersApart(t *testing.T) {
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	program := `#!/bin/sh
case "$*" in
*"get namespace kube-system"*) printf five ;;
*cluster-uid*) printf four ;;
*"get membercluster one --ignore-not-found -o name"*) echo membercluster/one ;;
*"get crd"*|*deletionTimestamp*) ;;
*) echo "changed: $*" ;;
esac
`
	require.NoError(t, os.WriteFile(kubectl, []byte(program), 0o700)) //nolint:gosec // it is to be run
	variables := []string{"HUB_CLUSTER_CONTEXT=hub", "HUB_CLUSTER_ADDRESS=https://hub:6443", "MEMBER_CLUSTER=one", "MEMBER_CLUSTER_CONTEXT=other", "KUBECTL=" + kubectl, "HELM=true"}
	for script, want := range map[string]string{
		"join-member-cluster.sh":  "member cluster one is another cluster: that one has uid four, this one five",
		"leave-member-cluster.sh": "other is not one but another cluster: nothing was changed",
	} {
		out := run(t, script, variables...)
		assert.Contains(t, out, want)
		assert.NotContains(t, out, "changed: ")
	}
}

// hubWith is a kubectl that knows member clusters one, of uid four, and other, of the uid of the cluster that joins, five. It says what it
// would change, and ends the script where that makes the account.
func hubWith(t *testing.T, uidOfOne, uidOfOther, definitions string) string {
	t.Helper()
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	program := `#!/bin/sh
case "$*" in
*"get namespace kube-system"*) printf five ;;
*"get memberclusters "*) printf 'one ` + uidOfOne + `\nother ` + uidOfOther + `\n' ;;
*"get membercluster one"*cluster-uid*) printf '` + uidOfOne + `' ;;
*"get customresourcedefinitions"*) printf '` + definitions + `' ;;
*"get crd"*|*deletionTimestamp*) ;;
*"create -f -"*) echo "stopped here"; exit 1 ;;
*) echo "changed: $*" ;;
esac
`
	require.NoError(t, os.WriteFile(kubectl, []byte(program), 0o700)) //nolint:gosec // it is to be run
	return kubectl
}

// One cluster under two names would leave the first without a word, so that is done on demand only.
func TestTheScriptMovesAClusterOnDemandOnly(t *testing.T) {
	const unnamed = "changed: --context hub annotate membercluster other fleetflow.io/cluster-uid-"
	const owned = `certificates.cert-manager.io\nappliedworks.placement.kubernetes-fleet.io\n`
	join := func(t *testing.T, kubectl string, variables ...string) string {
		t.Helper()
		return run(t, "join-member-cluster.sh", append([]string{"HUB_CLUSTER_CONTEXT=hub", "HUB_CLUSTER_ADDRESS=https://hub:6443", "MEMBER_CLUSTER=one",
			"MEMBER_CLUSTER_CONTEXT=five", "KUBECTL=" + kubectl, "HELM=true"}, variables...)...)
	}
	for sentence, move := range map[string][]string{"without MOVE": nil, "with an empty MOVE": {"MOVE="}, "with MOVE=false": {"MOVE=false"}} {
		t.Run("refuses a second name "+sentence, func(t *testing.T) {
			out := join(t, hubWith(t, "", "five", ""), move...)
			assert.Contains(t, out, "five is the cluster of member cluster other, which has the same uid five")
			assert.Contains(t, out, "set MOVE=true")
			assert.NotContains(t, out, "changed: ")
		})
		t.Run("refuses the name of another cluster "+sentence, func(t *testing.T) {
			out := join(t, hubWith(t, "four", "six", ""), move...)
			assert.Contains(t, out, "member cluster one is another cluster: that one has uid four, this one five")
			assert.NotContains(t, out, "changed: ")
		})
	}
	t.Run("refuses a MOVE that says neither", func(t *testing.T) {
		out := join(t, hubWith(t, "", "five", ""), "MOVE=no")
		assert.Contains(t, out, "MOVE is 'no'; it must be true or false")
		assert.NotContains(t, out, "changed: ")
	})
	t.Run("gives the cluster the name with MOVE=true, and takes it from the other", func(t *testing.T) {
		out := join(t, hubWith(t, "", "five", ""), "MOVE=true")
		assert.Equal(t, 1, strings.Count(out, unnamed), out)
		assert.Contains(t, out, "stopped here")
	})
	t.Run("gives the name of another cluster with MOVE=true", func(t *testing.T) {
		out := join(t, hubWith(t, "four", "six", ""), "MOVE=true")
		assert.NotContains(t, out, unnamed)
		assert.Contains(t, out, "stopped here")
	})
	t.Run("takes no name from another where it refuses for another reason", func(t *testing.T) {
		out := join(t, hubWith(t, "", "five", owned), "MOVE=true")
		assert.Contains(t, out, "nothing was changed")
		assert.NotContains(t, out, "changed: ")
	})
}

// A release of KubeFleet's on the member would be replaced, and Helm would delete the definition of what is placed.
func TestTheScriptKeepsWhatIsPlaced(t *testing.T) {
	kubectl := filepath.Join(t.TempDir(), "kubectl")
	program := `#!/bin/sh
case "$*" in
*"get namespace kube-system"*) printf five ;;
*"get customresourcedefinitions"*) printf 'certificates.cert-manager.io\nappliedworks.placement.kubernetes-fleet.io\n' ;;
*cluster-uid*|*"get crd"*|*deletionTimestamp*) ;;
*) echo "changed: $*" ;;
esac
`
	require.NoError(t, os.WriteFile(kubectl, []byte(program), 0o700)) //nolint:gosec // it is to be run
	out := run(t, "join-member-cluster.sh", "HUB_CLUSTER_CONTEXT=hub", "HUB_CLUSTER_ADDRESS=https://hub:6443", "MEMBER_CLUSTER=one", "MEMBER_CLUSTER_CONTEXT=other", "KUBECTL="+kubectl, "HELM=true")
	assert.Contains(t, out, "--context other annotate crd --overwrite appliedworks.placement.kubernetes-fleet.io helm.sh/resource-policy=keep;")
	assert.NotContains(t, out, "changed: ")
}

func TestTheScriptSetsValuesThatTheChartHas(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(deploy, "join", "join-member-cluster.sh"))
	require.NoError(t, err)
	content, err := os.ReadFile(filepath.Join(deploy, "charts", "member-agent", "values.yaml"))
	require.NoError(t, err)
	var values map[string]any
	require.NoError(t, yaml.Unmarshal(content, &values))
	set := regexp.MustCompile(`--set-string "([a-zA-Z.]+)=`).FindAllStringSubmatch(string(script), -1)
	require.Len(t, set, 5)
	for _, match := range set {
		var value any = values
		for key := range strings.SplitSeq(match[1], ".") {
			section, ok := value.(map[string]any)
			require.True(t, ok, match[1])
			value, ok = section[key]
			require.True(t, ok, "the chart has no value %s", match[1])
		}
	}
	secret, _ := values["config"].(map[string]any)["hubTokenSecret"].(string)
	assert.Contains(t, string(script), "create secret generic "+secret+" ")
}

package controlplane

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetflow/fleetflow/test/devfleet/state"
)

// The users of the local fleet's clusters.
const (
	adminUser       = "fleet-admin"
	controllerUser  = "kube-controller-manager"
	schedulerUser   = "system:kube-scheduler"
	kwokUser        = "kwok"
	hubAgentUser    = "fleet-hub-agent"
	memberAgentUser = "fleet-member-agent"

	mastersGroup = "system:masters"
)

// user is one line of an API server's token file.
type user struct {
	name   string
	groups []string
}

// usersOf returns who may authenticate to a cluster. Only what comes with Kubernetes and the people in front of it
// are masters: the agents may do what their charts grant, and members on the hub what joining grants.
func usersOf(fleet *state.Fleet, cluster string) []user {
	masters := []string{mastersGroup}
	users := []user{{adminUser, masters}, {controllerUser, masters}}
	if fleet.IsReal(cluster) {
		users = append(users, user{nodeUser(cluster), []string{nodesGroup}}, user{proxyUser, nil})
	}
	if fleet.IsReal(cluster) && cluster == state.Hub {
		users = append(users, user{schedulerUser, nil})
	}
	if cluster != state.Hub {
		return append(users, user{schedulerUser, nil}, user{kwokUser, masters}, user{memberAgentUser, nil})
	}
	users = append(users, user{hubAgentUser, nil})
	for _, member := range fleet.MemberNames() {
		users = append(users, user{member, nil})
	}
	return users
}

// AddTokens draws a token for every user that has none yet.
func AddTokens(fleet *state.Fleet) {
	if fleet.Tokens == nil {
		fleet.Tokens = map[string]string{}
	}
	for _, cluster := range fleet.Clusters() {
		for _, u := range usersOf(fleet, cluster) {
			if key := tokenKey(cluster, u.name); fleet.Tokens[key] == "" {
				random := make([]byte, 16)
				_, _ = rand.Read(random) // never fails
				fleet.Tokens[key] = hex.EncodeToString(random)
			}
		}
	}
}

func tokenKey(cluster, user string) string { return cluster + "/" + user }

func token(fleet *state.Fleet, cluster, user string) string {
	return fleet.Tokens[tokenKey(cluster, user)]
}

// tokenFile returns the content of a cluster's --token-auth-file.
func tokenFile(fleet *state.Fleet, cluster string) string {
	var lines strings.Builder
	for _, u := range usersOf(fleet, cluster) {
		fmt.Fprintf(&lines, "%s,%s,%s", token(fleet, cluster, u.name), u.name, u.name)
		if len(u.groups) > 0 {
			fmt.Fprintf(&lines, ",%q", strings.Join(u.groups, ","))
		}
		lines.WriteString("\n")
	}
	return lines.String()
}

// kubeconfig returns a kubeconfig with one context per cluster, named like it, for the given user on each. The first
// cluster is the current context.
func kubeconfig(fleet *state.Fleet, userName string, clusters ...string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	for _, cluster := range clusters {
		if !slices.ContainsFunc(usersOf(fleet, cluster), func(u user) bool { return u.name == userName }) {
			return nil, fmt.Errorf("cluster %s has no user %s", cluster, userName)
		}
		login := cluster
		config.Clusters[cluster] = &clientcmdapi.Cluster{
			Server: fleet.APIServerURL(cluster), CertificateAuthority: fleet.CertificateAuthority(cluster),
		}
		config.AuthInfos[login] = &clientcmdapi.AuthInfo{Token: token(fleet, cluster, userName)}
		config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: login}
	}
	config.CurrentContext = clusters[0]
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}

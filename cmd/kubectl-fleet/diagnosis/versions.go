package diagnosis

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/hub"
)

// The oldest versions of Kubernetes that parts run on, as deploy/docs/compatibility.md says.
const (
	oldestHub     = "1.30"
	oldestMember  = "1.24"
	oldestKubectl = "1.31"
)

const upgrade = "upgrade the older one: deploy/docs/operations.md#upgrade"

// CanBeHub returns what is wrong with a version of Kubernetes on a hub; nil if nothing is, or if the version cannot be read.
func CanBeHub(kubernetes string) error {
	if isOlder(kubernetes, oldestHub) {
		return fmt.Errorf("the hub runs Kubernetes %s, and fleetflow needs %s or later there, for its admission policies: upgrade the cluster, or choose another with --context", kubernetes, oldestHub)
	}
	return nil
}

// checkVersions compares the versions of the parts.
func (c *checker) checkVersions() {
	before := len(c.report.Findings)
	v := &c.report.Versions
	if err := CanBeHub(v.Hub); err != nil {
		c.addFinding(partVersions, Error, "HubTooOld", err.Error(), "upgrade the hub's Kubernetes")
	}
	if isOlder(v.Kubectl, oldestKubectl) {
		c.addFinding(partVersions, Warning, "KubectlOld", fmt.Sprintf("kubectl is %s: kubectl wait --for=create, which guides use, needs %s", v.Kubectl,
			oldestKubectl), "install a newer kubectl")
	}
	for i := range c.Members {
		m := &c.Members[i]
		if kubernetes := m.Status.Properties[clusterv1beta1.KubernetesVersionProperty].Value; isOlder(kubernetes, oldestMember) {
			c.addFinding(partVersions, Warning, "MemberTooOld", fmt.Sprintf("%s runs Kubernetes %s; the member agent is made for %s or later", m.Name,
				kubernetes, oldestMember), "upgrade the cluster")
		}
	}
	for _, name := range sortedKeys(v.MemberAgents) {
		if apart, known := minorsApart(v.HubAgent, v.MemberAgents[name]); known && (apart > 1 || apart < -1) {
			c.addFinding(partVersions, Error, "MemberAgentSkew", fmt.Sprintf(
				"the agent of %s is %s and the hub agent %s: they may be one minor version apart", name, v.MemberAgents[name], v.HubAgent), upgrade)
		}
	}
	switch apart, known := minorsApart(v.HubAgent, v.Plugin); {
	case known && apart < 0:
		c.addFinding(partVersions, Warning, "PluginOlder", fmt.Sprintf("this plugin is %s and the hub agent %s: the plugin does not know what is new",
			v.Plugin, v.HubAgent), "install the plugin of "+v.HubAgent)
	case known && apart > 1:
		c.addFinding(partVersions, Warning, "PluginNewer", fmt.Sprintf("this plugin is %s and the hub agent %s: the plugin may be one minor version newer", v.Plugin, v.HubAgent), upgrade)
	}
	switch hidden := cmp.Or(c.LeasesHidden, c.MembersHidden); {
	case len(c.report.Findings) > before:
	case hidden != "":
		c.addFinding(partVersions, Unknown, "NotReadable", fmt.Sprintf("plugin %s; the versions of agents are not all known, as %s them",
			orUnknown(v.Plugin), hidden), "")
	default:
		c.addGood(partVersions, "plugin %s, hub agent %s, %s", orUnknown(v.Plugin), orUnknown(v.HubAgent), countVersions(v.MemberAgents))
	}
}

// ReadVersions reads the versions that the agents have noted on the hub: that of the hub agent which leads, and those of the member
// agents by member. An empty one is not noted.
func ReadVersions(ctx context.Context, c client.Client, now time.Time) (hubAgent string, memberAgents map[string]string, err error) {
	f := &Facts{}
	if err := f.readLeases(ctx, c); err != nil {
		return "", nil, fmt.Errorf("reading the leases of hub agents: %w", err)
	}
	if f.Members, err = (hub.Reader{Reader: c}).Members(ctx); err != nil {
		return "", nil, err
	}
	memberAgents = map[string]string{}
	for i := range f.Members {
		memberAgents[f.Members[i].Name] = f.Members[i].Status.Properties[clusterv1beta1.AgentVersionProperty].Value
	}
	return (&checker{Facts: f, now: now}).agentVersion(), memberAgents, nil
}

// countVersions returns how many member agents are of which version.
func countVersions(of map[string]string) string {
	count := map[string]string{}
	number := map[string]int{}
	for _, version := range of {
		number[version]++
		count[version] = fmt.Sprintf("%d of %s", number[version], version)
	}
	text := "member agents"
	for i, version := range sortedKeys(count) {
		separator := " "
		if i > 0 {
			separator = ", "
		}
		text += separator + count[version]
	}
	if len(count) == 0 {
		return "member agents of unknown version"
	}
	return text
}

// isOlder reports whether a version is older than another; false if it cannot be read.
func isOlder(of, than string) bool {
	read, err := version.ParseGeneric(of)
	return err == nil && read.LessThan(version.MustParseGeneric(than))
}

// minorsApart is by how many minor versions a version is newer than another, negative if it is older. Builds that are of no
// release cannot be compared. A major version counts as many.
func minorsApart(of, from string) (int, bool) {
	const many = 100
	a, errA := version.ParseSemantic(of)
	b, errB := version.ParseSemantic(from)
	if errA != nil || errB != nil || isUnreleased(a) || isUnreleased(b) {
		return 0, false
	}
	return (int(b.Major())-int(a.Major()))*many + int(b.Minor()) - int(a.Minor()), true //nolint:gosec // versions are small
}

// isUnreleased reports whether a version is one that Go makes of a commit.
func isUnreleased(v *version.Version) bool { return v.Major() == 0 && v.Minor() == 0 }

//go:build integration

package pods

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
	"github.com/fleetflow/fleetflow/test/devfleet/access"
	"github.com/fleetflow/fleetflow/test/devfleet/controlplane"
	"github.com/fleetflow/fleetflow/test/devfleet/realnode"
)

const (
	registryUser     = "puller"
	registryPassword = "as-the-registry-has-it" //nolint:gosec // of a registry that lives as long as its spec
)

// pulled is a placement of a Deployment whose image a registry gives to those who know a password, and of the Secret with that.
const pulled = `
apiVersion: v1
kind: Namespace
metadata: {name: private}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: private, namespace: private}
spec:
  selector: {matchLabels: {app: private}}
  template:
    metadata: {labels: {app: private}}
    spec:
      imagePullSecrets: [{name: registry}]
      containers: [{name: main, image: "%s"}]
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: private}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: private}]
  policy: {placementType: PickAll}
`

const pullSecret = `---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: %s}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths": {"%s": {"auth": "%s"}}}'}
`

// pullSecretFor is the manifest of a Secret with a password for a registry.
func pullSecretFor(namespace, registry, password string) string {
	return fmt.Sprintf(pullSecret, namespace, registry, base64.StdEncoding.EncodeToString([]byte(registryUser+":"+password)))
}

// pulledWithSecret places a Deployment whose image is pulled by its digest from a registry that asks for a password. With a wrong one in
// the Secret that is placed beside it, the hub has the registry's words; once that is right the image is pulled.
func pulledWithSecret(t *testing.T) {
	image := serveImage(t, "private/workload")
	address, _, _ := strings.Cut(image, "/")
	_, digest, _ := strings.Cut(image, "@")
	secret := func(password string) string { return pullSecretFor("private", address, password) }
	apply(t, fmt.Sprintf(pulled, image)+secret("wrong"))
	said := awaitFailing(t, "private", func(failing string) string {
		if !strings.Contains(failing, image) || !strings.Contains(failing, "401 Unauthorized") {
			return "its cause is not that of the registry: " + failing
		}
		return ""
	})
	t.Log(said)
	assert.NotContains(t, said, "wrong")

	apply(t, secret(registryPassword))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.Await(ctx, shared.Members[member], client.ObjectKey{Namespace: "private", Name: "private"}, func(d *appsv1.Deployment) string {
		if d == nil || d.Status.AvailableReplicas != 1 {
			return "is not available"
		}
		return ""
	})
	require.NoError(t, err)
	pods := &corev1.PodList{}
	require.NoError(t, shared.Members[member].List(ctx, pods, client.InNamespace("private")))
	require.Len(t, pods.Items, 1)
	require.Len(t, pods.Items[0].Status.ContainerStatuses, 1)
	assert.Contains(t, pods.Items[0].Status.ContainerStatuses[0].ImageID, digest)
	awaitFailing(t, "private", func(failing string) string {
		if failing != "" {
			return "still fails for the hub: " + failing
		}
		return ""
	})
	sh(t, "kubectl --context hub delete crp/private ns/private --timeout=60s")
}

// awaitFailing waits until missing returns "" for what the hub says why the Deployment of a namespace is not available, which is empty if
// it says nothing, and returns that.
func awaitFailing(t *testing.T, name string, missing func(failing string) string) (said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := access.AwaitAll(ctx, shared.Hub, func(works []*placementv1beta1.Work) string {
		for _, work := range works {
			for _, manifest := range work.Status.ManifestConditions {
				if manifest.Identifier.Kind != "Deployment" || manifest.Identifier.Namespace != name {
					continue
				}
				said = ""
				if failing := meta.FindStatusCondition(manifest.Conditions, placementv1beta1.ConditionTypeFailing); failing != nil &&
					failing.Reason == placementv1beta1.ReasonImageNotPulled {
					said = failing.Message
				}
				return missing(said)
			}
		}
		return "no Work has reported on it"
	}, client.InNamespace(clusterv1beta1.MemberNamespace(member)))
	require.NoError(t, err)
	return said
}

// serveImage runs a registry where the member's node reaches it, has the node speak to it without TLS, and returns how its image is
// pulled. One of another repository is another image.
func serveImage(t *testing.T, repository string, args ...string) (image string) {
	t.Helper()
	host := shared.Fleet.HostAddress(member)
	args = append(args, "--address", host+":0", "--archive", shared.Fleet.Path("images", "workload.tar"), "--repository", repository)
	registry := exec.CommandContext(t.Context(), filepath.Join(bin, "registry"), args...)
	registry.Env = append(os.Environ(), "REGISTRY_USER="+registryUser, "REGISTRY_PASSWORD="+registryPassword)
	registry.Stderr = os.Stderr
	prints, err := registry.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, registry.Start())
	t.Cleanup(func() {
		_ = registry.Process.Kill() // it may be gone
		_ = registry.Wait()
	})
	line, err := bufio.NewReader(prints).ReadString('\n')
	require.NoError(t, err)
	image = strings.TrimSpace(line)
	address, _, _ := strings.Cut(image, "/")
	node, err := realnode.Load(controlplane.NodeFile(shared.Fleet, member))
	require.NoError(t, err)
	require.NoError(t, node.PullPlainly(address))
	return image
}

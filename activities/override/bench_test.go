package override_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/override"
	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// workload is a Deployment of about 1 KB.
func workload(i int) []byte {
	const manifest = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"example.com/owner":"team-a","example.com/note":"NOTE"},"labels":{"app":"web","tier":"front"},"name":"web-%d","namespace":"app"},` +
		`"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},` +
		`"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"args":["--port=8080","--verbose"],"env":[{"name":"REGION","value":"none"},{"name":"LEVEL","value":"info"}],"image":"nginx:1.14.2","imagePullPolicy":"IfNotPresent","name":"web",` +
		`"ports":[{"containerPort":8080,"protocol":"TCP"}],"resources":{"limits":{"cpu":"500m","memory":"256Mi"},"requests":{"cpu":"250m","memory":"128Mi"}}}],"serviceAccountName":"web","terminationGracePeriodSeconds":30}}}}`
	text := fmt.Sprintf(manifest, i)
	return []byte(strings.Replace(text, "NOTE", strings.Repeat("n", 1024-len(text)+len("NOTE")), 1))
}

// BenchmarkApply patches 100 objects of 1 KB for 1,000 clusters, each by two operations of two
// overrides, of which one depends on the cluster so that no two outcomes are the same.
func BenchmarkApply(b *testing.B) {
	o := overrides{clusterWide: []placementv1beta1.ClusterResourceOverrideSnapshot{clusterWide("cro-0", namespace("app"),
		patch(op(add, "/metadata/labels/cluster", "${MEMBER-CLUSTER-NAME}")))}}
	manifests := make([][]byte, 100)
	for i := range manifests {
		manifests[i] = workload(i)
		if i%20 == 0 {
			o.namespaced = append(o.namespaced, namespaced("app", fmt.Sprintf("ro-%d-0", i), nil,
				patchOn(labelled(env("prod")), op(replace, "/spec/template/spec/containers/0/image", "nginx:1.20.0")),
				patchOn(labelled(env("test")), op(replace, "/spec/template/spec/containers/0/image", "nginx:latest"))))
		}
		spec := &o.namespaced[len(o.namespaced)-1].Spec.OverrideSpec
		spec.ResourceSelectors = append(spec.ResourceSelectors, placementv1beta1.ResourceSelector{Group: "apps", Version: "v1", Kind: "Deployment", Name: fmt.Sprintf("web-%d", i)})
	}
	clusters := make([]override.Cluster, 1000)
	for i := range clusters {
		clusters[i] = override.Cluster{Name: fmt.Sprintf("member-%d", i), Labels: env([]string{"prod", "test"}[i%2])}
	}
	b.ReportAllocs()
	for b.Loop() {
		objects := make([]*override.Object, len(manifests))
		for i, manifest := range manifests {
			var err error
			objects[i], err = override.NewObject(manifest)
			require.NoError(b, err)
		}
		set := override.Compile(o.all())
		for _, cluster := range clusters {
			onCluster := set.On(cluster)
			for _, object := range objects {
				result, err := onCluster.Apply(object)
				if err != nil || len(result.Manifest) <= 1024 {
					b.Fatal(err, string(result.Manifest))
				}
			}
		}
	}
}

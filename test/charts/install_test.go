//go:build integration

package charts

import (
	"encoding/base64"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// member is the name of the cluster that joins as the documentation has it.
	member = "installed"
	// patience is for a busy machine; nothing takes a tenth of it.
	patience = 6 * time.Minute
	every    = 100 * time.Millisecond
)

// TestInstalledChartsPlace applies every object of both charts to real API servers, starts each agent with the flags, the
// environment, the mounted Secrets and the service account of its Deployment, joins the member by the documented steps and
// places a namespace.
func TestInstalledChartsPlace(t *testing.T) {
	f := bringUp(t)
	hub, cluster := f.cluster(t, "hub"), f.cluster(t, "member-1")
	// The hub's own Temporal needs nothing; the workers run apart, as on a large hub.
	agents := hub.install(t, "hub-agent", values{
		"temporal": values{"address": f.temporal}, "workers": values{"enabled": true}, "logVerbosity": 1,
	})
	require.Len(t, agents, 2, "controllers and workers")
	for _, a := range agents {
		hub.run(t, a)
	}

	token := hub.invite(t)
	cluster.apply(t, manifest(`
apiVersion: v1
kind: Secret
metadata: {name: hub-kubeconfig-secret, namespace: default}
stringData: {token: `+token+`}`))
	// As printed: installed from the namespace default, where kubectl has made the Secret.
	agents = cluster.installFrom(t, "default", "member-agent", values{
		"namespace": namespace, "logVerbosity": 1,
		"config": values{"hubURL": hub.config.Host, "memberClusterName": member, "hubCA": base64.StdEncoding.EncodeToString(hub.config.CAData)},
	})
	require.Len(t, agents, 1)
	cluster.run(t, agents[0])
	await(t, "the member joins", func() bool {
		return hub.condition(t, "cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "", member, "Joined")
	})

	hub.apply(t, manifest(`{apiVersion: v1, kind: Namespace, metadata: {name: web}}`))
	hub.apply(t, manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: web}, data: {color: blue}}`))
	hub.apply(t, manifest(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: web}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: web}]
  policy: {placementType: PickAll}`))
	placed := func(color string) func() bool {
		return func() bool {
			object, err := cluster.get(t, "v1", "ConfigMap", "web", "app")
			data, _, _ := unstructured.NestedString(object.Object, "data", "color")
			return err == nil && data == color
		}
	}
	await(t, "the ConfigMap is placed", placed("blue"))
	await(t, "the placement is available", func() bool {
		return hub.condition(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "", "web", "ClusterResourcePlacementAvailable")
	})
	hub.apply(t, manifest(`{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: web}, data: {color: green}}`))
	await(t, "the change is placed", placed("green"))
	for _, a := range f.started {
		f.requireWell(t, a)
	}
	hub.requireMetricsNeedARight(t, f.started[0])
	cluster.requireMetricsNeedARight(t, agents[0])

	hub.delete(t, "placement.kubernetes-fleet.io/v1beta1", "ClusterResourcePlacement", "web")
	await(t, "what was placed is gone", func() bool {
		_, err := cluster.get(t, "v1", "Namespace", "", "web")
		return apierrors.IsNotFound(err)
	})
	hub.delete(t, "cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", member)
	await(t, "the member has left", func() bool {
		_, err := hub.get(t, "cluster.kubernetes-fleet.io/v1beta1", "MemberCluster", "", member)
		return apierrors.IsNotFound(err)
	})
	f.requireNothingForbidden(t)
}

// invite takes the documented steps on the hub and returns the member's token.
func (c *cluster) invite(t *testing.T) string {
	t.Helper()
	c.apply(t, manifest(`{apiVersion: v1, kind: ServiceAccount, metadata: {name: installed-hub-cluster-access, namespace: fleet-system}}`))
	c.apply(t, manifest(`
apiVersion: v1
kind: Secret
metadata:
  name: installed-hub-cluster-access-token
  namespace: fleet-system
  annotations: {kubernetes.io/service-account.name: installed-hub-cluster-access}
type: kubernetes.io/service-account-token`))
	c.apply(t, manifest(`
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: installed}
spec:
  identity: {name: installed-hub-cluster-access, kind: ServiceAccount, namespace: fleet-system, apiGroup: ""}
  heartbeatPeriodSeconds: 60`))
	var token []byte
	await(t, "the token is filled in", func() bool {
		object, err := c.get(t, "v1", "Secret", "fleet-system", "installed-hub-cluster-access-token")
		text, _, _ := unstructured.NestedString(object.Object, "data", "token")
		token, _ = base64.StdEncoding.DecodeString(text)
		return err == nil && len(token) > 0
	})
	return string(token)
}

// requireNothingForbidden reads the logs of all agents: whoever lacks a verb has been told so.
func (f *fleet) requireNothingForbidden(t *testing.T) {
	t.Helper()
	for _, a := range f.started {
		content, err := os.ReadFile(a.log)
		require.NoError(t, err)
		for line := range strings.SplitSeq(string(content), "\n") {
			if strings.Contains(line, "The API server does not let the agent in") {
				continue // it knocks until the hub has made its namespace
			}
			assert.NotContains(t, strings.ToLower(line), "forbidden", "%s may do too little", a.name)
		}
	}
}

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

func deployment(name, failingPercent string, replicas int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if failingPercent != "" {
		d.Annotations = map[string]string{failingAnnotation: failingPercent}
	}
	d.Status.ReadyReplicas = replicas
	return d
}

func TestDeploymentsGetRequestsAndFailWhatTheirVersionFails(t *testing.T) {
	good := fake.NewClientset(deployment("web", "0", 2), deployment("silent", "", 2))
	bad := fake.NewClientset(deployment("web", "20", 1))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p := newPlayer(map[string]kubernetes.Interface{"member-1": good, "member-2": bad}, func() time.Time { return now })
	measured := func(goodGot, badGot, badFailed string) {
		t.Helper()
		require.NoError(t, testutil.CollectAndCompare(p, strings.NewReader(`
# HELP http_errors_total Requests that a Deployment has failed.
# TYPE http_errors_total counter
http_errors_total{app="web",cluster="member-1",namespace="shop"} 0
http_errors_total{app="web",cluster="member-2",namespace="shop"} `+badFailed+`
# HELP http_requests_total Requests that a Deployment has got.
# TYPE http_requests_total counter
http_requests_total{app="web",cluster="member-1",namespace="shop"} `+goodGot+`
http_requests_total{app="web",cluster="member-2",namespace="shop"} `+badGot+"\n")))
	}
	measured("0", "0", "0")
	now = now.Add(3 * time.Second)
	measured("60", "30", "6")
	_, err := bad.AppsV1().Deployments("shop").Update(t.Context(), deployment("web", "0", 1), metav1.UpdateOptions{})
	require.NoError(t, err)
	now = now.Add(time.Second)
	measured("80", "40", "6")
}

func TestWithoutReadyReplicasThereAreNoRequests(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := countOn(counts{requests: 5, failures: 1, at: began}, began.Add(time.Minute), 0, 50)
	assert.Equal(t, counts{requests: 5, failures: 1, at: began.Add(time.Minute)}, c)
}

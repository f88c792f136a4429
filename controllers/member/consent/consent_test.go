package consent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func asking(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "member-busy"}, Data: data}
}

func TestRead(t *testing.T) {
	six := metav1.NewTime(time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC))
	leaving := asking(map[string]string{"until": "2026-12-01T06:00:00Z"})
	leaving.DeletionTimestamp = &six
	tests := map[string]struct {
		configMap *corev1.ConfigMap
		want      *clusterv1beta1.BusyRequest
	}{
		"none":          {},
		"being deleted": {leaving, nil},
		"until six":     {asking(map[string]string{"until": "2026-12-01T06:00:00Z", "message": "month-end"}), &clusterv1beta1.BusyRequest{Until: &six, Message: "month-end"}},
		"another zone":  {asking(map[string]string{"until": "2026-12-01T07:00:00+01:00"}), &clusterv1beta1.BusyRequest{Until: &six}},
		"no time": {asking(map[string]string{"until": "soon", "message": "m"}), &clusterv1beta1.BusyRequest{
			Message: `until of ConfigMap fleet-system/member-busy of the cluster is "soon" and no time such as 2026-12-01T06:00:00Z`,
		}},
		"no end": {asking(nil), &clusterv1beta1.BusyRequest{
			Message: "ConfigMap fleet-system/member-busy of the cluster has no entry until, with a time such as 2026-12-01T06:00:00Z",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, Read(test.configMap)) })
	}
	long := Read(asking(map[string]string{"until": strings.Repeat("x", 1000)}))
	assert.Len(t, long.Message, clusterv1beta1.MaxBusyMessage, "the hub would not take a longer one")
}

func TestWatch(t *testing.T) {
	cluster := fake.NewClientset()
	watch := NewWatch(cluster, "fleet-system", "member-busy")
	changed := make(chan struct{}, 10)
	watch.Changed = func() { changed <- struct{}{} }
	assert.Nil(t, requestOf(watch), "nothing is known yet")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, watch.Start(t.Context()))
	}()
	t.Cleanup(func() { <-ended })

	_, err := cluster.CoreV1().ConfigMaps("fleet-system").Create(t.Context(), asking(map[string]string{"until": "2026-12-01T06:00:00Z"}), metav1.CreateOptions{})
	require.NoError(t, err)
	<-changed
	require.NotNil(t, requestOf(watch))
	require.NoError(t, cluster.CoreV1().ConfigMaps("fleet-system").Delete(t.Context(), "member-busy", metav1.DeleteOptions{}))
	<-changed
	assert.Nil(t, requestOf(watch))
}

// requestOf returns what is asked, known or not.
func requestOf(watch *Watch) *clusterv1beta1.BusyRequest {
	asked, _ := watch.Request()
	return asked
}

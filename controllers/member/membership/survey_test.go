package membership

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
	"github.com/fleetflow/fleetflow/controllers/member/propertyprovider"
)

// blockedPods is a cache that has nodes and blocks when pods are listed.
type blockedPods struct{ client.Reader }

func (c blockedPods) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1.PodList); ok {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Reader.List(ctx, list, opts...)
}

func TestPodsThatCannotBeListedHoldUpNoReport(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	cached := blockedPods{fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(node).Build()}
	synctest.Test(t, func(t *testing.T) {
		s := &Surveyor{cached: cached}
		began := time.Now()
		survey, err := s.surveyResources(t.Context(), metav1.Now())
		require.NoError(t, err)
		assert.Equal(t, cacheTimeout, time.Since(began))
		assert.Equal(t, 1, survey.NodeCount)
		assert.Zero(t, survey.Usage)
		assert.Contains(t, survey.UsageUnknown, "deadline")
		assert.Contains(t, healthyCondition(survey).Message, "resource usage is not known")
		assert.Equal(t, metav1.ConditionTrue, healthyCondition(survey).Status)
	})
}

func TestASurveyThatIsCalledOffIsNoFinding(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Surveyor{cached: blockedPods{fake.NewClientBuilder().WithScheme(scheme.Scheme).Build()}}
	_, err := s.surveyResources(ctx, metav1.Now())
	require.ErrorIs(t, err, context.Canceled)
}

func TestSurvey(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.35.0"}`))
		}
	}))
	defer server.Close()
	s, err := NewSurveyor(&rest.Config{Host: server.URL}, fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
	require.NoError(t, err)
	s.Agent = func() map[clusterv1beta1.PropertyName]string {
		return map[clusterv1beta1.PropertyName]string{clusterv1beta1.AgentVersionProperty: "v0.2.0"}
	}
	survey, err := s.Survey(t.Context(), metav1.Now())
	require.NoError(t, err)
	assert.Equal(t, "v1.35.0", survey.Version)
	reported := Report(Progress{}, survey, clusterv1beta1.InternalMemberClusterStatus{}, 1, metav1.Now())
	assert.Equal(t, "v0.2.0", reported.Properties[clusterv1beta1.AgentVersionProperty].Value)
	assert.Equal(t, server.URL, survey.EntryPoint)
	assert.Empty(t, survey.UsageUnknown)
	assert.Equal(t, "The cluster's API server is ready", healthyCondition(survey).Message)
}

func TestWhatAProviderLeavesOutIsSummedUp(t *testing.T) {
	own := corev1.ResourceList{"cpu": resource.MustParse("8")}
	theirs := corev1.ResourceList{"example.com/slots": resource.MustParse("2")}
	s := Survey{Usage: clusterv1beta1.ResourceUsage{Capacity: own, Allocatable: own}, UsageUnknown: "listing pods: away"}
	s.applyResponse(nil)
	assert.Equal(t, own, s.Usage.Capacity)
	s.applyResponse(&propertyprovider.PropertyCollectionResponse{Resources: clusterv1beta1.ResourceUsage{Available: theirs}})
	assert.Equal(t, clusterv1beta1.ResourceUsage{Capacity: own, Allocatable: own, Available: theirs}, s.Usage)
	assert.Empty(t, s.UsageUnknown)
}

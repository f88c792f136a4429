package membership

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterrules "github.com/fleetflow/fleetflow/apis/cluster/rules"
	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// api is an API server that tells which kinds it serves.
type api struct {
	asked int
	// away says that the API server of metrics does not answer.
	away  bool
	kinds []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	listType := metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}
	var answer any
	switch r.URL.Path {
	case "/readyz":
	case "/version":
		answer = map[string]string{"gitVersion": "v1.36.0"}
	case "/api":
		a.asked++
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
	case "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: "metrics.k8s.io/v1beta1", Version: "v1beta1"}
		answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{{Name: "metrics.k8s.io", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}}}
	case "/api/v1":
		list := metav1.APIResourceList{TypeMeta: listType, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods/status", Kind: "Pod", Verbs: metav1.Verbs{"create"}}, {Name: "componentstatuses", Kind: "ComponentStatus", Verbs: metav1.Verbs{"get"}},
		}}
		for _, kind := range a.kinds {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: kind, Kind: kind, Verbs: metav1.Verbs{"create", "get"}})
		}
		answer = list
	default:
		if a.away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer = metav1.APIResourceList{TypeMeta: listType, GroupVersion: "metrics.k8s.io/v1beta1"}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestTheKindsOfAClusterAreReportedWhenTheyChange(t *testing.T) {
	served := &api{kinds: []string{"Secret", "ConfigMap"}}
	server := httptest.NewServer(served)
	defer server.Close()
	s, err := NewSurveyor(&rest.Config{Host: server.URL}, fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var status clusterv1beta1.InternalMemberClusterStatus
	report := func(at time.Duration) clusterv1beta1.PropertyValue {
		when := metav1.NewTime(now.Add(at))
		survey, err := s.Survey(t.Context(), when)
		require.NoError(t, err)
		status = Report(Progress{}, survey, status, 1, when)
		return status.Properties[clusterv1beta1.ServedKindsProperty]
	}
	first := report(0)
	require.NotEmpty(t, first.Value)
	assert.Equal(t, ";v1=ConfigMap,Secret", first.Value[16:])
	asked := served.asked

	served.kinds = append(served.kinds, "Pod")
	assert.Equal(t, first, report(time.Minute), "they are not looked for with every report")
	assert.Equal(t, asked, served.asked)
	second := report(5 * time.Minute)
	assert.Equal(t, ";v1=ConfigMap,Pod,Secret", second.Value[16:])
	assert.Equal(t, second, report(10*time.Minute), "when they were observed is not told again")

	served.away = true
	assert.Equal(t, ";metrics.k8s.io/v1beta1=*;v1=ConfigMap,Pod,Secret", report(15 * time.Minute).Value[16:])

	last := status.Properties[clusterv1beta1.ServedKindsProperty]
	restarted, err := NewSurveyor(&rest.Config{Host: server.URL}, fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), nil)
	require.NoError(t, err)
	s = restarted
	server.Close()
	assert.Equal(t, last, report(20*time.Minute), "what was known stays known")
}

func TestKindsThatThereIsNoRoomForAreNotThoseOfBefore(t *testing.T) {
	before := map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue{clusterv1beta1.ServedKindsProperty: {Value: "v1=Secret"}}
	many := clusterrules.ServedKinds{}
	for i := range 2000 {
		many[fmt.Sprintf("group-%d.example.com/v1", i)] = []string{"Widget"}
	}
	status := Report(Progress{}, Survey{Kinds: many.Report()}, clusterv1beta1.InternalMemberClusterStatus{Properties: before}, 1, metav1.Now())
	_, known := clusterrules.ServedKindsOf(&clusterv1beta1.MemberCluster{Status: clusterv1beta1.MemberClusterStatus{Properties: status.Properties}})
	assert.False(t, known)
	assert.NotEqual(t, "v1=Secret", status.Properties[clusterv1beta1.ServedKindsProperty].Value)
}

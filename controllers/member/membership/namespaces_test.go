package membership

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

func TestTheNamespacesOfAClusterAreReportedIfTheyAreAskedFor(t *testing.T) {
	deleting := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{"kubernetes"}}}
	placed := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "placed", OwnerReferences: []metav1.OwnerReference{{Kind: "AppliedWork", Name: "team-work"}}}}
	own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	s := &Surveyor{cached: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(deleting, placed, own).Build()}
	shape, err := s.Shape(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Shape{}, shape)

	s.Namespaces = true
	found, err := s.listNamespaces(t.Context())
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"placed": "team-work", "own": ""}, found)
	shape, err = s.Shape(t.Context())
	require.NoError(t, err)
	assert.Equal(t, Shape{Namespaces: "own,placed"}, shape)

	status := Report(Progress{}, Survey{Namespaces: found}, clusterv1beta1.InternalMemberClusterStatus{}, 1, metav1.Now())
	assert.Equal(t, found, status.Namespaces)
	assert.True(t, meta.IsStatusConditionTrue(status.Conditions, clusterv1beta1.ConditionTypeNamespaceCollectionSucceeded))
	status = Report(Progress{}, Survey{}, status, 1, metav1.Now())
	assert.Nil(t, status.Namespaces, "an agent that does not report them any more takes the old report back")
	assert.Empty(t, status.Conditions)
}

func TestOfTooManyNamespacesThoseStayThatWereReported(t *testing.T) {
	found := map[string]string{"zebra": ""}
	for i := range clusterv1beta1.MaxReportedNamespaces {
		found[fmt.Sprintf("n%03d", i)] = ""
	}
	reported, condition := ReportNamespaces(found, map[string]string{"zebra": "", "gone": ""})
	assert.Len(t, reported, clusterv1beta1.MaxReportedNamespaces)
	assert.Contains(t, reported, "zebra")
	assert.NotContains(t, reported, "n199")
	assert.NotContains(t, reported, "gone")
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Equal(t, clusterv1beta1.ReasonNamespaceCollectionDegraded, condition.Reason)
	assert.Contains(t, condition.Message, "200 of 201 namespaces")
}

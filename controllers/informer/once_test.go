package informer

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestAServerThatClosesConnectionsIsAskedOnceForEachRequest(t *testing.T) {
	var knocks atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		knocks.Add(1)
		panic(http.ErrAbortHandler)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	AskOnce(config)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)

	_, err = client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "closed the connection")
	assert.True(t, isAway(err))
	_, err = client.CoreV1().Pods("").Watch(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "closed the connection")
	assert.True(t, isAway(err))
	assert.EqualValues(t, 2, knocks.Load(), "client-go asks ten times, each after a second")
}

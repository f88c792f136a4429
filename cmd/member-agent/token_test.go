package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/fleetflow/fleetflow/controllers/member/hubtoken"
)

func secret(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hub-kubeconfig-secret"},
		Data:       map[string][]byte{hubtoken.SecretKey: []byte(token)},
	}
}

func TestTheTokenForTheHubIsTheSecretsAndReadAgainIfTheHubRefusesIt(t *testing.T) {
	accepted := "one"
	seen := []string{}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer "+accepted {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer hub.Close()
	member := fake.NewClientset(secret("one\n"))
	config := &rest.Config{Host: hub.URL}
	useStore(config, &hubtoken.Secret{Secrets: member.CoreV1().Secrets("default"), Name: "hub-kubeconfig-secret"})
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	ask := func() int {
		response, err := client.Get(hub.URL)
		require.NoError(t, err)
		response.Body.Close()
		return response.StatusCode
	}
	require.Equal(t, http.StatusOK, ask())
	accepted = "two"
	_, err = member.CoreV1().Secrets("default").Update(t.Context(), secret("two"), metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, ask(), "the old one is remembered until the hub refuses it")
	require.Equal(t, http.StatusOK, ask())
	assert.Equal(t, []string{"Bearer one", "Bearer one", "Bearer two"}, seen)
}

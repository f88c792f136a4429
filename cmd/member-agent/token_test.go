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
	"k8s.io/client-go/transport"
)

func secret(token string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hub-kubeconfig-secret"},
		Data:       map[string][]byte{tokenKey: []byte(token)},
	}
}

func TestTheTokenForTheHubIsTheSecretsAndReadAgainIfTheHubRefusesIt(t *testing.T) {
	accepted, seen := "one", []string{}
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer "+accepted {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer hub.Close()
	member := fake.NewClientset(secret("one\n"))
	config := &rest.Config{Host: hub.URL}
	tokens := &secretTokens{secrets: member.CoreV1().Secrets("default"), name: "hub-kubeconfig-secret"}
	config.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedTokenSource(tokens)))
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

func TestASecretWithoutATokenIsNamed(t *testing.T) {
	for sentence, test := range map[string]struct {
		client *fake.Clientset
		want   string
	}{
		"it does not exist": {fake.NewClientset(), "not found"},
		"it has no token":   {fake.NewClientset(secret(" ")), "default/hub-kubeconfig-secret has no entry"},
	} {
		t.Run(sentence, func(t *testing.T) {
			tokens := &secretTokens{secrets: test.client.CoreV1().Secrets("default"), name: "hub-kubeconfig-secret"}
			_, err := tokens.Token()
			assert.ErrorContains(t, err, test.want)
		})
	}
}

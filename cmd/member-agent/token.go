package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/oauth2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

const (
	tokenSecretFlag = "hub-token-secret"
	// tokenKey is the key of the token in its Secret, as KubeFleet's documentation makes it.
	tokenKey = "token"
	// tokenAge is how long a token is used before its Secret is read again; one that the hub refuses is read again at once.
	tokenAge     = time.Minute
	tokenTimeout = 10 * time.Second
)

// secretTokens reads the token for the hub from a Secret of this cluster. It stands for the side-car of KubeFleet's agent,
// which does the same, for Secrets in another namespace than the agent's; one of the same can be mounted.
type secretTokens struct {
	secrets corev1client.SecretInterface
	name    string
}

// Token reads the Secret.
func (s *secretTokens) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	secret, err := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the token for the hub: %w", err)
	}
	token := strings.TrimSpace(string(secret.Data[tokenKey]))
	if token == "" {
		return nil, fmt.Errorf("the Secret %s/%s has no entry %q with the token for the hub", secret.Namespace, secret.Name, tokenKey)
	}
	return &oauth2.Token{AccessToken: token, Expiry: time.Now().Add(tokenAge)}, nil
}

// useSecret lets a configuration for the hub take its token from a Secret of the cluster of another configuration.
func useSecret(hub, member *rest.Config, reference string) error {
	namespace, name, err := splitSecret(reference)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(member)
	if err != nil {
		return fmt.Errorf("making a client to read the token for the hub: %w", err)
	}
	tokens := &secretTokens{secrets: client.CoreV1().Secrets(namespace), name: name}
	hub.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedTokenSource(tokens)))
	return nil
}

// splitSecret reads <namespace>/<name>.
func splitSecret(reference string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(reference, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("it must be <namespace>/<name>, such as default/hub-kubeconfig-secret")
	}
	return namespace, name, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/fleetflow/fleetflow/controllers/member/hubtoken"
)

const (
	tokenSecretFlag = "hub-token-secret"
	// tokenAge is how long a token is used before its Secret is read again; one that the hub refuses is read again at once.
	tokenAge     = time.Minute
	tokenTimeout = 10 * time.Second
)

// tokenStore returns where the token for the hub is kept: a Secret of this cluster, which the given configuration reaches, or a file.
func (o *options) tokenStore(member *rest.Config) (hubtoken.Store, error) {
	if o.tokenSecret == "" {
		return hubtoken.File(o.tokenFile), nil
	}
	namespace, name, err := splitSecret(o.tokenSecret)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(member)
	if err != nil {
		return nil, fmt.Errorf("making a client for the Secret with the token for the hub: %w", err)
	}
	return &hubtoken.Secret{Secrets: client.CoreV1().Secrets(namespace), Name: name}, nil
}

// storedTokens reads the token for the hub where it is kept. It stands for the side-car of KubeFleet's agent, which does the
// same, for Secrets in another namespace than the agent's; one of the same can be mounted.
type storedTokens struct{ store hubtoken.Store }

// Token reads the store.
func (s storedTokens) Token() (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(context.Background(), tokenTimeout)
	defer cancel()
	token, err := s.store.Load(ctx)
	if err != nil {
		return nil, err
	}
	return &oauth2.Token{AccessToken: token, Expiry: time.Now().Add(tokenAge)}, nil
}

// useStore lets a configuration for the hub take its token from a store.
func useStore(hub *rest.Config, store hubtoken.Store) {
	hub.Wrap(transport.ResettableTokenSourceWrapTransport(transport.NewCachedTokenSource(storedTokens{store})))
}

// splitSecret reads <namespace>/<name>.
func splitSecret(reference string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(reference, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", errors.New("it must be <namespace>/<name>, such as default/hub-kubeconfig-secret")
	}
	return namespace, name, nil
}

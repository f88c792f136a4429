// Package impersonate stands for tokens of Google Cloud's service accounts (see ../../README.md).
package impersonate

import (
	"context"
	"errors"

	"golang.org/x/oauth2"
)

// CredentialsConfig says whose token is wanted.
type CredentialsConfig struct {
	TargetPrincipal   string
	Scopes, Delegates []string
}

// CredentialsTokenSource returns an error: there are no tokens.
func CredentialsTokenSource(context.Context, CredentialsConfig) (oauth2.TokenSource, error) {
	return nil, errors.New("this Temporal server is built without Google Cloud")
}

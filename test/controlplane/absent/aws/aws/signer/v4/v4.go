// Package v4 stands for signatures of requests to Amazon's services (see ../../../../README.md).
package v4

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Signer signs nothing.
type Signer struct{}

// NewSigner returns what signs nothing.
func NewSigner() *Signer { return &Signer{} }

// SignHTTP returns an error: there are no credentials to sign with.
func (*Signer) SignHTTP(context.Context, aws.Credentials, *http.Request, string, string, string, time.Time) error {
	return aws.ErrAbsent
}

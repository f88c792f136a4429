// Package credentials stands for credentials for Amazon's services (see ../README.md).
package credentials

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// StaticCredentialsProvider gives nothing.
type StaticCredentialsProvider struct{}

// NewStaticCredentialsProvider returns what gives nothing.
func NewStaticCredentialsProvider(string, string, string) StaticCredentialsProvider {
	return StaticCredentialsProvider{}
}

// Retrieve returns an error: there are no credentials.
func (StaticCredentialsProvider) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, aws.ErrAbsent
}

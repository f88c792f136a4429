// Package sts stands for Amazon's service of short-lived credentials (see ../README.md).
package sts

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

type (
	// Client answers every request with an error.
	Client struct{}
	// Options are never read.
	Options struct{}
	// AssumeRoleInput asks for credentials.
	AssumeRoleInput struct{ RoleArn, RoleSessionName, ExternalId *string }
	// AssumeRoleOutput is never made.
	AssumeRoleOutput struct{ Credentials *Credentials }
	// Credentials are never given.
	Credentials struct{ AccessKeyId, SecretAccessKey, SessionToken *string }
)

// NewFromConfig returns a client that answers every request with an error.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// AssumeRole returns an error.
func (*Client) AssumeRole(context.Context, *AssumeRoleInput, ...func(*Options)) (*AssumeRoleOutput, error) {
	return nil, aws.ErrAbsent
}

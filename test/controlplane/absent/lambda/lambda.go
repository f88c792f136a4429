// Package lambda stands for Amazon's service of functions, where Temporal can start workers (see ../README.md).
package lambda

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

type (
	// Client answers every request with an error.
	Client struct{}
	// Options are never read.
	Options struct{}
	// GetFunctionInput asks for a function.
	GetFunctionInput struct{ FunctionName *string }
	// GetFunctionOutput is never made.
	GetFunctionOutput struct{}
	// InvokeInput calls a function.
	InvokeInput struct {
		FunctionName   *string
		InvocationType types.InvocationType
	}
	// InvokeOutput is never made.
	InvokeOutput struct{ FunctionError *string }
)

// NewFromConfig returns a client that answers every request with an error.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// GetFunction returns an error.
func (*Client) GetFunction(context.Context, *GetFunctionInput, ...func(*Options)) (*GetFunctionOutput, error) {
	return nil, aws.ErrAbsent
}

// Invoke returns an error.
func (*Client) Invoke(context.Context, *InvokeInput, ...func(*Options)) (*InvokeOutput, error) {
	return nil, aws.ErrAbsent
}

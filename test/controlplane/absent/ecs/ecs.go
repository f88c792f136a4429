// Package ecs stands for Amazon's service of containers, where Temporal can start workers (see ../README.md).
package ecs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

type (
	// Client answers every request with an error.
	Client struct{}
	// Options are never read.
	Options struct{}
	// DescribeServicesInput asks for services.
	DescribeServicesInput struct {
		Cluster  *string
		Services []string
	}
	// DescribeServicesOutput is never made.
	DescribeServicesOutput struct {
		Services []Service
		Failures []Failure
	}
	// UpdateServiceInput changes a service.
	UpdateServiceInput struct {
		Cluster, Service *string
		DesiredCount     *int32
	}
	// UpdateServiceOutput is never made.
	UpdateServiceOutput struct{}
	// Service is never made.
	Service struct{ Status *string }
	// Failure is never made.
	Failure struct{ Reason, Detail *string }
)

// NewFromConfig returns a client that answers every request with an error.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// DescribeServices returns an error.
func (*Client) DescribeServices(context.Context, *DescribeServicesInput, ...func(*Options)) (*DescribeServicesOutput, error) {
	return nil, aws.ErrAbsent
}

// UpdateService returns an error.
func (*Client) UpdateService(context.Context, *UpdateServiceInput, ...func(*Options)) (*UpdateServiceOutput, error) {
	return nil, aws.ErrAbsent
}

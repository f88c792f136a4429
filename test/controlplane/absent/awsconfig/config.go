// Package config stands for how clients of Amazon's services find their settings (see ../README.md).
package config

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
)

type (
	// LoadOptions are never read.
	LoadOptions struct{}
	// EnvConfig is never made.
	EnvConfig struct{ Credentials aws.Credentials }
)

// LoadDefaultConfig returns an error: there are no settings.
func LoadDefaultConfig(context.Context, ...func(*LoadOptions) error) (aws.Config, error) {
	return aws.Config{}, aws.ErrAbsent
}

// NewEnvConfig returns an error: there are no settings.
func NewEnvConfig() (EnvConfig, error) { return EnvConfig{}, aws.ErrAbsent }

// WithRegion returns an option that nothing reads.
func WithRegion(string) func(*LoadOptions) error { return nil }

// WithClientLogMode returns an option that nothing reads.
func WithClientLogMode(aws.ClientLogMode) func(*LoadOptions) error { return nil }

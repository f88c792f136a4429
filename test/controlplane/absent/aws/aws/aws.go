// Package aws stands for what the clients of Amazon's services share (see ../../README.md).
package aws

import (
	"context"
	"errors"
)

// ErrAbsent is what every client answers.
var ErrAbsent = errors.New("this Temporal server is built without the clients of Amazon Web Services")

type (
	// Config is what clients are made from.
	Config struct{ Credentials CredentialsProvider }
	// ClientLogMode says what clients log.
	ClientLogMode uint64
	// Credentials are never given.
	Credentials struct{ AccessKeyID, SecretAccessKey, SessionToken string }
	// CredentialsProvider gives credentials.
	CredentialsProvider interface {
		Retrieve(context.Context) (Credentials, error)
	}
	// Retryer decides whether a request is repeated.
	Retryer interface{ IsErrorRetryable(error) bool }
)

// String returns a pointer to a text.
func String(value string) *string { return &value }

// Int32 returns a pointer to a number.
func Int32(value int32) *int32 { return &value }

// ToString returns what a pointer points to, or nothing.
func ToString(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

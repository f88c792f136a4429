// Package smithy stands for errors of Amazon's services (see ../README.md).
package smithy

// APIError is the answer of a service that refused.
type APIError interface {
	error
	ErrorCode() string
}

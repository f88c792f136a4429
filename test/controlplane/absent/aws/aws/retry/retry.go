// Package retry stands for how requests to Amazon's services are repeated (see ../../../README.md).
package retry

// Standard repeats nothing.
type Standard struct{}

// NewStandard returns what repeats nothing.
func NewStandard() *Standard { return &Standard{} }

// IsErrorRetryable returns false.
func (*Standard) IsErrorRetryable(error) bool { return false }

// Package types stands for how Amazon's functions are called (see ../../README.md).
package types

// InvocationType says whether an answer is waited for.
type InvocationType string

// InvocationTypeEvent waits for none.
const InvocationTypeEvent InvocationType = "Event"

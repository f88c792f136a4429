// Package contract is what the workflows ask of the activities: names,
// requests and results. Payloads are references and small deltas: never a
// manifest (histories are plain text and limited to 2 MiB a payload) and never
// an error text (those are written to the object concerned). Fields are added,
// never renamed: histories outlive releases.
package contract

// Error types of non-retryable application errors.
const (
	// ErrorUser marks an error that only a person can correct.
	ErrorUser = "UserError"
)

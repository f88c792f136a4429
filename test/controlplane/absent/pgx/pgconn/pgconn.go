// Package pgconn stands for the connections of the driver of PostgreSQL (see ../../README.md).
package pgconn

// PgError is an answer of PostgreSQL, which is never asked.
type PgError struct{ Code, Message string }

// Error returns the message.
func (e *PgError) Error() string { return e.Message }

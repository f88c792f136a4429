// Package pgx stands for the driver of PostgreSQL, where Temporal can keep its data (see ../README.md).
package pgx

import "errors"

// ErrAbsent is what every call answers.
var ErrAbsent = errors.New("this Temporal server is built without the driver of PostgreSQL")

type (
	// ConnConfig is never made.
	ConnConfig struct{}
	// Conn is never made.
	Conn struct{}
	// TypeMap takes types for a connection that is never made.
	TypeMap struct{}
)

// ParseConfig answers that the driver is absent.
func ParseConfig(string) (*ConnConfig, error) { return nil, ErrAbsent }

// TypeMap returns what takes types.
func (*Conn) TypeMap() *TypeMap { return &TypeMap{} }

// RegisterDefaultPgType forgets a type.
func (*TypeMap) RegisterDefaultPgType(any, string) {}

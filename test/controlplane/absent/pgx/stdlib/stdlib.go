// Package stdlib stands for what opens PostgreSQL by the standard library (see ../../README.md).
package stdlib

import (
	"context"
	"database/sql/driver"

	"github.com/jackc/pgx/v5"
)

type (
	// OptionOpenDB is never applied.
	OptionOpenDB func()
	// absent opens nothing.
	absent struct{}
)

// OptionAfterConnect returns an option that does nothing.
func OptionAfterConnect(func(context.Context, *pgx.Conn) error) OptionOpenDB { return func() {} }

// GetConnector returns what answers that the driver is absent.
func GetConnector(pgx.ConnConfig, ...OptionOpenDB) driver.Connector { return absent{} }

// GetDefaultDriver returns what answers that the driver is absent.
func GetDefaultDriver() driver.Driver { return absent{} }

func (absent) Connect(context.Context) (driver.Conn, error) { return nil, pgx.ErrAbsent }

func (absent) Open(string) (driver.Conn, error) { return nil, pgx.ErrAbsent }

func (a absent) Driver() driver.Driver { return a }

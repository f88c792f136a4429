// Package storage stands for Google Cloud Storage, where Temporal can keep old histories (see ../README.md).
package storage

import (
	"context"
	"errors"

	"google.golang.org/api/option"
)

// ScopeFullControl names no right here.
const ScopeFullControl = ""

// ErrObjectNotExist and ErrBucketNotExist are never returned.
var (
	ErrObjectNotExist = errors.New("there is no such object")
	ErrBucketNotExist = errors.New("there is no such bucket")
)

var errAbsent = errors.New("this Temporal server is built without Google Cloud Storage")

type (
	// Client is never made.
	Client struct{}
	// BucketHandle is never made.
	BucketHandle struct{}
	// ObjectHandle is never made.
	ObjectHandle struct{}
	// ObjectIterator is never made.
	ObjectIterator struct{}
	// Writer is never made.
	Writer struct{}
	// Reader is never made.
	Reader struct{}
	// BucketAttrs describes a bucket.
	BucketAttrs struct{ Name string }
	// ObjectAttrs describes an object.
	ObjectAttrs struct{ Name string }
	// Query selects objects.
	Query struct{ Prefix string }
)

// NewClient returns an error: there is no client.
func NewClient(context.Context, ...option.ClientOption) (*Client, error) { return nil, errAbsent }

// Bucket is never called.
func (*Client) Bucket(string) *BucketHandle { return nil }

// Object is never called.
func (*BucketHandle) Object(string) *ObjectHandle { return nil }

// Objects is never called.
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }

// Attrs is never called.
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error) { return nil, errAbsent }

// NewWriter is never called.
func (*ObjectHandle) NewWriter(context.Context) *Writer { return nil }

// NewReader is never called.
func (*ObjectHandle) NewReader(context.Context) (*Reader, error) { return nil, errAbsent }

// Attrs is never called.
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error) { return nil, errAbsent }

// Next is never called.
func (*ObjectIterator) Next() (*ObjectAttrs, error) { return nil, errAbsent }

// Write is never called.
func (*Writer) Write([]byte) (int, error) { return 0, errAbsent }

// Close is never called.
func (*Writer) Close() error { return errAbsent }

// CloseWithError is never called.
func (*Writer) CloseWithError(error) error { return errAbsent }

// Read is never called.
func (*Reader) Read([]byte) (int, error) { return 0, errAbsent }

// Close is never called.
func (*Reader) Close() error { return errAbsent }

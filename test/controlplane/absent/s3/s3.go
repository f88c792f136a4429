// Package s3 stands for Amazon's store of objects, where Temporal can keep old histories (see ../README.md).
package s3

import (
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

type (
	// Client answers every request with an error.
	Client struct{}
	// Options are never read.
	Options struct {
		BaseEndpoint *string
		UsePathStyle bool
	}
	// HeadBucketInput asks whether a bucket is there.
	HeadBucketInput struct{ Bucket *string }
	// HeadBucketOutput is never made.
	HeadBucketOutput struct{}
	// HeadObjectInput asks whether an object is there.
	HeadObjectInput struct{ Bucket, Key *string }
	// HeadObjectOutput is never made.
	HeadObjectOutput struct{}
	// PutObjectInput stores an object.
	PutObjectInput struct {
		Bucket, Key *string
		Body        io.Reader
	}
	// PutObjectOutput is never made.
	PutObjectOutput struct{}
	// GetObjectInput reads an object.
	GetObjectInput struct{ Bucket, Key *string }
	// GetObjectOutput is never made.
	GetObjectOutput struct{ Body io.ReadCloser }
	// ListObjectsV2Input lists objects.
	ListObjectsV2Input struct {
		Bucket, Prefix, Delimiter, ContinuationToken *string
		MaxKeys                                      *int32
	}
	// ListObjectsV2Output is never made.
	ListObjectsV2Output struct {
		IsTruncated           *bool
		NextContinuationToken *string
		CommonPrefixes        []types.CommonPrefix
		Contents              []types.Object
	}
)

// NewFromConfig returns a client that answers every request with an error.
func NewFromConfig(aws.Config, ...func(*Options)) *Client { return &Client{} }

// HeadBucket returns an error.
func (*Client) HeadBucket(context.Context, *HeadBucketInput, ...func(*Options)) (*HeadBucketOutput, error) {
	return nil, aws.ErrAbsent
}

// HeadObject returns an error.
func (*Client) HeadObject(context.Context, *HeadObjectInput, ...func(*Options)) (*HeadObjectOutput, error) {
	return nil, aws.ErrAbsent
}

// PutObject returns an error.
func (*Client) PutObject(context.Context, *PutObjectInput, ...func(*Options)) (*PutObjectOutput, error) {
	return nil, aws.ErrAbsent
}

// GetObject returns an error.
func (*Client) GetObject(context.Context, *GetObjectInput, ...func(*Options)) (*GetObjectOutput, error) {
	return nil, aws.ErrAbsent
}

// ListObjectsV2 returns an error.
func (*Client) ListObjectsV2(context.Context, *ListObjectsV2Input, ...func(*Options)) (*ListObjectsV2Output, error) {
	return nil, aws.ErrAbsent
}

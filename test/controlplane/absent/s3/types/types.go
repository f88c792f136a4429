// Package types stands for what Amazon's store of objects answers with (see ../../README.md).
package types

type (
	// NoSuchBucket is never returned.
	NoSuchBucket struct{}
	// NoSuchKey is never returned.
	NoSuchKey struct{}
	// CommonPrefix is never made.
	CommonPrefix struct{ Prefix *string }
	// Object is never made.
	Object struct{ Key *string }
)

func (*NoSuchBucket) Error() string { return "there is no such bucket" }

func (*NoSuchKey) Error() string { return "there is no such object" }

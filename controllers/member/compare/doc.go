// Package compare finds the fields in which an object on a member differs from what the hub wants.
//
// ignore.go removes fields that the hub does not decide on; compare.go compares the rest value by
// value. Both are pure functions of two objects.
package compare

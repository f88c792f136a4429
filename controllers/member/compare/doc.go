// Package compare tells in which fields an object on a member differs from what the hub wants.
//
// What is no matter of the hub is left out (ignore.go), the rest is compared value by value
// (compare.go). Everything here is a pure function of two objects.
package compare

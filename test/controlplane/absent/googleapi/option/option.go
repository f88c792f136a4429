// Package option stands for the options of Google's clients, of which there are none here (see ../../README.md).
package option

import "golang.org/x/oauth2"

// ClientOption changes nothing.
type ClientOption any

// WithTokenSource returns an option that nothing reads.
func WithTokenSource(oauth2.TokenSource) ClientOption { return nil }

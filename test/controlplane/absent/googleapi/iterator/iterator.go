// Package iterator stands for what ends the lists of Google's clients (see ../../README.md).
package iterator

import "errors"

// Done ends a list.
var Done = errors.New("no more items in iterator")

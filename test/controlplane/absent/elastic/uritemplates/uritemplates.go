// Package uritemplates stands for what makes the addresses of Elasticsearch's API (see ../../README.md).
package uritemplates

import "github.com/olivere/elastic/v7"

// Expand answers that the client is absent.
func Expand(string, map[string]string) (string, error) { return "", elastic.ErrAbsent }

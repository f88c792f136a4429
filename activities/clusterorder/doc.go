// Package clusterorder reads the order in which clusters are updated from the API, for rolling
// updates and stages alike.
//
// The package is pure: it imports no client, no Temporal and no clock.
package clusterorder

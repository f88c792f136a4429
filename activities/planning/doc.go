// Package planning makes a plan of a strategy: it assigns the clusters of a placement to the stages of an update run, and reads the order
// in which clusters are updated, for rolling updates and stages alike. A run freezes what it returns, and kubectl fleet plan previews
// the same. The package is pure: it imports no client, no Temporal and no clock.
package planning

// Package analysis decides about measurements: what one answer of a source comes to, how far a metric is after so many of them,
// and how far an analysis is; and it puts templates and arguments together. It is pure: package measure asks the sources.
package analysis

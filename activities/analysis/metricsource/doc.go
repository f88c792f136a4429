// Package metricsource asks whatever metrics are measured at: the servers of MetricSources, with their credentials and within their
// limits, at addresses that may be called, and objects that metrics may look at. What the answers come to, package analysis says.
package metricsource

// Package bench has the figures of the product, measured on a real hub with a real Temporal server and simulated members. Its
// tests need the build tag bench; see the README beside it.
package bench

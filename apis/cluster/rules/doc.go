// Package rules answers questions about member clusters that more than one program asks, each once: since when one is silent, since when
// it has a taint, for how long its owner may delay it, what of a report fits its definition. It is pure, and knows the types alone.
package rules

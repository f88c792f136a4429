// Package scheduler decides which clusters a placement goes to: facts in, decision
// out. It is built like the framework of the Kubernetes scheduler: filters, one
// file each, say which clusters cannot take the placement; scores rank the others;
// one file per placement type picks among them.
//
// The package is pure: it imports no client, no Temporal, and time is a fact.
package scheduler

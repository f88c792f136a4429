// Package rehearsal asks members what a change would do there: it writes one MemberQuestion for each cluster of a ClusterRehearsal or
// Rehearsal, counts what members answer into its status, and deletes what is over. A member costs the hub three writes: the question,
// the answer, and the deletion. Everything begins again from what is stored if another agent leads.
package rehearsal

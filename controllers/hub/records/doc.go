// Package records keeps AuditRecords of update runs. Which there are to be follows from a run, its approval requests and the records
// that there are: after a crash the same are written again under the same names. The agent that leads writes them, one
// after the other for each run, and deletes them after their time.
package records

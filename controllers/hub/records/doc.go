// Package records keeps AuditRecords of update runs, placements, members, holds, evictions and overrides. Which there are to be follows from
// an object, what belongs to it and the records that there are: after a crash the same are written again. The agent that leads writes them, one
// after the other for each object, and deletes them after their time.
package records

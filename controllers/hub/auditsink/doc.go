// Package auditsink has records delivered to AuditSinks, and says in their status how far that has come.
package auditsink

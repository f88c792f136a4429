// Package delivery brings AuditRecords to the destinations that ask for them: the agent that leads has a queue for each destination, tries again what
// has failed, and writes on a record who has it. A crash between the answer of a destination and that mark repeats a delivery.
package delivery

// Package notification tells people in NotificationChannels what AuditRecords say, as NotificationRules ask for it: which records
// are due where and together (pure), what a message says, and how it is sent.
package notification

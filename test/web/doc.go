// Package web tests the dashboard in a real browser: Debian's Chromium without a window, on `kubectl fleet dashboard` with a
// hub in memory. What the pages say is compared by the golden pages of cmd/kubectl-fleet/command; here is what only a browser
// can tell: that scripts and the policy of the pages get along, that pages change by themselves, can be used by keyboard,
// without script, on a phone and in the dark, and what becomes of them when the hub, the dashboard or the session goes away.
package web

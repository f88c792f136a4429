// Package outbound calls servers outside of the fleet: at addresses that may be called, by no proxy, without following redirects, within
// bounds of time and length, with credentials of Secrets that are meant for them. What it says about an answer shows none of these.
package outbound

// Package member measures what the member agent is fast and cheap enough at. See figures_test.go for how to run it.
package member

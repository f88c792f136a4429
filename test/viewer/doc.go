// Package viewer watches a program from outside that shows something to people: the terminal it draws on, picture by
// picture, and the requests it makes of an API server.
package viewer

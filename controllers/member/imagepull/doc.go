// Package imagepull has the nodes of a member pull images before a change needs them. For that it starts Pods of one form only, whose
// containers run nothing, and removes them at once.
package imagepull

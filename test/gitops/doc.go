// Package gitops checks what deploy/samples/git tells Argo CD and Flux about the fleet's objects, with the engines that those
// use: gopher-lua for the scripts of Argo CD, and Flux's own evaluator of expressions. The objects in testdata are as a real hub
// agent has left them, without what the health does not depend on. It is a module of its own, as the product needs none of this.
package gitops

// Package differential proves on a real API server what Applied says: that an object is what its manifest says. It draws manifests
// of every built-in kind that is placed and of a custom resource with every type of list in two versions, changes them, and has the
// agent's engine apply them one after another, client-side and server-side, also to objects that other tools have created. After each apply
// the object is compared with what a server-side apply of the same manifest by a fresh manager makes where there is no object. What
// was drawn comes from a seed alone, and what fails is made small before it is printed.
package differential

// Package stagetask shows that a type of stage task is one file and one line: its tests add a type that the product
// does not have, and a run waits for it, shows that in every picture of a run, and passes. They do so with a brake as well.
package stagetask

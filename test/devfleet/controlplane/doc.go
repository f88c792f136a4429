// Package controlplane describes what a local fleet runs and sets it up: the components with their arguments, the
// certificates, tokens and kubeconfigs, and, once the API servers answer, definitions, nodes and MemberClusters.
// Components and the kubeconfigs are pure functions of the fleet's state; Prepare writes files; SetUpHub and
// SetUpMember write to the clusters.
package controlplane

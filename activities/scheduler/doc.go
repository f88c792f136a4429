// Package scheduler decides which clusters a placement goes to: facts in, decision
// with reasons out. A cycle is a row of phases, each of which makes one value of the
// facts and of the values before it, and changes none of these:
//
//	sortBindings         holdings  what the placement has where, of the latest policy and of earlier ones
//	findLeaves           leaves    which clusters it is to leave, or to withhold replicas from
//	filterClusters       filtered  which clusters can take it, and why others cannot
//	pickClusters         picks     which of these it goes to, the best scored first
//	divideWorkloads      assigned  how the replicas of workloads are divided over them
//	finishCycle          Decision  all of it, in words
//
// Filtering, scoring and choosing are built like the framework of the Kubernetes scheduler:
//
//	PostBatch            how many clusters are picked before the others are looked at again
//	PreFilter, Filter    which clusters cannot take the placement, and why
//	PreScore, Score      how the others rank
//	Choose               which of the others are picked, where all of them would be
//
// What happens at these points is up to plug-ins. Each is a package below plugins and a
// line in the profile of every placement type it is for; see profiles. Picking itself is
// one file per placement type. Dividing is the same for all of them, and has no plug-ins.
//
// If the policy has affinity groups, clusters are picked from one after the other of them
// until one has enough; see groups.
//
// The package is pure: it imports no client, no Temporal, and time is a fact. The same
// facts give the same decision, whatever their order.
package scheduler

//go:build integration

package integration

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// promise is one spec: a sentence and what shows that it is true.
type promise struct {
	sentence string
	keep     func(*spec)
}

// together are specs that leave the fleet alone; several run at a time.
var together = []promise{
	{"a namespace and all that is in it reach every member and the placement becomes available", namespaceReachesAllMembers},
	{"a changed ConfigMap reaches the members one at a time", changeGoesOneByOne},
	{"what a user applies to a binding on the server side stays the user's", whatUsersApplyToBindingsStaysTheirs},
	{"PickFixed places on the named clusters and moves with its list", pickFixedPlacesOnTheNamedClusters},
	{"PickN with a required label takes the highest name first", pickNTakesTheHighestName},
	{"PickN that finds too few clusters says so and places on those it finds", pickNThatIsNotFulfilledSaysSo},
	{"a placement waits for its required override, is rescheduled, and is left to another scheduler", placementIsScheduledOtherwise},
	{"PickN spreads over the values of a label, and shrinks by the ranks it recorded", pickNSpreadsOverALabel},
	{"a spread keeps clusters out until the groups change", spreadKeepsClustersOutUntilGroupsChange},
	{"PickN prefers clusters, and keeps those it has picked", pickNPrefersAndKeepsWhatIsPicked},
	{"a cluster-scoped object is placed by its name", clusterScopedObjectIsPlacedByName},
	{"objects in envelopes reach the members and have no effect on the hub", envelopesReachTheMembersOnly},
	{"a broken envelope is named with its key and keeps nothing else from being placed", brokenEnvelopeSaysWhatIsWrong},
	{"of an object that an envelope has twice, one is applied and the other reported", objectTwiceInAnEnvelope},
	{"the snapshots of an override follow it, and go with it", snapshotsFollowTheOverride},
	{"overrides change what their clusters get, at once if they were made for the placement", overridesChangeWhatTheirClustersGet},
	{"an override of a placement that does not exist says so, and what may be meant", overrideOfNothingSaysSo},
	{"labels of a cluster decide which override applies to it", labelsOfAClusterDecideWhichOverrideApplies},
	{"an override that fails is shown on its clusters, and mended", overrideThatFailsIsShownOnItsClusters},
	{"a run freezes the overrides it starts with", runFreezesTheOverridesItStartsWith},
	{"an override that is deleted stays for a run that has frozen it", deletedOverrideStaysForARunThatHasFrozenIt},
	{"under External nothing is placed and every change is a snapshot", externalPlacesNothing},
	{"what a member loses comes back", whatAMemberLosesComesBack},
	{"a namespace that a member has is taken over never, if it does not differ, or always", preExistingNamespaceIsTakenOverAsToldTo},
	{"an object is taken over once it does not differ any more, and stays if it never was", objectIsTakenOverOnceItDoesNotDiffer},
	{"drifts are overwritten or told, as the placement says", driftsAreOverwrittenOrToldAsToldTo},
	{"drifts go with new revisions, and what is deleted comes back", driftsGoWithNewRevisionsAndDeletions},
	{"differences are reported and nothing is written", differencesAreReportedAndNothingIsWritten},
	{"what a member does not have differs as a whole", whatIsAbsentDiffersAsAWhole},
	{"a definition and a resource of it are applied in order, and the resource tells whether it is available", definitionAndResourceAreAppliedInOrder},
	{"a resource of a kind that a member lacks says so, and is applied once the kind is there", kindThatComesLaterIsAppliedThen},
	{"a Job is available once one of its pods is", jobIsAvailableOnceAPodIs},
	{"what leaves a placement is pruned in reverse order", whatIsPrunedGoesLastFirst},
	{"a namespace that is deleted on a member comes back with all that is in it, once nobody holds it", namespaceThatEndsComesBack},
	{"the status of a resource is mirrored on the original, or on the Work", statusIsMirroredOnTheOriginal},
	{"a run reports differences only, if that is how the placement applies", runReportsDifferencesOnly},
	{"a second placement of an object is refused until the first is gone", secondPlacementOfAnObjectIsRefused},
	{"the end of a placement keeps what others have in its namespace", endOfOnePlacementKeepsWhatOthersHave},
	{"an object that two placements want stays until neither does, however they end", everyPairOfEndsOfPlacements},
	{"so does an object that is in an envelope of one of them, or of each", everyPairOfEndsOfEnvelopes},
	{"what controllers of the hub have made is not placed, and members keep their own", byProductsAreNotPlaced},
	{"finalizers of the hub are not placed", finalizersOfTheHubStayThere},
	{"a placement of which an object is too large is not available", largeObjectIsLeftOut},
	{"a removal that a member refuses is told with its words", refusedRemovalIsTold},
	{"owners outside the fleet share an object only if they may", ownersOutsideTheFleetShareIfTheyMay},
	{"what the clusters decide on is kept", whatClustersDecideOnIsKept},
	{"conflicts with other appliers name the fields and who owns them", conflictsNameFieldsAndOwners},
	{"a field that must not change is named", immutableFieldIsNamed},
	{"what a Secret keeps is never shown", secretsAreNeverShown},
	{"a ResourcePlacement places what is in its namespace and nothing else", resourcePlacementPlacesItsNamespace},
	{"a ResourcePlacement whose namespace a member lacks says so, and goes on once it is there", missingNamespaceOnAMemberHeals},
	{"an object is placed by one placement, whatever the kinds of two", placementsOfBothKindsDoNotShareAnObject},
	{"placements of both kinds whose Works have one name are told apart", worksOfOneNameAreToldApart},
	{"a ResourcePlacement selects nothing outside its namespace", resourcePlacementSelectsNothingElse},
	{"a ResourcePlacement tells drifts and differences, and writes nothing where it only reports", namespacedPlacementTellsDrifts},
	{"a ResourcePlacement picks a number of clusters, and leaves what it placed, if it is to", namespacedPlacementPicksSome},
	{"the longest names that there may be are placed and rolled out", longestNamesAreRolledOut},
	{"a run in a namespace passes its gates, stops and goes on, and is rolled back", namespacedRunIsSteered},
	{"a run in a namespace has a cluster tried again, and goes on without it", namespacedRunSkipsAndRetries},
	{"a run in a namespace whose names are of another one says so", namespacedRunNamesItsOwn},
	{"a namespace that is deleted on the hub in the middle of a run takes all with it once a user accepts", namespaceDeletedInTheMiddleOfARun},
	{"a namespace that is deleted on a member in the middle of a run comes back", memberLosesTheNamespaceInTheMiddleOfARun},
	{"the status of a placement can be read in the namespace that it selects", statusIsCopiedIntoTheNamespace},
	{"a controller takes traffic off clusters before they are updated", sampleControllerDrainsBeforeUpdates},
	{"a deleted placement leaves nothing on hub and members", deletedPlacementLeavesNothing},
	{"a deleted placement leaves what it placed, if it is to", deletedPlacementCanLeaveWhatItPlaced},

	{"what is placed of a namespace that is deleted on the hub stays until a user accepts", deletedNamespaceStaysOnMembers},
	{"a namespace that is deleted on the hub is removed at once, if the placement says so", deletedNamespaceGoesAtOnceWhereThePlacementSaysSo},
	{"what a placement has placed whose namespace is deleted on the hub stays until a user accepts", namespaceOfAPlacementThatIsDeletedStays},
	{"a placement whose namespace is deleted on the hub can leave what it has placed", namespaceOfAPlacementThatIsDeletedCanLeaveWhatWasPlaced},
	{"a placement that is deleted before its namespace goes at once", placementThatIsDeletedBeforeItsNamespaceGoesAtOnce},
	{"a placement whose namespace is deleted on the hub goes at once, if it says so", namespaceThatIsDeletedGoesAtOnceWhereThePlacementInItSaysSo},
	{"ordinary commands of an administrator delete nothing that the fleet keeps for itself", deletionsAreRefused},
	{"a selection that a label empties is held until the label is back, or the placement opts out", selectionEmptiedByALabelIsHeld},
	{"a selection that loses many objects is held until a user accepts", selectionThatShrinksIsHeld},

	{"a cluster that is evicted is picked again", evictedClusterIsPickedAgain},
	{"a budget blocks evictions until it is changed", budgetBlocksEvictions},
	{"evictions that come at once spend a budget once", evictionsAtOnceShareABudget},
	{"evictions that cannot be say why", evictionsThatCannotBe},
	{"budgets that do not fit the placement block evictions", misconfiguredBudgetsBlockEvictions},
	{"evictions are decided under External, too", evictionsUnderExternal},
	{"a binding that somebody deletes comes back", deletedBindingComesBack},

	{"a run passes soak and approvals given with kubectl", bothGatesOpenThrough(kubectlChannel)},
	{"a run passes soak and approvals given by a Temporal signal", bothGatesOpenThrough(signalChannel)},
	{"a run passes soak and approvals given by a Temporal update", bothGatesOpenThrough(updateChannel)},
	{"a run with an older index rolls back", olderIndexRollsBack},
	{"a run without an index takes the latest", omittedIndexTakesTheLatest},
	{"the deletion stage clears clusters that are no longer picked", deletionStageClearsWhatIsNoLongerPicked},
	{"a deleted run takes its approval requests along and leaves the bindings", deletedRunTakesItsRequestsAlong},
	{"a run whose placement is deleted fails and says so", deletedPlacementEndsItsRun},
	{"an approval left over from an earlier run does not count", leftoverApprovalDoesNotCount},
	{"a run that was stopped goes on when it is resumed", stoppedRunGoesOnWhenResumed},
	{"a hold stops a rolling update, and lets it go on when it is released", holdStopsARollingUpdate},
	{"a hold stops an update run, which stands still, and lets it go on when it is released", holdStopsARun},
	{"a hold that expires lets go by itself", holdThatExpiresLetsGo},
	{"a run whose workflow is cancelled from Temporal stops", cancelFromTemporalStopsTheRun},
	{"a run that is stopped while it soaks soaks on", soakGoesOnWhileARunIsStopped},
	{"a run whose workflow is reset repeats nothing", resetInTheMiddleRepeatsNothing(firstTask)},
	{"a run whose workflow is reset to its last task repeats nothing", resetInTheMiddleRepeatsNothing(lastTask)},
	{"a run whose workflow is reset to before a stage repeats nothing", resetInTheMiddleRepeatsNothing(beforeTheLastStage)},
	{"a run whose workflow is terminated is started again", terminatedRunIsStartedAgain},
	{"Temporal shows where a run stands", temporalShowsWhereARunStands},
	{"an approval before a stage holds the stage", gateBeforeAStageHoldsIt},
	{"a Go program places, rolls out, approves and waits for the end", sampleProgramRollsOut},
	{"a stage passes, waits or is taken back by what is measured", analysisDecides},
	{"a stage passes or is taken back by what its clusters report of an object", analysisLooksAtObjects},
	{"a cluster that would refuse the change is not touched", clusterThatRefusesIsNotTouched},
	{"images are there before the stage", imagesAreThereBeforeTheStage},
	{"a run passes or ends by what an object of the hub says, and no Secret is read", analysisReadsTheHub},
	{"a run passes or ends by how a Job ends, and what it has not measured is stopped", analysisRunsAJob},
	{"a stage waits for its window, and goes on when the clock says so", runWaitsForItsWindow},
	{"a stage that skips closed clusters goes on with those that are open", stageGoesOnWithTheOpenClusters},
	{"a rollback goes despite a freeze, waits for a hold, and goes by an exemption", rollbackPassesAFreeze},
	{"a run ends when the clusters of its placement change", changedPolicyEndsTheRun},
	{"a strategy that is changed does not concern a run under way", changedStrategyDoesNotConcernARun},
	{"a stage goes on without clusters that fail within its budget", stageGoesOnWithinItsBudget},
	{"a cluster is done once it has been available for the time that its stage asks for", clustersAreDoneOnceTheyHaveBeenAvailable},
	{"a run beyond its failure budget is rolled back", runBeyondItsBudgetIsRolledBack},
	{"a run beyond its failure budget pauses, and goes on once its clusters are tried again", pausedRunGoesOnOnceFailuresAreDealtWith},
	{"a cluster is skipped in a running run, which is rolled back afterwards", clusterIsSkippedAndAnotherRolledBack},
	{"a run that waits, or stands still, is rolled back", runUnderWayIsRolledBack},
	{"runs start by themselves, each after the other", runsStartByThemselves},
	{"a frozen run goes on with the clusters there were", frozenRunGoesOnWithTheClustersThereWere},
	{"clusters in no stage come last, if they are to", clustersInNoStageComeLast},
	{"maxConcurrency bounds the clusters of a stage in flight", maxConcurrencyBoundsAStage},
	{"the history of a run stays short", historyStaysShort},
	{"every look-up of the how-to works", everyLookUpOfTheHowToWorks},
	{"every look-up of the guides works", everyLookUpOfTheGuidesWorks},

	{"the command line plans a run, follows it, and looks back at it", commandLineShowsARollout},
	{"the command line says why a cluster is picked, as the hub does", commandLineSaysWhy},
	{"the command line tells beforehand, and with its exit code, that a run fails", commandLineTellsFailure},

	{"the command line steers a run, and takes it back", commandLineSteersARun},
	{"an approval is clicked in a browser, and the members have the change", approvalIsClicked},
	{"the command line has a run try a cluster again, and go on without it", commandLineSkipsAndRetries},
	{"the command line evicts within a budget", commandLineEvicts},
	{"the command line places what is on the hub, and leaves it on the members", commandLineFederates},

	{"a divided Deployment is scaled at once, as no other version", dividedDeploymentIsScaled},
	{"a divided Deployment is scaled under External without a run", dividedDeploymentIsScaledUnderExternal},
	{"replicas move to other clusters, which grow first", replicasMoveWithoutMissingAny},
	{"replicas go where there is room, and wait where there is none", replicasGoWhereThereIsRoom},
	{"replicas that no node of a cluster takes run on others", whatNoNodeTakesRunsElsewhere},

	{"dashboard and alerts find the metrics that they use", dashboardsFindTheirMetrics},

	{"runs that cannot begin say what is wrong", badRunsSayWhatIsWrong},
	{"a cluster that somebody's policy refuses keeps nobody waiting", refusedClusterKeepsNobodyWaiting},
	{"a run of a placement that is not External is refused", runOfARollingPlacementIsRefused},
	{"selectors that cannot be followed say what is wrong", badSelectorsSayWhatIsWrong},
	{"selectors that were mended are followed", mendedSelectorsArePlaced},
	{"an object that two selectors select is refused until one of them does", objectSelectedTwiceIsRefused},
	{"updates that do not fit are refused with a reason", updatesThatDoNotFitAreRefused},
	{"two users vote for a stage", twoUsersVoteForAStage},
	{"who has approved, stopped, resumed and skipped what is on record", recordsTellWhoDidWhat},
	{"signals that do not fit are reported on the run", signalsThatDoNotFitAreReported},
	{"an approval that comes early does not open a later gate", earlySignalDoesNotOpenALaterGate},
	{"taking an accepted approval back has no effect", takingAnApprovalBackHasNoEffect},
}

// alone are specs that take parts of the fleet down, one after the other.
var alone = []promise{
	{"a run waits for a member that is away", runWaitsForAMemberThatIsAway},
	{"a run whose workflow is cancelled waits for its cluster in flight", cancelledRunWaitsForItsClusterInFlight(runItself)},
	{"a run whose stage is cancelled waits for its cluster in flight", cancelledRunWaitsForItsClusterInFlight(itsStaging)},
	{"a run that is resumed while its cancelled workflow ends goes on", resumedWhileItsCancelledWorkflowEnds},
	{"a run whose workflow is reset with a cluster in flight repeats nothing", resetWithAClusterInFlightRepeatsNothing},
	{"a run that is deleted is abandoned at once", deletedRunIsAbandonedAtOnce},
	{"a later run takes over a cluster that an earlier one is under way with", laterRunTakesOver},
	{"a run whose workflow this build cannot replay is started again, and told so", stuckRunIsStartedAgain},
	{"runs go on after a build that panics in a workflow has been taken back, and are told so", panickingBuildIsTakenBack},
	{"a run survives the hub agent's death right after its creation", survives(killHubAgent, rightAfterCreation, kubectlChannel)},
	{"a run survives the hub agent's death during the first stage", survives(killHubAgent, duringFirstStage, kubectlChannel)},
	{"a run survives the hub agent's death during the soak", survives(killHubAgent, duringSoak, updateChannel)},
	{"a run survives the hub agent's death while it waits for an approval", survives(killHubAgent, waitingForApproval, signalChannel)},
	{"what is on record of a run survives the hub agent's death, and outlives the run", recordsOutliveTheRun},
	{"that a hold is lifted is on record, also of one that is while no hub agent runs", recordsOfWhatIsGone},
	{"a run survives a restart of Temporal", survives(restartTemporal, duringSoak, signalChannel)},
	{"a run survives the loss of Temporal's database during the first stage", survives(wipeTemporal, duringFirstStage, signalChannel)},
	{"a run survives the loss of Temporal's database during the soak", survives(wipeTemporal, duringSoak, updateChannel)},
	{"nothing begins on a cluster whose owner asks for that, whatever dies meanwhile, for half a day at most", busyClusterIsLeftAlone},
	{"a cluster is replaced by another, which dies while it takes over: the old copy stays until the new one is seen available", newClusterDiesInBetween},
	{"a window closes on a run, which goes on when it opens, whatever dies meanwhile", windowClosesOnARun},
	{"a run survives the death of the hub's API server during the soak", survives(killAPIServer, duringSoak, kubectlChannel)},
	{"a hub agent that is started while its API server is away waits for it, and works once it is back", agentWaitsForItsAPIServer},
	{"a run survives the hub agent's death in its deletion stage", survivesInDeletionStage(killHubAgent)},
	{"a run survives the loss of Temporal's database while it rolls back", survivesInRollback(wipeTemporal)},
	{"controllers and workers in processes of their own share the work", rolesShareTheWork},
	{"of two hub agents one takes over when the other, which leads, dies in the middle", oneOfTwoAgentsDies(theOneThatLeads)},
	{"of two hub agents one takes over when the other, which waits for a cluster, dies in the middle", oneOfTwoAgentsDies(theOneThatWaits)},
	{"of hub agents of two builds only those of the one that leads take steps, with the database or without", tasksGoToTheBuildThatLeads},
	{"a kind whose propagation is disabled stays on the members as it is", disabledKindStaysOnMembers},
	{"a hub agent that is restricted to namespaces places what is in them, and reads nothing else", restrictedHubAgentPlacesItsNamespaces},
	{"a member agent that is restricted to namespaces applies what is in them, and refuses the rest", restrictedMemberAgentKeepsToItsNamespaces},
	{"a taint and an eviction drain a cluster", taintAndEvictDrains},
	{"evictions survive the hub agent's death", evictionsSurviveTheHubAgent},
	{"without Temporal what is decided goes on", withoutTemporalWhatIsDecidedGoesOn},
	{"properties decide who is picked, at once when they change", propertiesDecideWhoIsPicked},
	{"taints keep new placements off and leave what is placed", taintsKeepNewPlacementsOff},
	{"a placement takes the first affinity group that fits, goes back to it, and moves nothing if none does", affinityGroupsFollowEachOther},
	{"a placement leaves a cluster for another when the seconds of a toleration are over", placementsFailOver},
	{"a placement leaves a cluster for another because what is placed there is not available", applicationsFailOver},
	{"replicas of a divided Deployment go from ill clusters to others, and come back only for a reason", replicasFailOver},
	{"a placement that leaves a cluster takes values of the status along as labels", valuesOfTheStatusGoAlong},
	{"clusters that join fill up what is missing, and those that leave are replaced", clustersComeAndGo},
	{"a cluster joins, gets what is placed, leaves, and joins again under its name", clusterJoinsAndLeaves},
	{"a member whose agent is dead is removed after a while, and may join again", deadMemberIsRemoved},
	{"the command line drains a member", commandLineDrains},
	{"the command line has a cluster join, leave, and join again", commandLineJoins},
	{"Applications of Argo CD go out in stages, each cluster with its environment's", applicationsGoOutInStages},
	{"an uninstalled hub agent removes nothing, and goes on when it is back", uninstalledHubAgentRemovesNothing},
	{"where members report their namespaces, placements go to members that have them", namespacesOfMembersDecide},
	{"when nothing changes no workflow is open and nothing is written", nothingHappensByItself},
}

func TestFleet(t *testing.T) {
	t.Run("together", func(t *testing.T) {
		leaveAsFound(t, shared)
		beginJudgement(t)
		for _, p := range together {
			t.Run(p.sentence, func(t *testing.T) {
				t.Parallel()
				p.keep(newSpec(t))
			})
		}
	})
	t.Run("replays", requireReplayable)
	t.Run("alone", func(t *testing.T) {
		for _, p := range alone {
			t.Run(p.sentence, func(t *testing.T) {
				leaveAsFound(t, shared)
				p.keep(newSpec(t))
			})
		}
	})
	t.Run("replays in the end", requireReplayable)
}

// nothingHappensByItself looks at everything that there is at the end of the suite.
func nothingHappensByItself(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	running, err := s.executions(s.Context(), `ExecutionStatus = "Running"`)
	require.NoError(s, err)
	for _, e := range running {
		s.awaitEndOf(e)
	}
	s.requireQuiet()
	require.Eventually(s, func() bool {
		running, err = s.executions(s.Context(), `ExecutionStatus = "Running"`)
		return err == nil && len(running) == 0
	}, patience, visibilityEvery, "open workflows")
}

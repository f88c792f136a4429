//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

// notStarted is the message of a run that cannot be initialized.
func notStarted(why string) string {
	return "Cannot start: " + why + clientError
}

// clientError is how the message of a run ends that something refuses that its user can change.
const clientError = " (cannot continue the ClusterStagedUpdateRun: failed to initialize the clusterStagedUpdateRun: failed to process the request due to a client error)"

// badRun is a run that cannot be initialized.
type badRun struct {
	// stages of its strategy; nil if there is no strategy.
	stages []placementv1beta1.StageConfig
	change func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun)
	// message is why; NAME stands for the spec's name.
	message string
}

func noChange(*spec, *placementv1beta1.ClusterStagedUpdateRun) {}

var badRuns = map[string]badRun{
	"unknown placement": {
		stages: []placementv1beta1.StageConfig{everywhere()},
		change: func(s *spec, run *placementv1beta1.ClusterStagedUpdateRun) {
			run.Spec.PlacementName = s.name + "-nosuch"
		},
		message: "parent clusterResourcePlacement not found",
	},
	"unknown strategy": {
		change:  noChange,
		message: "referenced clusterStagedUpdateStrategy not found: `NAME-unknown-strategy`",
	},
	"unknown snapshot index": {
		stages:  []placementv1beta1.StageConfig{everywhere()},
		change:  func(_ *spec, run *placementv1beta1.ClusterStagedUpdateRun) { run.Spec.ResourceSnapshotIndex = "7" },
		message: "no clusterResourceSnapshots with index `7` found for clusterResourcePlacement `NAME`",
	},
	"cluster in two stages": {
		stages:  []placementv1beta1.StageConfig{staging(), everywhere()},
		change:  noChange,
		message: "cluster `member-2` appears in more than one stages: its labels match those of `staging` and of `everywhere`, narrow the labelSelector of one",
	},
	"cluster in no stage": {
		stages:  []placementv1beta1.StageConfig{canary()},
		change:  noChange,
		message: "some clusters are not placed in any stage, total 1, showing up to 10: member-2",
	},
	"sorting label that is no integer": {
		stages:  []placementv1beta1.StageConfig{staging(), {Name: "canary", LabelSelector: in("canary"), SortingLabelKey: new("environment")}},
		change:  noChange,
		message: "the sorting label `environment:canary` on cluster `member-1` is not valid: it must be an integer",
	},
}

func badRunsSayWhatIsWrong(s *spec) {
	s.externalPlacement()
	before := s.bindings()
	for name, bad := range badRuns {
		s.Run(name, func(t *testing.T) {
			inner := *s
			inner.T = t
			inner.requireRefused(strings.ReplaceAll(name, " ", "-"), bad)
		})
	}
	require.ElementsMatch(s, before, s.bindings(), "no binding was touched")
	s.requireNoWorks()
	s.requireNothingOn(allMembers...)
	s.requireQuiet()
}

func (s *spec) requireRefused(suffix string, bad badRun) {
	s.Helper()
	run := s.run(suffix, "0")
	run.Spec.StagedUpdateStrategyName = run.Name
	if bad.stages != nil {
		s.strategyNamed(run.Name, bad.stages...)
	}
	bad.change(s, run)
	s.create(run)
	s.requireNotInitialized(run, strings.ReplaceAll(bad.message, "NAME", s.name))
}

// requireNotInitialized asserts that a run is over before it began, with the sentence that says why.
func (s *spec) requireNotInitialized(run *placementv1beta1.ClusterStagedUpdateRun, message string) {
	s.Helper()
	ended := s.awaitEnd(run)
	s.requireConditions(ended.Status.Conditions, ended.Generation,
		said{"Initialized", "False", "UpdateRunInitializedFailed", notStarted(message)})
	require.Empty(s, ended.Status.StagesStatus)
	s.awaitClosed(workflowOf(run))
	out, err := s.command(s.Context(), "kubectl", "get", "csur", run.Name)
	require.NoError(s, err, out)
	require.Contains(s, out, "False")
}

func runOfARollingPlacementIsRefused(s *spec) {
	s.namespaceWithConfigMap()
	s.place()
	s.awaitAvailable("0")
	s.strategy(everywhere())
	run := s.startRun("run", "0")
	s.requireNotInitialized(run, "parent clusterResourcePlacement does not have an external rollout strategy, current strategy: RollingUpdate; set spec.strategy.type to External")
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
	s.requireQuiet()
}

// badSelectors are resource selectors that cannot be followed, with what the placement says to that.
var badSelectors = map[string]struct {
	term    placementv1beta1.ResourceSelectorTerm
	message string
}{
	"kube": {
		placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "kube-system"},
		`The resource selectors are invalid: resourceSelectors[0] selects namespace "kube-system", which is reserved: namespaces named default, kube-* and fleet-* are never placed; move what you want to place to another namespace`,
	},
	"default": {
		placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "default"},
		`The resource selectors are invalid: resourceSelectors[0] selects namespace "default", which is reserved: namespaces named default, kube-* and fleet-* are never placed; move what you want to place to another namespace`,
	},
	"fleet": {
		placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "fleet-member-member-1"},
		`The resource selectors are invalid: resourceSelectors[0] selects namespace "fleet-member-member-1", which is reserved: namespaces named default, kube-* and fleet-* are never placed; move what you want to place to another namespace`,
	},
	"kind": {
		placementv1beta1.ResourceSelectorTerm{Group: "example.com", Version: "v1", Kind: "Widget", Name: "w"},
		`The resource selectors are invalid: resourceSelectors[0] selects Widget (example.com/v1), a kind the hub does not serve: correct group, version and kind, or install its CustomResourceDefinition on the hub`,
	},
	"version": {
		placementv1beta1.ResourceSelectorTerm{Group: "rbac.authorization.k8s.io", Version: "v1beta1", Kind: "ClusterRole", Name: "view"},
		`The resource selectors are invalid: resourceSelectors[0] selects ClusterRole (rbac.authorization.k8s.io/v1beta1), but the hub serves this kind as v1: correct the version`,
	},
}

func badSelectorsSayWhatIsWrong(s *spec) {
	for name, bad := range badSelectors {
		s.Run(name, func(t *testing.T) {
			inner := newSpec(t)
			inner.place(selecting(bad.term))
			inner.requireInvalid(bad.message)
			inner.requireNoWorks()
			inner.requireNothingOn(allMembers...)
			inner.requireQuiet()
		})
	}
}

// objectSelectedTwiceIsRefused selects a namespace by its name and by a label, and takes the second selector away again.
func objectSelectedTwiceIsRefused(s *spec) {
	byName := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: s.name}
	byLabel := placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{corev1.LabelMetadataName: s.name},
	}}
	s.namespaceWithConfigMap()
	s.place(selecting(byName, byLabel))
	s.requireInvalid(fmt.Sprintf(`The resource selectors are invalid: resourceSelectors[0] and resourceSelectors[1] both select Namespace (v1) %q: `+
		`change one of them so that each object is selected once, or remove it (found duplicate resource)`, s.name))
	s.requireNoWorks()
	s.requireNothingOn(allMembers...)

	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) { selecting(byName)(&p.Spec) })
	s.awaitValue(value1, allMembers...)
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
}

// requireInvalid asserts that the placement says what is wrong with its selectors, and nothing else.
func (s *spec) requireInvalid(message string) {
	s.Helper()
	placed := await(s, s.hub, s.placement(), "to call its selectors invalid", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement("Scheduled"), "False", p.Generation)
	})
	s.requireConditions(placed.Status.Conditions, placed.Generation, said{ofPlacement("Scheduled"), "False", "InvalidResourceSelectors", message})
}

// mendedSelectorsArePlaced goes from a reserved namespace to one that may be placed.
func mendedSelectorsArePlaced(s *spec) {
	s.namespaceWithConfigMap()
	s.place(selecting(placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Namespace", Name: "kube-public"}))
	await(s, s.hub, s.placement(), "to call its selectors invalid", func(p *placementv1beta1.ClusterResourcePlacement) error {
		return has(p.Status.Conditions, ofPlacement("Scheduled"), "False", p.Generation)
	})
	update(s, s.hub, s.placement(), func(p *placementv1beta1.ClusterResourcePlacement) {
		p.Spec.ResourceSelectors = slices.Clone(s.placement().Spec.ResourceSelectors)
	})
	s.awaitValue(value1, allMembers...)
	s.requireAvailable(s.awaitAvailable("0"), "0", "", allMembers...)
}

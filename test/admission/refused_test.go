//go:build integration

package admission

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// table has the ways in which manifests like the base are refused, by a sentence each. The base itself is admitted.
type table struct {
	base    string
	created map[string]refusal
	updated map[string]change
	// status is what the status of a stored base may not be.
	status map[string]refusal
}

// refusal is a small edit, a merge patch of the base, that makes it wrong, and the answer.
type refusal struct {
	edit, message string
	// fine is the nearest edit that is right; the base is, if it is empty.
	fine string
	// lenient does not ask for unknown fields to be refused, as kubectl does with --validate=ignore.
	lenient bool
	// reasons is how many the server gives, one if it is 0.
	reasons int
}

// change is an edit of a stored object that is refused.
type change struct {
	// before is an edit of the base that makes the stored object.
	before        string
	edit, message string
	// fine is the nearest edit of the stored object that is right.
	fine string
}

// tables are all tables, by what they are about.
var tables = map[string]table{
	"resource selectors":      selectorTable,
	"placements":              placementTable,
	"PickAll":                 pickAllTable,
	"PickN":                   pickNTable,
	"PickFixed":               pickFixedTable,
	"affinity":                affinityTable,
	"tolerations":             tolerationTable,
	"topology spread":         spreadTable,
	"rollout strategies":      rolloutTable,
	"apply strategies":        applyTable,
	"namespaced placements":   namespacedPlacementTable,
	"update runs":             runTable,
	"namespaced update runs":  namespacedRunTable,
	"update strategies":       strategyTable,
	"namespaced strategies":   namespacedStrategyTable,
	"approval requests":       approvalTable,
	"cluster overrides":       clusterOverrideTable,
	"resource overrides":      resourceOverrideTable,
	"JSON patches":            patchTable,
	"override snapshots":      overrideSnapshotTable,
	"evictions":               evictionTable,
	"disruption budgets":      budgetTable,
	"cluster envelopes":       clusterEnvelopeTable,
	"envelopes":               envelopeTable,
	"member clusters":         memberTable,
	"internal members":        internalMemberTable,
	"policy snapshots":        policySnapshotTable,
	"resource snapshots":      resourceSnapshotTable,
	"bindings":                bindingTable,
	"works":                   workTable,
	"applied works":           appliedWorkTable,
	"copies of a status":      statusCopyTable,
	"snapshots of namespaces": namespacedSnapshotTable,
	"policies of namespaces":  namespacedPolicyTable,
	"overrides' snapshots":    namespacedOverrideSnapshotTable,
	"requests of namespaces":  namespacedApprovalTable,
	"forms of other versions": otherVersionTable,
}

// fewest is how many bad manifests the tables have at least.
const fewest = 150

func TestBadManifestsAreRefused(t *testing.T) {
	count := 0
	for about, tab := range tables {
		count += len(tab.created) + len(tab.updated) + len(tab.status)
		t.Run(about, func(t *testing.T) {
			admin.admitted(t, tab.base)
			for sentence, tc := range tab.created {
				t.Run(sentence, func(t *testing.T) { tc.run(t, tab.base) })
			}
			for sentence, tc := range tab.updated {
				t.Run(sentence, func(t *testing.T) { tc.run(t, tab.base) })
			}
			for sentence, tc := range tab.status {
				t.Run(sentence, func(t *testing.T) { tc.runStatus(t, tab.base) })
			}
		})
	}
	t.Logf("%d bad manifests", count)
	assert.GreaterOrEqual(t, count, fewest)
}

func (r refusal) run(t *testing.T, base string) {
	object := parse(t, base)
	if r.fine != "" {
		admin.admittedObject(t, patched(object, parsePatch(t, r.fine)))
	}
	options := strict()
	if r.lenient {
		options.FieldValidation = metav1.FieldValidationIgnore
	}
	wrong := patched(object, parsePatch(t, r.edit))
	resource, err := admin.resource(wrong)
	require.NoError(t, err)
	stored, err := resource.Create(t.Context(), wrong, options)
	if err == nil {
		remove(t, stored)
	}
	requireReasons(t, err, r.message, max(r.reasons, 1))
}

func (c change) run(t *testing.T, base string) {
	stored := admin.createObject(t, patched(parse(t, base), parsePatch(t, c.before)))
	if c.fine != "" {
		assert.NoError(t, admin.update(t.Context(), stored, parsePatch(t, c.fine), metav1.DryRunAll), "the neighbour that is right")
	}
	requireReasons(t, admin.update(t.Context(), stored, parsePatch(t, c.edit)), c.message, 1)
}

func (r refusal) runStatus(t *testing.T, base string) {
	stored := admin.createObject(t, parse(t, base))
	if r.fine != "" {
		require.NoError(t, setStatus(t, stored, r.fine), "the neighbour that is right")
		stored = current(t, stored)
	}
	requireReasons(t, setStatus(t, stored, r.edit), r.message, max(r.reasons, 1))
}

// requireReasons asserts that the server refused in the given words, and for nothing else.
func requireReasons(t testing.TB, err error, message string, most int) {
	t.Helper()
	requireRefusal(t, err, message)
	var status apierrors.APIStatus
	require.ErrorAs(t, err, &status)
	details := status.Status().Details
	if details == nil {
		return
	}
	var reasons []string
	for _, cause := range details.Causes {
		if !strings.Contains(cause.Message, "some validation rules were not checked") {
			reasons = append(reasons, cause.Field+": "+cause.Message)
		}
	}
	assert.LessOrEqual(t, len(reasons), most, "wrong in more than one way: %q", reasons)
}

func current(t testing.TB, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	resource, err := admin.resource(object)
	require.NoError(t, err)
	found, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
	require.NoError(t, err)
	return found
}

// many returns n times an item of a YAML list; each # in it becomes the number of the item, from 0.
func many(n int, item string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(item, "#", strconv.Itoa(i))
	}
	return strings.Join(items, ", ")
}

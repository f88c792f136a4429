package v1alpha1_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// A filter of a sink, and a rule, may name each type of a record, and all that begin as it does.
func TestEachTypeOfARecordCanBeNamed(t *testing.T) {
	for file, rule := range map[string]string{
		"auditsink_types.go":        `t[.]matches[(]"([^"]+)"[)]`,
		"notificationrule_types.go": "items:Pattern=`([^`]+)`",
	} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		found := regexp.MustCompile(rule).FindStringSubmatch(string(text))
		require.NotNil(t, found, file)
		for _, kind := range fleetflowv1alpha1.RecordTypes() {
			group, _, _ := strings.Cut(string(kind), ".")
			assert.Regexp(t, found[1], string(kind), file)
			assert.Regexp(t, found[1], group+".*", file)
		}
	}
}

// A placement that is gone is not selected by labels that are not known any more, and what is of no placement is for no sink of some.
func TestASinkOfSomePlacements(t *testing.T) {
	record := func(namespace, placement string) *fleetflowv1alpha1.AuditRecord {
		return &fleetflowv1alpha1.AuditRecord{Spec: fleetflowv1alpha1.AuditRecordSpec{
			Type: fleetflowv1alpha1.RecordRunCreated, PlacementName: placement, SubjectRef: fleetflowv1alpha1.AuditSubjectReference{Namespace: namespace},
		}}
	}
	there := map[string]map[string]string{"web": {"tier": "prod"}, "docs": {"tier": "test"}}
	of := func(record *fleetflowv1alpha1.AuditRecord) (map[string]string, bool, error) {
		if record.Spec.PlacementName == "unread" {
			return nil, false, errors.New("the hub does not answer")
		}
		labels, isThere := there[record.Spec.PlacementName]
		return fleetflowv1alpha1.GateLabels(&metav1.ObjectMeta{Name: record.Spec.PlacementName, Namespace: record.Spec.SubjectRef.Namespace, Labels: labels}), isThere, nil
	}
	prod := metav1.LabelSelector{MatchLabels: map[string]string{"tier": "prod"}}
	team := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: fleetflowv1alpha1.PlacementNamespaceLabel, Operator: metav1.LabelSelectorOpIn, Values: []string{"team"}}, {Key: "tier", Operator: metav1.LabelSelectorOpExists},
	}}
	namespace := metav1.LabelSelector{MatchLabels: map[string]string{fleetflowv1alpha1.PlacementNamespaceLabel: "team"}}
	other := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	for sentence, tc := range map[string]struct {
		selector *metav1.LabelSelector
		record   *fleetflowv1alpha1.AuditRecord
		want     bool
	}{
		"no selector":              {record: record("", ""), want: true},
		"an empty one":             {selector: &metav1.LabelSelector{}, record: record("", ""), want: true},
		"a placement that matches": {selector: &prod, record: record("", "web"), want: true},
		"another":                  {selector: &prod, record: record("", "docs")},
		"one that is gone may be of another team":    {selector: &prod, record: record("", "gone")},
		"also without a label":                       {selector: &other, record: record("", "gone")},
		"a record of no placement":                   {selector: &prod, record: record("", "")},
		"the namespace of one that is gone is known": {selector: &namespace, record: record("team", "gone"), want: true},
		"so it is of another":                        {selector: &namespace, record: record("other", "gone")},
		"a namespace and more":                       {selector: &team, record: record("team", "gone")},
		"one of a namespace":                         {selector: &team, record: record("team", "web"), want: true},
		"one of none":                                {selector: &team, record: record("", "web")},
	} {
		sink := fleetflowv1alpha1.AuditSink{Spec: fleetflowv1alpha1.AuditSinkSpec{Filter: &fleetflowv1alpha1.AuditSinkFilter{PlacementSelector: tc.selector}}}
		before := sink.DeepCopy()
		got, err := sink.Wants(tc.record, of)
		require.NoError(t, err, sentence)
		assert.Equal(t, tc.want, got, sentence)
		assert.Equal(t, before, &sink, "the selector stays as it is")
	}
	sink := fleetflowv1alpha1.AuditSink{Spec: fleetflowv1alpha1.AuditSinkSpec{Filter: &fleetflowv1alpha1.AuditSinkFilter{PlacementSelector: &prod}}}
	_, err := sink.Wants(record("", "unread"), of)
	assert.Error(t, err, "it is not known")
}

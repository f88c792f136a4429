package v1alpha1_test

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// A rule may name each type of a record, and no other.
func TestTypesOfRecordsAreListed(t *testing.T) {
	text, err := os.ReadFile("auditrecord_types.go")
	require.NoError(t, err)
	var declared []fleetflowv1alpha1.AuditRecordType
	for _, found := range regexp.MustCompile(`AuditRecordType = "([A-Za-z.]+)"`).FindAllStringSubmatch(string(text), -1) {
		declared = append(declared, fleetflowv1alpha1.AuditRecordType(found[1]))
	}
	require.NotEmpty(t, declared)
	assert.ElementsMatch(t, declared, fleetflowv1alpha1.RecordTypes())
}

func TestWhichTypesARuleTells(t *testing.T) {
	rule := &fleetflowv1alpha1.NotificationRule{Spec: fleetflowv1alpha1.NotificationRuleSpec{Types: []string{"run.held", "approval.*", "budget.*", "run.faild"}}}
	for kind, tells := range map[fleetflowv1alpha1.AuditRecordType]bool{
		fleetflowv1alpha1.RecordRunHeld: true, fleetflowv1alpha1.RecordRunReleased: true, fleetflowv1alpha1.RecordApprovalVoted: true,
		fleetflowv1alpha1.RecordRunStopped: false, fleetflowv1alpha1.RecordRunFailed: false,
	} {
		assert.Equal(t, tells, rule.Tells(kind), kind)
	}
	assert.Equal(t, []string{"budget.*", "run.faild"}, rule.UnknownTypes())
}

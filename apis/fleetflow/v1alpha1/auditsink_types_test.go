package v1alpha1_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

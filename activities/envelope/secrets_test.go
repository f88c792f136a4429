package envelope_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fleetflow/fleetflow/activities/envelope"
)

// What is wrong with an envelope is told in the status of bindings and placements, which
// more people read than its content.
func TestErrorsDoNotRepeatWhatIsInAnEnvelope(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData:\n  password: "
	for name, text := range map[string]string{
		"a value that is not of its tag":        secret + "!!int hunter2",
		"a value that looks like an alias":      secret + "*hunter2",
		"a value in place of a name":            "apiVersion: v1\nkind: Secret\nmetadata: {name: {hunter2: hunter2}}",
		"a value in place of the metadata":      "apiVersion: v1\nkind: Secret\nmetadata: hunter2",
		"a value in place of the annotations":   "apiVersion: v1\nkind: Secret\nmetadata: {name: key, annotations: hunter2}",
		"a key that is there twice":             secret + "hunter2\n  password: hunter2",
		"a value in place of the document":      "hunter2",
		"a value that no JSON can tell":         "apiVersion: v1\nkind: Secret\nhunter2: .inf",
		"a key that is no text":                 "apiVersion: v1\nkind: Secret\nstringData: {[hunter2]: hunter2}",
		"a value that begins like nothing else": secret + "@hunter2",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := envelope.Unpack(manifest(t, configMap(t, map[string]string{"object.yaml": text})), anything)
			require.Error(t, err)
			assert.NotContains(t, err.Error(), "hunter2")
		})
	}
}

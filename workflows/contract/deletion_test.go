package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestADeletionResultIsReadAsHistoriesHaveIt(t *testing.T) {
	for text, result := range map[string]wf.DeletionResult{
		"true":          {Done: true},
		"false":         {},
		`{}`:            {},
		`{"done":true}`: {Done: true},
		`{"held":[{"type":"RolloutHold","title":"hold incident","phase":"Held"}]}`: {
			Held: []wf.TaskWait{{Type: "RolloutHold", Title: "hold incident", Phase: "Held"}},
		},
	} {
		var read wf.DeletionResult
		require.NoError(t, json.Unmarshal([]byte(text), &read))
		assert.Equal(t, result, read, text)
	}
}

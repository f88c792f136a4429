package contract_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestChangesThatAreAlikeAreOneEntryOfABatch(t *testing.T) {
	for sentence, test := range map[string]struct {
		batch wf.Batch
		want  string
	}{
		"no change": {wf.Batch{}, `[]`},
		"a single change is as readable as it can be": {
			wf.Batch{{Cluster: "a", Op: wf.OpUpdate, UID: "1234", FromState: "Bound", FromRevision: "r"}},
			`[{"cluster":"a","op":"update","uid":"1234","fromState":"Bound","fromRevision":"r"}]`,
		},
		"those that are alike are listed": {
			wf.Batch{{Cluster: "b", Op: wf.OpUpdate, UID: "1"}, {Cluster: "c", Op: wf.OpAdd, UID: "2"}, {Cluster: "a", Op: wf.OpUpdate, UID: "3"}},
			`[{"op":"update","clusters":["b/1","a/3"]},{"cluster":"c","op":"add","uid":"2"}]`,
		},
		"those of bindings with other names are not": {
			wf.Batch{{Cluster: "a", Op: wf.OpUpdate, Binding: "adopted-a"}, {Cluster: "b", Op: wf.OpUpdate, Binding: "adopted-b"}},
			`[{"cluster":"a","op":"update","binding":"adopted-a"},{"cluster":"b","op":"update","binding":"adopted-b"}]`,
		},
		"evictions keep their order": {
			wf.Batch{{Cluster: "a", Op: wf.OpEvict, UID: "1", Eviction: "e", EvictionUID: "u"}, {Cluster: "b", Op: wf.OpUpdate, UID: "2"}},
			`[{"cluster":"a","op":"evict","uid":"1","eviction":"e","evictionUID":"u"},{"cluster":"b","op":"update","uid":"2"}]`,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			text, err := json.Marshal(test.batch)
			require.NoError(t, err)
			assert.Equal(t, test.want, string(text))
			var read wf.Batch
			require.NoError(t, json.Unmarshal(text, &read))
			assert.ElementsMatch(t, test.batch, read)
		})
	}
}

func TestABatchIsReadAsTheVersionBeforeHasWrittenIt(t *testing.T) {
	var read wf.Batch
	require.NoError(t, json.Unmarshal([]byte(`[{"cluster":"a","op":"update","binding":"crp-a","uid":"12345678-1","fromState":"Bound","fromRevision":"r"}]`), &read))
	assert.Equal(t, wf.Batch{{Cluster: "a", Op: "update", Binding: "crp-a", UID: "12345678-1", FromState: "Bound", FromRevision: "r"}}, read)
}

func TestAThousandChangesAreSmall(t *testing.T) {
	var batch wf.Batch
	for i := range 1000 {
		batch = append(batch, wf.Change{Cluster: fmt.Sprintf("member-cluster-of-edge-%04d", i), Op: wf.OpAdd, UID: "1a2b3c4d", FromState: "Scheduled"})
	}
	text, err := json.Marshal(batch)
	require.NoError(t, err)
	assert.Less(t, len(text), 42_000)
}

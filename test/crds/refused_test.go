package crds

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/fleetflow/fleetflow/test/refused"
)

// TestBadObjectsAreRefused asks the API server's own code what the suite test/admission asks a whole API server, but for what the
// definitions do not say.
func TestBadObjectsAreRefused(t *testing.T) {
	tables, err := refused.Tables()
	require.NoError(t, err)
	for _, table := range tables {
		kindName, _ := table.Base["kind"].(string)
		k := loadKind(t, kindName)
		admits := func(t *testing.T, object, old map[string]any) {
			t.Helper()
			_, errs := k.admit(t, textOf(t, object), textOf(t, old))
			assert.Empty(t, texts(errs), "the neighbour that is right")
		}
		refuses := func(t *testing.T, tc refused.Case, object, old map[string]any) {
			t.Helper()
			_, errs := k.admit(t, textOf(t, object), textOf(t, old))
			if tc.Refusal.Reason == "" {
				assert.NotContains(t, texts(errs), tc.Refusal.Message, "name its field and its reason")
				return
			}
			var answers []refused.Refusal
			for _, err := range errs {
				answers = append(answers, refused.Refusal{Field: err.Field, Reason: string(err.Type)})
			}
			assert.Contains(t, answers, refused.Refusal{Field: tc.Refusal.Field, Reason: tc.Refusal.Reason}, texts(errs))
			assert.Contains(t, texts(errs), tc.Refusal.Message)
		}
		t.Run(table.About, func(t *testing.T) {
			admits(t, table.Base, nil)
			for _, tc := range table.Created {
				t.Run(tc.It, func(t *testing.T) {
					admits(t, refused.Merge(table.Base, tc.Fine), nil)
					refuses(t, tc, refused.Merge(table.Base, tc.Edit), nil)
				})
			}
			for _, tc := range table.Updated {
				t.Run(tc.It, func(t *testing.T) {
					old := refused.Merge(table.Base, tc.Before)
					admits(t, refused.Merge(old, tc.Fine), old)
					refuses(t, tc, refused.Merge(old, tc.Edit), old)
				})
			}
			for _, tc := range table.Status {
				t.Run(tc.It, func(t *testing.T) {
					admits(t, withStatus(table.Base, tc.Fine), table.Base)
					refuses(t, tc, withStatus(table.Base, tc.Edit), table.Base)
				})
			}
		})
	}
}

func withStatus(object, status map[string]any) map[string]any {
	changed := refused.Merge(object, nil)
	if len(status) > 0 {
		changed["status"] = status
	}
	return changed
}

// textOf returns an object as text; empty if there is none.
func textOf(t *testing.T, object map[string]any) string {
	t.Helper()
	if object == nil {
		return ""
	}
	text, err := yaml.Marshal(object)
	require.NoError(t, err)
	return string(text)
}

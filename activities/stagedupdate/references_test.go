package stagedupdate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestARunNamesObjectsThatThereCanBe(t *testing.T) {
	for sentence, tc := range map[string]struct {
		spec placementv1beta1.UpdateRunSpec
		want string // empty for no error
	}{
		"names":                               {placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "gated", RollbackOf: "web-1"}, ""},
		"names as long as they can be":        {placementv1beta1.UpdateRunSpec{PlacementName: strings.Repeat("p", 63), StagedUpdateStrategyName: strings.Repeat("s", 253)}, ""},
		"a placement of another namespace":    {placementv1beta1.UpdateRunSpec{PlacementName: "other/web", StagedUpdateStrategyName: "gated"}, "parent clusterResourcePlacement not found: `other/web`"},
		"a placement by a path":               {placementv1beta1.UpdateRunSpec{PlacementName: "..", StagedUpdateStrategyName: "gated"}, "parent clusterResourcePlacement not found"},
		"a placement whose name is too long":  {placementv1beta1.UpdateRunSpec{PlacementName: strings.Repeat("p", 64), StagedUpdateStrategyName: "gated"}, "parent clusterResourcePlacement not found"},
		"a strategy of another namespace":     {placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "other/gated"}, "referenced clusterStagedUpdateStrategy not found: `other/gated`"},
		"a run of another namespace to go by": {placementv1beta1.UpdateRunSpec{PlacementName: "web", StagedUpdateStrategyName: "gated", RollbackOf: "other/web-1"}, "clusterStagedUpdateRun `other/web-1` to roll back not found"},
	} {
		t.Run(sentence, func(t *testing.T) {
			err := checkReferences(&placementv1beta1.StagedUpdateRun{Spec: tc.spec})
			if tc.want == "" {
				assert.NoError(t, err)
				return
			}
			var refused *userError
			require.ErrorAs(t, err, &refused)
			assert.Contains(t, refused.text, tc.want)
		})
	}
}

package crds

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRulesOfPropagatedTypes(t *testing.T) {
	const own = "metadata.name is a kind of the fleet itself"
	k := loadKind(t, "PropagatedType")
	for name, tc := range map[string]struct {
		name, spec, refusal string
	}{
		"a kind of the core group":             {name: "configmaps", spec: "{propagation: Disabled}"},
		"a kind of another group":              {name: "deployments.apps", spec: "{propagation: Enabled}"},
		"one that says nothing is enabled":     {name: "deployments.apps", spec: "{}"},
		"a group that only ends alike":         {name: "widgets.notfleetflow.io"},
		"a group that only begins alike":       {name: "widgets.fleetflow.io.example.com"},
		"there are two values":                 {name: "configmaps", spec: "{propagation: Paused}", refusal: `supported values: "Enabled", "Disabled"`},
		"placements are never switched":        {name: "clusterresourceplacements.placement.kubernetes-fleet.io", refusal: own},
		"envelopes are never switched":         {name: "resourceenvelopes.placement.kubernetes-fleet.io", refusal: own},
		"members are never switched":           {name: "memberclusters.cluster.kubernetes-fleet.io", refusal: own},
		"PropagatedTypes are never switched":   {name: "propagatedtypes.fleetflow.io", refusal: own},
		"other kinds of the project are alike": {name: "others.gates.fleetflow.io", refusal: own},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.spec == "" {
				tc.spec = "{propagation: Disabled}"
			}
			_, errs := k.admit(t, fmt.Sprintf("apiVersion: fleetflow.io/v1alpha1\nkind: PropagatedType\nmetadata: {name: %s}\nspec: %s\n", tc.name, tc.spec), "")
			if tc.refusal == "" {
				assert.Empty(t, texts(errs))
				return
			}
			assert.Contains(t, texts(errs), tc.refusal)
		})
	}
}

package workmodel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "github.com/fleetflow/fleetflow/apis/placement/v1beta1"
)

func TestFindingsFitIntoTheStatusOfABinding(t *testing.T) {
	tests := map[string]struct {
		value, message int // bytes
		fields         int // that are told of each resource in the end
	}{
		"what fits is told in full":          {10, 10, 100},
		"else fewer fields of each are told": {100, 10, 20},
		"and fewer":                          {300, 10, 5},
		"down to one, and no long messages":  {900, 30_000, 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var details []placementv1beta1.PatchDetail
			for i := range 100 {
				details = append(details, placementv1beta1.PatchDetail{Path: fmt.Sprint("/", i), ValueInHub: strings.Repeat("x", tc.value)})
			}
			status := placementv1beta1.ResourceBindingStatus{}
			for range maxFindings {
				status.DriftedPlacements = append(status.DriftedPlacements, placementv1beta1.DriftedResourcePlacement{ObservedDrifts: details})
				status.FailedPlacements = append(status.FailedPlacements, placementv1beta1.FailedResourcePlacement{
					Condition: metav1.Condition{Message: strings.Repeat("m", tc.message)},
				})
			}
			fitted := fitStatus(status)
			assert.LessOrEqual(t, statusSize(fitted), findingsBytes)
			require.Len(t, fitted.DriftedPlacements, maxFindings, "all are named")
			assert.Len(t, fitted.DriftedPlacements[0].ObservedDrifts, tc.fields)
			assert.LessOrEqual(t, len(fitted.FailedPlacements[0].Condition.Message), max(tc.message, messageBytes+len("…")))
			assert.Len(t, details, 100, "what the Work says is left as it is")
		})
	}
}

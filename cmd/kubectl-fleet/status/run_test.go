package status

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fleetflow/fleetflow/apis/placement/stagetask"
	"github.com/fleetflow/fleetflow/apis/placement/updaterun"
	"github.com/fleetflow/fleetflow/cmd/kubectl-fleet/tree"
)

func TestAnAnalysisThatHasFailedIsShownSo(t *testing.T) {
	failed := stagetask.State{Title: "analysis", Failed: true, Message: "errors: 3 of 3 measurements are bad"}
	assert.Equal(t, tree.Node{
		Kind: KindGate, Name: "analysis after", State: updaterun.PhaseFailed, Detail: "errors: 3 of 3 measurements are bad",
	}, builder{}.task(failed, "canary", "after"))
}

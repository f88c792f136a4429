package contract_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	wf "github.com/fleetflow/fleetflow/workflows/contract"
)

func TestPositionsAreWrittenAsRangesAndReadBack(t *testing.T) {
	list := make([]string, 20)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	for want, positions := range map[wf.Positions][]int{
		"":             nil,
		"0":            {0},
		"3,5":          {3, 5},
		"0-19":         {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19},
		"0-1,4,7-9,19": {0, 1, 4, 7, 8, 9, 19},
	} {
		assert.Equal(t, want, wf.PositionsOf(positions))
		var names []string
		for _, i := range positions {
			names = append(names, list[i])
		}
		assert.Equal(t, names, want.Of(list), want)
	}
	assert.Equal(t, []string{"18", "19"}, wf.Positions("18-30,40").Of(list), "what is not there has no name")
	assert.Empty(t, wf.Positions("x,-,7-2").Of(list))
}

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A placement on 5,000 clusters would be planned eight times for each report of a member otherwise.
func TestWhatIsCompleteIsPlannedOnceForAnInstant(t *testing.T) {
	s := newSituation("a").snapshot(1).bound(0, up, "a")
	assert.True(t, s.Facts.standing(now.Time).moves)
	s.Facts.standings = map[time.Time]standing{}
	assert.True(t, s.Facts.standing(now.Time).moves)
	s.Facts.Bindings = nil // never after it is complete
	assert.True(t, s.Facts.standing(now.Time).moves, "it is not planned again")
	assert.False(t, s.Facts.standing(now.Add(time.Second)).moves, "at another instant it is")
}

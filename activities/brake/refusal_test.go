package brake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetflow/fleetflow/activities/brake"
)

// Each placement has its own pace: many refused clusters of one do not slow another down.
func TestThePaceOfRefusedWritesIsThatOfOnePlacement(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var refusals brake.Refusals
	retriedAfter := func(of types.UID, cluster string) time.Duration {
		wait, _, _ := refusals.Of(of, cluster)
		return wait.Until.Sub(at)
	}
	for i := range 1000 {
		refusals.Record("many", fmt.Sprint(i), "", "no", at)
	}
	refusals.Record("one", "a", "", "no", at)
	at = at.Add(time.Hour)
	refusals.Record("one", "a", "", "no", at)
	assert.LessOrEqual(t, retriedAfter("one", "a"), 35*time.Second)
	refusals.Record("many", "1", "", "no", at)
	assert.Greater(t, retriedAfter("many", "1"), 70*time.Second)
}

// Writes that were refused one after the other are tried again together.
func TestRefusedWritesAreTriedAgainTogether(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var refusals brake.Refusals
	ends := map[time.Time]bool{}
	for i := range 40 {
		refusals.Record("p", fmt.Sprint(i), "", "no", at)
		later := at.Add(20*time.Second + time.Duration(i)*100*time.Millisecond)
		refusals.Record("p", fmt.Sprint(i), "", "no", later)
		wait, _, _ := refusals.Of("p", fmt.Sprint(i))
		assert.GreaterOrEqual(t, wait.Until.Sub(later), 20*time.Second)
		ends[wait.Until] = true
	}
	assert.LessOrEqual(t, len(ends), 3)
}

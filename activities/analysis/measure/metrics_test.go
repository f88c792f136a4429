package measure

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
)

// TestWhatCanBeCountedStartsAtZero has alerts on an increase see the first one.
func TestWhatCanBeCountedStartsAtZero(t *testing.T) {
	m := NewMetrics()
	assert.Equal(t, 4*5, testutil.CollectAndCount(m.measurements), "outcomes by what is asked")
	assert.Equal(t, 4, testutil.CollectAndCount(m.runs), "phases that end an attempt")
	assert.Zero(t, testutil.ToFloat64(m.runs.WithLabelValues("Failed")))
	m.observeRequest("central", time.Second)
	assert.Equal(t, 1, testutil.CollectAndCount(m.putOff), "of a source that has been asked")
	m.countMeasurement("Error", "Job")
	assert.Equal(t, 4*5, testutil.CollectAndCount(m.measurements), "a count has its series already")
}

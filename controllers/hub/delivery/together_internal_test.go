package delivery

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetflowv1alpha1 "github.com/fleetflow/fleetflow/apis/fleetflow/v1alpha1"
)

// gathering notes when it was asked to take how many records.
type gathering struct {
	clock interface{ Now() time.Time }
	at    []time.Duration
	many  []int
	fails int
}

func (g *gathering) Deliver(_ context.Context, records []fleetflowv1alpha1.AuditRecord) error {
	if g.fails > 0 {
		g.fails--
		return errors.New("away")
	}
	g.at = append(g.at, g.clock.Now().Sub(start))
	g.many = append(g.many, len(records))
	return nil
}

// Records of many runs that come within a window are told at a time, and those that come later no sooner than a window after.
func TestWhatWaitsIsSentTogether(t *testing.T) {
	h := newHub(t, 40, 3)
	d := h.drive(t, start)
	g := &gathering{clock: d.clock}
	d.Put(Route{Key: Key{"NotificationRule", "people/ops"}, Version: "1", Batch: 1000, Collect: 30 * time.Second, Together: true, To: g})
	d.learn(t)
	d.settle(t, start.Add(29*time.Second))
	assert.Empty(t, g.at, "the window is open")
	d.settle(t, start.Add(31*time.Second))
	later := recordOf("run-0", 4)
	later.CreationTimestamp = metav1.NewTime(start.Add(20 * time.Second)) // it was not known before
	require.NoError(t, h.Create(t.Context(), later))
	d.seen(later)
	d.settle(t, start.Add(10*time.Minute))
	assert.Equal(t, []time.Duration{30 * time.Second, time.Minute}, g.at)
	assert.Equal(t, []int{120, 1}, g.many)
}

// An outage of whoever takes them does not part them.
func TestWhatWaitsStaysTogetherAfterFailures(t *testing.T) {
	h := newHub(t, 40, 3)
	d := h.drive(t, start)
	g := &gathering{clock: d.clock, fails: 5}
	d.Put(Route{Key: Key{"NotificationRule", "people/ops"}, Version: "1", Batch: 1000, Collect: 30 * time.Second, Together: true, To: g})
	d.learn(t)
	d.settle(t, start.Add(10*time.Minute))
	assert.Equal(t, []int{120}, g.many)
	assert.Equal(t, []time.Duration{61 * time.Second}, g.at, "1, 2, 4, 8 and 16 s after the window")
}

package stagedupdate

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestATimeIsSaidAsShortAsItCanBe(t *testing.T) {
	now := time.Date(2026, 1, 2, 13, 5, 0, 0, time.UTC)
	for then, want := range map[time.Time]string{
		now.Add(time.Hour):                                       "14:05Z",
		now.Add(time.Hour + 7*time.Second):                       "14:05:07Z",
		now.Add(time.Hour).In(time.FixedZone("elsewhere", 7200)): "14:05Z",
		now.Add(48 * time.Hour):                                  "2026-01-04 13:05Z",
	} {
		assert.Equal(t, want, clock(now, then))
	}
}

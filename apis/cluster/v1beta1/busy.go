package v1beta1

import (
	"time"
)

// MaxBusy is for how long the owner of a cluster may keep the fleet from beginning anything on it. As long again has to pass before
// a further request counts.
const MaxBusy = 12 * time.Hour

// MaxBusyMessage is how many bytes of a message are kept.
const MaxBusyMessage = 256

// IsNow reports whether nothing may begin on the cluster at an instant.
func (b *Busy) IsNow(now time.Time) bool { return b != nil && now.Before(b.Until.Time) }

// NextChange returns after how long time alone changes what is granted; 0 if it never does.
func (b *Busy) NextChange(now time.Time) time.Duration {
	switch {
	case b == nil:
		return 0
	case b.IsNow(now):
		return b.Until.Sub(now)
	}
	return max(b.Since.Add(2*MaxBusy).Sub(now), 0)
}

// Equal reports whether two grants are the same.
func (b *Busy) Equal(other *Busy) bool {
	if b == nil || other == nil {
		return b == other
	}
	return b.Since.Equal(&other.Since) && b.Until.Equal(&other.Until) && b.Message == other.Message
}

// EndsWith reports whether two grants end at the same instant, whatever their owners say of why; none ends with none.
func (b *Busy) EndsWith(other *Busy) bool {
	if b == nil || other == nil {
		return b == other
	}
	return b.Until.Equal(&other.Until)
}

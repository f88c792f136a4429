package v1beta1

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Text says that nothing begins on the cluster, until when and why.
func (b *Busy) Text() string {
	text := "Nothing begins on the cluster until " + formatSince(b.Until.Time) + ", as its owner has asked"
	if b.Message != "" {
		text += ": " + b.Message
	}
	return text
}

// Equal reports whether two grants are the same.
func (b *Busy) Equal(other *Busy) bool {
	if b == nil || other == nil {
		return b == other
	}
	return b.Since.Equal(&other.Since) && b.Until.Equal(&other.Until) && b.Message == other.Message
}

// GrantBusy returns for how long nothing begins on a cluster, by what was granted before and what its owner asks now, and why the
// request does not count, if it does not. All instants are the hub's: what the clock of the member says counts for nothing but the end
// that is asked for, and that is bounded.
func GrantBusy(before *Busy, asked *BusyRequest, now time.Time) (granted *Busy, refusal string) {
	now = now.Truncate(time.Second)
	granted = before.DeepCopy()
	if granted != nil && (granted.Since.After(now) || now.Sub(granted.Since.Time) >= 2*MaxBusy) {
		granted = nil // it counts for nothing any more
	}
	if asked == nil || asked.Until == nil || !asked.Until.After(now) {
		if granted.IsNow(now) {
			granted.Until = metav1.NewTime(now) // it is taken back
		}
		return granted, whyNotAsked(asked)
	}
	if granted == nil {
		granted = &Busy{Since: metav1.NewTime(now)}
	}
	last := granted.Since.Add(MaxBusy)
	if !now.Before(last) {
		return granted, fmt.Sprintf("the fleet has waited for the cluster for as long as it does, %s from %s on; a request counts again from %s on",
			MaxBusy, formatSince(granted.Since.Time), formatSince(granted.Since.Add(2*MaxBusy)))
	}
	granted.Until = metav1.NewTime(asked.Until.Truncate(time.Second))
	if granted.Until.After(last) {
		granted.Until = metav1.NewTime(last)
	}
	granted.Message = oneLine(asked.Message)
	return granted, ""
}

// whyNotAsked says what is wrong with a request that has no end to come; empty if nothing is asked for.
func whyNotAsked(asked *BusyRequest) string {
	switch {
	case asked == nil:
		return ""
	case asked.Until != nil:
		return "the end that it asks for, " + formatSince(asked.Until.Time) + ", is over"
	case asked.Message != "":
		return oneLine(asked.Message)
	}
	return "it does not say until when"
}

// oneLine makes a text that others have written fit for a sentence.
func oneLine(text string) string {
	return CutText(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " "), MaxBusyMessage)
}

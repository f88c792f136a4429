package rules

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// DescribeBusy says that nothing begins on the cluster, until when and why.
func DescribeBusy(b *clusterv1beta1.Busy) string {
	text := "Nothing begins on the cluster until " + formatSince(b.Until.Time) + ", as its owner has asked"
	if b.Message != "" {
		text += ": " + b.Message
	}
	return text
}

// GrantBusy returns for how long nothing begins on a cluster, by what was granted before and what its owner asks now, and why the
// request does not count, if it does not. All instants are the hub's: what the clock of the member says counts for nothing but the end
// that is asked for, and that is bounded.
func GrantBusy(before *clusterv1beta1.Busy, asked *clusterv1beta1.BusyRequest, now time.Time) (granted *clusterv1beta1.Busy, refusal string) {
	now = now.Truncate(time.Second)
	granted = before.DeepCopy()
	if granted != nil && (granted.Since.After(now) || now.Sub(granted.Since.Time) >= 2*clusterv1beta1.MaxBusy) {
		granted = nil // it counts for nothing any more
	}
	if asked == nil || asked.Until == nil || !asked.Until.After(now) {
		if granted.IsNow(now) {
			granted.Until = metav1.NewTime(now) // it is taken back
		}
		return granted, whyNotAsked(asked)
	}
	if granted == nil {
		granted = &clusterv1beta1.Busy{Since: metav1.NewTime(now)}
	}
	last := granted.Since.Add(clusterv1beta1.MaxBusy)
	if !now.Before(last) {
		return granted, fmt.Sprintf("the fleet has waited for the cluster for as long as it does, %s from %s on; a request counts again from %s on",
			clusterv1beta1.MaxBusy, formatSince(granted.Since.Time), formatSince(granted.Since.Add(2*clusterv1beta1.MaxBusy)))
	}
	granted.Until = metav1.NewTime(asked.Until.Truncate(time.Second))
	if granted.Until.After(last) {
		granted.Until = metav1.NewTime(last)
	}
	granted.Message = oneLine(asked.Message)
	return granted, ""
}

// whyNotAsked says what is wrong with a request that has no end to come; empty if nothing is asked for.
func whyNotAsked(asked *clusterv1beta1.BusyRequest) string {
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
	return clusterv1beta1.CutText(strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " "), clusterv1beta1.MaxBusyMessage)
}
